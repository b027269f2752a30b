// Blocks against the whole matrix: what is skipped are zeros, so that every bit must be the same.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "archive.hpp"
#include "blocks.hpp"
#include "check.hpp"
#include "fresh_rows.hpp"
#include "ridge.hpp"

namespace {

using namespace surefoot;

constexpr int WIDTH = 11, ACTIONS = 5, DIM = WIDTH * ACTIONS;  // no multiple of eight, so that blocks begin anywhere
constexpr double RIDGE = 0.3;

struct Draws {
  std::mt19937_64 engine{5};
  std::normal_distribution<double> normal;

  double number() { return normal(engine); }
  int below(int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); }

  // One action's row, zero beyond its block, and here and there within it.
  std::vector<double> row(int action) {
    std::vector<double> x(DIM, 0.0);
    for (int j = 0; j < WIDTH; ++j) {
      if (below(3) > 0) x[static_cast<std::size_t>(action) * WIDTH + static_cast<std::size_t>(j)] = 0.3 * number();
    }
    return x;
  }
};

Ridge<any> in_one_block() {
  Ridge<any> ridge(DIM, RIDGE);
  ridge.blocks.join(Span{0, DIM});
  return ridge;
}

// Zeros of either sign are equal, and nothing else is that differs.
bool is_same(const double* x, const double* y, int n) {
  for (int i = 0; i < n; ++i) {
    if (!(x[i] == y[i])) return false;
  }
  return true;
}

bool is_same(Ridge<any>& x, Ridge<any>& y) {
  const std::vector<double> left = saved(x), right = saved(y);
  return left.size() == right.size() && is_same(left.data(), right.data(), static_cast<int>(left.size()));
}

