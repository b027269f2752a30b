// V = ridge I + sum x x^T, exact: compensated sums, which the newest rows x enter together after a short wait.
#pragma once
#include <type_traits>
#include <vector>

#include "blocks.hpp"
#include "common.hpp"
#include "exact.hpp"
#include "factor.hpp"
#include "sums.hpp"
#include "vector.hpp"

namespace surefoot {

inline constexpr int RECENT = 16;  // rows that wait before they enter V together

template <int D>
struct Gram {
  OfTeam<Matrix<D>> sum, carry;  // without the rows that wait
  OfTeam<Vector<D, RECENT>> recent;
  int waiting = 0;  // rows in `recent`

  Gram(int dim, double ridge) : sum(dim), carry(dim), recent(dim) { sum.diagonal(ridge); }

  int dim() const { return recent.size() / RECENT; }

  // Of those rows that have entered.
  double at(int i, int j) const { return sum(i, j) + carry(i, j); }

  // Another row, which waits with the others of its blocks.
  template <class Team>
  [[gnu::always_inline]] void add(View<D> x, const Blocks<D>& blocks, const Team& team) {
    double* row = recent.data() + waiting * dim();
    side_by_side(dim(), [&]<class Number>(int i) { put(row + i, take<Number>(x.data() + i)); });
    waiting += 1;
    if (waiting == RECENT) fold(blocks, team);
  }

  // The rows that wait enter V. The lanes of a team have one V, and each adds to rows of its own.
  template <class Team>
  void fold(const Blocks<D>& blocks, const Team& team) {
    if constexpr (D != any && std::is_same_v<typename Team::Number, double>) {
      team.each(D, [&](int i) { fold_rows<1>(i, {0, D}); });
    } else {
      fold_all(blocks);
    }
    waiting = 0;
  }

 private:
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<D == any, std::vector<int>, Nothing> touching_;

  void fold_all(const Blocks<D>& blocks) {
    if constexpr (D == any) {
      for (Span block{0, 0}; block.begin < dim() && waiting > 0; block.begin = block.end) {
        block = blocks.at(block.begin);
        find_touching(block);
        if (touching() > 0) fold_block(block);
      }
    } else {
      if (waiting > 0) fold_rows<D>(0, {0, D});
    }
  }

  // V is symmetric: what stands below its diagonal is added up, and copied above it.
  void fold_block(Span block) {
    // Rows that read what waits together; their sums stay in registers.
    constexpr int TOGETHER = WIDTH<Register> == WIDE ? 4 : 2;
    each_strip(block.begin, block.end, [&]<class Number, int Many>(int j) {
      int i = j;
      for (; i + TOGETHER <= block.end; i += TOGETHER) fold_at<Number, TOGETHER, Many>(i, j);
      for (; i < block.end; ++i) fold_at<Number, 1, Many>(i, j);
    });
    mirror(sum, block.begin, block.end);
    mirror(carry, block.begin, block.end);
  }

  // Which rows that wait are not zero in a block: the others add nothing to it.
  void find_touching(Span block) {
    touching_.clear();
    for (int k = 0; k < waiting; ++k) {
      const double* row = recent.data() + k * dim();
      int at = block.begin;
      while (at < block.end && row[at] == 0.0) ++at;
      if (at < block.end) touching_.push_back(k);
    }
  }
  int touching() const {
    if constexpr (D == any) return static_cast<int>(touching_.size());
    return waiting;
  }
  int touching_row(int place) const {
    if constexpr (D == any) return touching_[static_cast<std::size_t>(place)];
    return place;
  }

  // Some rows of it, which read what waits together.
  template <int Rows>
  [[gnu::always_inline]] void fold_rows(int i, Span block) {
    each_strip(block.begin, block.end, [&]<class Number, int Many>(int j) { fold_at<Number, Rows, Many>(i, j); });
  }

  template <class Number, int Rows, int Many>
  [[gnu::always_inline]] void fold_at(int i, int j) {
    const int d = dim();
    Number terms[Rows][Many] = {};
    for (int place = 0; place < touching(); ++place) {
      const double* x = recent.data() + touching_row(place) * d;
      for (int k = 0; k < Many; ++k) {
        const auto features = take<Number>(x + j + k * WIDTH<Number>);
        for (int r = 0; r < Rows; ++r) terms[r][k] += x[i + r] * features;
      }
    }
    for (int r = 0; r < Rows; ++r) {
      for (int k = 0; k < Many; ++k) {
        double *sums = sum.row(i + r) + j + k * WIDTH<Number>, *carries = carry.row(i + r) + j + k * WIDTH<Number>;
        const auto [value, lost] = two_sum(take<Number>(sums), terms[r][k]);
        put(sums, value);
        put(carries, take<Number>(carries) + lost);
      }
    }
  }
};

}  // namespace surefoot
