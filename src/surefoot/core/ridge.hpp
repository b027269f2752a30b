// The ridge state: everything the observations say of theta.
//
// With V = ridge I + sum x x^T and b = sum x y it keeps V and b exact (compensated sums; the newest rows x wait in a
// short buffer and enter V together), and beside them M, the whitener: lower triangular with M^T M = V^-1, so that a
// width ||q||_{V^-1} = ||M q|| is a sum of squares and never negative. One observation costs O(d^2) (Carlson's
// square-root update); at fixed intervals, and whenever the bound on its rounding error is used up, M is computed
// afresh from V. Where rows fall into blocks (`blocks.hpp`), d is the width of a block in both.
#pragma once
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "archive.hpp"
#include "blocks.hpp"
#include "carlson.hpp"
#include "common.hpp"
#include "compiled_for.hpp"
#include "elementary.hpp"
#include "exact.hpp"
#include "factor.hpp"
#include "gram.hpp"
#include "sums.hpp"
#include "team.hpp"
#include "vector.hpp"

namespace surefoot {

inline constexpr int REFRESH_EVERY = 1024;  // observations between two fresh factorisations
inline constexpr double DRIFT_ALLOWED =
    1e-8;                                     // rounding error of a width at which a fresh factorisation is due at once
inline constexpr double DRIFT_USABLE = 1e-3;  // beyond this relative error a width is not worth its name

template <int D>
struct Ridge {
  double count = 0.0, fresh_log_det = 0.0, growth = 1.0, drift = 4.0 * EPS, fresh_drift = 4.0 * EPS, condition = 1.0;
  double energy = 0.0;     // b^T V^-1 b
  double age = 0.0;        // observations since M was fresh
  int favourite = 0;       // a hint: the row that was chosen last
  double surprises = 0.0;  // sum e^2 D^2: squared errors of prediction, each times the leverage of its row
  Vector<D> theta;
  Matrix<D> whitener;
  Vector<D> step;  // V^-1 x for the newest observation x and the V before it: what scores follow
  SumVector<D> moment;
  Gram<D> gram;
  Vector<D, 2> scratch;
  Carlson<D> carlson;
  Blocks<D> blocks;
  double ridge;
  // Whether `surprises` must be as small as can be shown, which costs O(d^2) where a row lies beyond what was seen.
  bool looks_closely = true;
  // Where M stands for the next observation, if somebody keeps the old one: the new one is then written here.
  const Matrix<D>* handed_over = nullptr;

  Ridge(int dim, double ridge_)
      : theta(dim),
        whitener(dim),
        step(dim),
        moment(dim),
        gram(dim, ridge_),
        scratch(dim),
        carlson(dim),
        blocks(dim),
        ridge(ridge_),
        projected_(dim) {
    whitener.diagonal(1.0 / std::sqrt(ridge));
    if constexpr (D == any) begin_rows();
  }

  int dim() const { return theta.size(); }

  // Whether a saved state is one of this ridge.
  bool is_sound(double ridge_) const { return ridge == ridge_; }

  // In the order in which states were always saved.
  template <class Visit>
  void each(Visit visit) {
    int size = dim();
    visit(size);
    if (size != dim()) damaged("it is of another dimension");
    for (double* number : {&count, &fresh_log_det, &growth, &drift, &fresh_drift, &condition, &energy, &age}) {
      visit(*number);
    }
    check_count(count);
    check_count(age);
    visit(gram.waiting);
    if (gram.waiting >= RECENT) damaged("more rows wait in it than there is room for");
    visit(favourite);
    visit(surprises);
    visit(theta);
    visit(whitener);
    visit(step);
    visit(moment);
    visit(gram.sum);
    visit(gram.carry);
    visit(gram.recent);
    visit(scratch);
    visit(ridge);
  }

  // A state that was read has its blocks where its numbers are not zero.
  void after_reading()
    requires(D == any)
  {
    const int d = dim();
    blocks = Blocks<D>(d);
    for (int i = 0; i < d && !blocks.is_one(); ++i) {
      for (const Matrix<D>* matrix : {&whitener, &gram.sum, &gram.carry}) {
        const Span span = span_of(matrix->row(i), d);
        if (!span.empty()) blocks.join(Span{std::min(span.begin, i), std::max(span.end, i + 1)});
      }
    }
    for (int k = 0; k < gram.waiting; ++k) blocks.join(view<D>(gram.recent.data() + k * d, d));
    begin_rows();
    is_new_ = true;
  }

  // ln(det V / ridge^d): as it was at the last fresh factorisation, and what det V has grown by since.
  double log_det() const { return fresh_log_det + log_of(growth); }

  double width(View<D> x) const { return std::sqrt(square_of_product(whitener, x.data())); }

  // How scores follow an observation: <theta, q> grows by error <step, q>, ||q||^2_{V^-1} falls by gain <step, q>^2.
  struct Change {
    double gain, error;

    // ||x||_{V^-1} of the observation, before it came: 1 / gain - 1 is the leverage, which rounding could take below 0.
    double width() const { return root(1.0 / gain - 1.0 + 4.0 * EPS); }
  };