bool has_same_scores(const Ridge<any>& x, const Ridge<any>& y, Draws& draws) {
  std::vector<double> rows;
  for (int a = 0; a < ACTIONS; ++a) {
    const std::vector<double> row = draws.row(a);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  for (int i = 0; i < DIM; ++i) rows.push_back(0.1 * draws.number());  // and a row through all blocks
  FreshRows<any> left, right;
  left.score(x, {rows.data(), ACTIONS + 1, DIM}, Solo{});
  right.score(y, {rows.data(), ACTIONS + 1, DIM}, Solo{});
  return is_same(left.scores.means.data(), right.scores.means.data(), ACTIONS + 1) &&
         is_same(left.scores.squares.data(), right.scores.squares.data(), ACTIONS + 1);
}

void a_span_holds_what_is_not_zero() {
  for (int begin = 0; begin < 40; ++begin) {
    for (int end = begin; end < 40; ++end) {
      std::vector<double> x(40, begin % 2 == 0 ? 0.0 : -0.0);
      if (end > begin) x[static_cast<std::size_t>(begin)] = x[static_cast<std::size_t>(end - 1)] = 5e-324;
      const Span span = span_of(x.data(), 40);
      check(span.size() == end - begin && (span.empty() || span.begin == begin), "a span begins and ends with numbers");
    }
  }
}

void blocks_change_no_bit() {
  Draws draws;
  Ridge<any> blocks(DIM, RIDGE), whole = in_one_block();
  bool is_equal = has_same_scores(blocks, whole, draws);
  for (int t = 0; t < 400; ++t) {
    const std::vector<double> x = draws.row(draws.below(ACTIONS - 1));
    const double reward = draws.number();
    const auto left = blocks.absorb(x, reward), right = whole.absorb(x, reward);
    is_equal = is_equal && left.gain == right.gain && left.error == right.error;
    if (t % 90 == 7) is_equal = is_equal && blocks.refresh() && whole.refresh();
    is_equal = is_equal && is_same(blocks, whole);
    if (t % 20 == 3) is_equal = is_equal && has_same_scores(blocks, whole, draws);
  }
  check(is_equal, "states and scores are the same to the bit");
  check(!blocks.blocks.is_one(), "rows that fall into blocks stay in them");
  check(blocks.blocks.at(WIDTH * (ACTIONS - 1)).size() == 1, "what was never seen is tied to nothing");
}

void blocks_grow_together() {
  Draws draws;
  Ridge<any> blocks(DIM, RIDGE), whole = in_one_block();
  bool is_equal = true;
  for (int t = 0; t < 200; ++t) {
    std::vector<double> x = draws.row(draws.below(ACTIONS));
    if (t == 60) x[WIDTH + 3] = x[4 * WIDTH - 2] = 0.5;
    if (t == 120) x.front() = x.back() = 0.5;
    const double reward = draws.number();
    blocks.absorb(x, reward);
    whole.absorb(x, reward);
    is_equal = is_equal && is_same(blocks, whole);
    if (t == 80) check(blocks.blocks.at(2 * WIDTH).size() >= 2 * WIDTH, "a row through blocks makes one of them");
  }
  check(is_equal, "states are the same to the bit while blocks grow together");
  check(blocks.blocks.is_one(), "a row from end to end makes one block of all");
}

void a_saved_state_has_its_blocks_again() {
  Draws draws;
  Ridge<any> first(DIM, RIDGE), second(DIM, RIDGE);
  for (int t = 0; t < 37; ++t) first.absorb(draws.row(draws.below(ACTIONS)), draws.number());
  restore(second, saved(first));
  check(!second.blocks.is_one(), "blocks are found again in a state that was read");
  bool is_equal = true;
  for (int t = 0; t < 60; ++t) {
    const std::vector<double> x = draws.row(draws.below(ACTIONS));
    const double reward = draws.number();
    first.absorb(x, reward);
    second.absorb(x, reward);
    is_equal = is_equal && is_same(first, second);
  }
  check(is_equal, "a state that was read goes on as the one that was saved");
}

void a_matrix_that_was_handed_over_stays_as_it_was() {
  Draws draws;
  Ridge<any> given(DIM, RIDGE), kept(DIM, RIDGE);
  bool is_equal = true;
  Matrix<any> spare(DIM);
  for (int i = 0; i < DIM; ++i) {
    for (int j = 0; j <= i; ++j) spare(i, j) = 7.0;  // what somebody else left there
  }
  for (int t = 0; t < 50; ++t) {
    const std::vector<double> x = draws.row(draws.below(ACTIONS));
    const double reward = draws.number();
    Matrix<any> old = std::move(given.whitener);
    const Matrix<any> before = old;
    given.whitener = std::move(spare);
    given.handed_over = &old;
    given.absorb(x, reward);
    kept.absorb(x, reward);
    is_equal = is_equal && is_same(old.data(), before.data(), old.size()) && is_same(given, kept);
    spare = std::move(old);
  }
  check(is_equal, "M is written elsewhere whole");
}

// M x, four rows at once and each alone: over blocks that begin anywhere, and from any row on.
void rows_at_once_have_the_bits_of_one_alone() {
  Draws draws;
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  for (int dim = 1; dim <= 41; ++dim) {
    const int cut = draws.below(dim);
    Matrix<any> lower(dim);
    std::vector<double> x(static_cast<std::size_t>(dim));
    for (int i = 0; i < dim; ++i) {
      x[static_cast<std::size_t>(i)] = draws.number();
      for (int j = i < cut ? 0 : cut; j <= i; ++j) lower(i, j) = draws.number();
    }
    lower.begin_rows([&](int i) { return i < cut ? 0 : cut; });
    const Product<any> product{lower, x.data()};
    for (int begin = 0; begin < dim; ++begin) {
      bool is_equal = true;
      int next = begin;
      product.each(begin, dim, [&](int i, double entry) {
        is_equal = is_equal && i == next && bits(entry) == bits(product[i]);
        ++next;
      });
      check(is_equal && next == dim, "rows at once have the bits of one alone");
    }
  }
}

}  // namespace

int main() try {
  a_span_holds_what_is_not_zero();
  blocks_change_no_bit();
  blocks_grow_together();
  a_saved_state_has_its_blocks_again();
  a_matrix_that_was_handed_over_stays_as_it_was();
  rows_at_once_have_the_bits_of_one_alone();
  return surefoot::failures == 0 ? 0 : 1;
} catch (const surefoot::DamagedState& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