  // Never inlined: loops that play many rounds have registers for themselves alone.
  template <class Team = Solo>
  [[gnu::noinline]] Change absorb(View<D> x, double reward, const Team& team = {}) {
    const int d = dim();
    const Span block = blocks.join(x);
    const Matrix<D>& before = D == any && handed_over != nullptr ? *handed_over : whitener;
    handed_over = nullptr;
    if constexpr (D == any) {
      if (&before != &whitener) copy_beside(before, block);
      if (!block.empty() && whitener.from(block.end - 1) > block.begin) begin_rows();
    }
    const Product<D> whitened{before, x.data()};
    double leverage = 0.0;
    whitened.each(block.begin, block.end, [&](int i, double entry) {
      scratch[i] = entry;
      leverage += entry * entry;
    });
    const double surprise = reward - dot(theta.data(), x.data(), d);
    const Change change{1.0 / (1.0 + leverage), surprise / (1.0 + leverage)};
    // Before theta and M change: what counts is the error of the prediction made without this reward.
    if constexpr (COUNTS_SURPRISES) {
      book_surprise(x, surprise, std::fabs(reward) + size_of_dot(theta.data(), x.data(), d), leverage, team);
    } else if (!(drift <= DRIFT_USABLE)) {
      gram.fold(blocks, team);  // as a closer look would do
    }
    accumulate(x, reward, team);
    if (D == any) step.fill(0.0);
    carlson.update(before, scratch.data(), block, whitener, step);
    count += 1.0;
    age += 1.0;
    growth *= 1.0 + leverage;
    // Each update adds rounding errors that the conditioning of M amplifies; that may have grown since it was
    // measured, at most as fast as the root of det V.
    drift += (d + 4.0) * EPS * condition * root(growth * (1.0 + leverage));
    if (age >= REFRESH_EVERY || drift > larger(DRIFT_ALLOWED, 2.0 * fresh_drift)) refresh(team);
    estimate(std::exchange(is_new_, false) ? Span{0, d} : block);
    return change;
  }

  // V, once the rows that wait have entered it.
  template <class Team = Solo>
  Matrix<D> whole_gram(const Team& team = {}) {
    gram.fold(blocks, team);
    Matrix<D> whole(dim());
    for (int i = 0; i < dim(); ++i) {
      for (int j = 0; j < dim(); ++j) whole(i, j) = gram.at(i, j);
    }
    return whole;
  }

  // x^T V x
  double square_in_gram(const Vector<D>& x) {
    gram.fold(blocks, Solo{});
    double square = 0.0;
    for (int i = 0; i < dim(); ++i) {
      const Span block = blocks.at(i);
      double along = 0.0;
      for (int j = block.begin; j < block.end; ++j) along += gram.at(i, j) * x[j];
      square += x[i] * along;
    }
    return square;
  }

  // M afresh from V, with a bound on its error; where V is too ill-conditioned to factor, the old M stays.
  template <class Team = Solo>
  bool refresh(const Team& team = {}) {
    const int d = dim();
    gram.fold(blocks, team);
    age = 0.0;
    std::vector<Matrix<D>> fresh;
    LargestSums most;
    double log_det = 0.0;
    for (Span block{0, 0}; block.begin < d; block.begin = block.end) {
      block = blocks.at(block.begin);
      const int first = first_of(block), size = block.end - first;
      Matrix<D> lower(size), inverse(size);
      if (!cholesky(gram_of(block), lower)) {
        fresh_drift = drift;  // the next attempt then waits until the drift has doubled
        return false;
      }
      invert(lower, inverse);
      most.take_in(largest_sums(inverse, lower, block.begin - first));
      // A difference of logarithms would cancel.
      for (int i = block.begin - first; i < size; ++i) log_det += 2.0 * log_of(lower(i, i) / std::sqrt(ridge));
      fresh.push_back(std::move(inverse));
    }
    for (Span block{0, 0}; const Matrix<D>& inverse : fresh) {
      block = blocks.at(block.end);
      const int first = first_of(block);
      for (int i = block.begin; i < block.end; ++i) {
        // With the zeros above the diagonal, which an overflow may have turned into NaN.
        side_by_side(block.size(), [&]<class Number>(int j) {
          put(whitener.row(i) + block.begin + j, take<Number>(inverse.row(i - first) + (block.begin - first) + j));
        });
      }
    }
    fresh_log_det = log_det;
    growth = 1.0;
    is_new_ = true;
    condition = most.condition();
    drift = fresh_drift = drift_of_fresh(d, condition);
    return true;
  }

  // The relative rounding error of a width by a fresh factorisation.  (Higham 2002, th. 10.3, sec. 14.2)
  static double drift_of_fresh(int d, double conditioning) {
    // V itself is off by (RECENT + 2) EPS at most, L L^T by (d + 1) EPS, M L by d EPS, each relative to |M||L| twice.
    return (3.0 * d + RECENT + 8.0) * EPS * (conditioning * conditioning);
  }

 private:
  // M b: an observation changes that of its own block alone, unless M is new throughout.
  Vector<D> projected_;
  bool is_new_ = false;

  // Where the copy of a block begins: at a group of eight, so that sums over it keep their order.
  static int first_of(Span block) { return D == any ? block.begin & ~7 : 0; }

  // A block of V; what stands before it, up to a group of eight, is none of its own.
  Matrix<D> gram_of(Span block) const {
    const int first = first_of(block);
    Matrix<D> part(block.end - first);
    for (int i = first; i < block.begin; ++i) part(i - first, i - first) = 1.0;
    for (int i = block.begin; i < block.end; ++i) {
      for (int j = block.begin; j < block.end; ++j) part(i - first, j - first) = gram.at(i, j);
    }
    return part;
  }

  void begin_rows() {
    whitener.begin_rows([&](int i) { return blocks.at(i).begin; });
  }

  // The old M, beside the rows that an observation writes anew, where it is written elsewhere.
  void copy_beside(const Matrix<D>& old, Span block) {
    for (int i = 0; i < dim() && block.size() < dim(); ++i) {
      const bool is_anew = block.begin <= i && i < block.end;
      std::copy_n(old.row(i), is_anew ? block.begin : i + 1, whitener.row(i));
    }
    whitener.begin_rows_as(old);
  }

  // Adds e^2 D^2 to `surprises`, as large as rounding lets it be; `size` adds up what e is made of.
  template <class Team>
  [[gnu::always_inline]] void book_surprise(View<D> x, double surprise, double size, double leverage,
                                            const Team& team) {
    const int d = dim();
    double off, share;
    // The center is off by 2 drift sqrt(energy) in the norm of V, so <theta, x> by that times the width of x; a
    // squared width is off by 2 drift. The little more is for a width and an energy that are themselves off.
    if (drift <= DRIFT_USABLE) {
      off = 2.0 * drift * (1.0 + 4.0 * drift) * std::sqrt(energy * leverage);
      share = (1.0 + 3.0 * drift + (d + 8.0) * EPS) * (leverage / (1.0 + leverage));
      // Where that would show in the radius, look closer; rows beyond what was seen are few, and have it largest.
      if (looks_closely && (leverage > 1.0 || !(off <= 1e-4 * std::fabs(surprise) + 1e-6 * size)))
        off = std::fmin(center_error(x, team), off);
    } else {
      off = center_error(x, team);
      share = 1.0;
    }
    const double most = std::fabs(surprise) + off + (d + 4.0) * EPS * size;
    surprises += most * most * share;
  }

  // By how much <theta, x> may be off, judged by what V theta misses of b, whatever the drift: with r = b - V theta it
  // is <r, V^-1 x>, and no more than ||r|| ||x|| / ridge.
  template <class Team>
  double center_error(View<D> x, const Team& team) {
    const int d = dim();
    const Matrix<D> whole = whole_gram(team);
    double reach = 0.0, square = 0.0;
    for (int i = 0; i < d; ++i) reach += std::sqrt(whole(i, i)) * std::fabs(theta[i]);
    for (int i = 0; i < d; ++i) {
      const double missed = moment.total(i) - dot(whole.row(i), theta.data(), d);
      const double size = std::fabs(moment.total(i)) + size_of_dot(whole.row(i), theta.data(), d);
      // V itself is off by (RECENT + 2) EPS at most, relative to the roots of its diagonal.
      const double most =
          std::fabs(missed) + EPS * ((d + 4.0) * size + (RECENT + 2.0) * std::sqrt(whole(i, i)) * reach);
      square += most * most;
    }
    const double length = std::sqrt(square_length(x.data(), d)), scale = std::sqrt(ridge);
    return (std::sqrt(square) / scale) * (length / scale) * (1.0 + (d + 8.0) * EPS);
  }

  template <class Team>
  [[gnu::always_inline]] void accumulate(View<D> x, double reward, const Team& team) {
    const int d = dim();
    side_by_side(d, [&]<class Number>(int i) {
      const auto features = take<Number>(x.data() + i);
      const auto [product, cut] = two_product(reward, features);
      moment.add(i, product);
      put(moment.carry.data() + i, take<Number>(moment.carry.data() + i) + cut);
    });
    gram.add(x, blocks, team);
  }

  // theta = M^T (M b), of the coordinates that changed, and the energy b^T V^-1 b.
  [[gnu::always_inline]] void estimate(Span changed) {
    side_by_side(dim(), [&]<class Number>(int i) { put(scratch.data() + i, moment.template total<Number>(i)); });
    const Product<D> whitened{whitener, scratch.data()};
    double square = 0.0;
    whitened.each(changed.begin, changed.end, [&](int i, double entry) {
      projected_[i] = entry;
      square += entry * entry;
    });
    for (Span block = changed; block.begin < changed.end; block.begin = block.end) {
      block = blocks.at(block.begin);
      multiply_transposed(whitener, block.begin, block.end, projected_.data(), theta.data());
    }
    if (D == any && changed.size() < dim()) {
      square = 0.0;
      for (int i = 0; i < dim(); ++i) square += projected_[i] * projected_[i];
    }
    energy = square;
  }
};

}  // namespace surefoot
