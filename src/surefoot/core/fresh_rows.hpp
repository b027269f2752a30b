// The optimistic choice among rows that are new in every round.
//
// Many long rows are looked at in single precision first; only those that could still be best within the error bound
// of that are scored exactly. The choice is the same, and so are its bits, whatever the screen rounds.
#pragma once
#include <cmath>
#include <vector>

#include "scores.hpp"

namespace surefoot {

inline constexpr int SCREEN_FROM = 64;  // actions and dimensions from which a screen pays
inline constexpr double EPS_SINGLE = 0x1p-24;

// Widths in single precision, relative to the length of M and to the bound D: both factors are at most 1, and far from
// where single numbers end.
template <int D>
class Screen {
 public:
  // Writes ||M x|| / (||M|| D) of every row, up to 2 (d + 4) EPS_SINGLE.
  void widths(const Matrix<D>& whitener, double size, double bound, Rows<D> rows, std::vector<double>& out) {
    const int d = rows.dim();
    scale(whitener, 1.0 / size);
    block_.resize(static_cast<std::size_t>(d) * NARROW);
    out.resize(static_cast<std::size_t>(rows.count));
    for (int first = 0; first < rows.count; first += NARROW) {
      const int count = rows.count - first < NARROW ? rows.count - first : NARROW;
      turn(rows, first, count, 1.0 / bound);
      const SingleLanes squares = squares_of(d);
      for (int i = 0; i < count; ++i)
        out[static_cast<std::size_t>(first + i)] = std::sqrt(static_cast<double>(squares[i]));
    }
  }

 private:
  static constexpr int TOGETHER = 8;  // rows of M: while one sum waits, the others continue
  std::vector<float> whitener_, block_;
  int padded_ = 0;

  // M with rows of zeros behind it, so that all of them come in groups.
  void scale(const Matrix<D>& whitener, double by) {
    const int d = whitener.dim();
    padded_ = (d + TOGETHER - 1) / TOGETHER * TOGETHER;
    whitener_.assign(static_cast<std::size_t>(padded_) * static_cast<std::size_t>(padded_), 0.0F);
    for (int i = 0; i < d; ++i) {
      for (int j = 0; j <= i; ++j) {
        whitener_[static_cast<std::size_t>(i * padded_ + j)] = static_cast<float>(whitener(i, j) * by);
      }
    }
  }

  // Some rows as columns.
  void turn(Rows<D> rows, int first, int count, double by) {
    const int d = rows.dim();
    for (int i = 0; i < NARROW; ++i) {
      // Beyond the last row that one again, whose widths nobody reads.
      const double* row = rows[first + (i < count ? i : count - 1)].data();
      for (int j = 0; j < d; ++j) block_[static_cast<std::size_t>(j * NARROW + i)] = static_cast<float>(row[j] * by);
    }
  }

  SingleLanes squares_of(int d) const {
    SingleLanes squares{};
    for (int i = 0; i < d; i += TOGETHER) {
      SingleLanes sums[TOGETHER] = {};
      const float* row = whitener_.data() + static_cast<std::ptrdiff_t>(i) * padded_;
      const int last = i + TOGETHER < d ? i + TOGETHER : d;
      for (int j = 0; j < last; ++j) {
        SingleLanes x;
        std::memcpy(&x, block_.data() + static_cast<std::ptrdiff_t>(j) * NARROW, sizeof x);
        for (int k = 0; k < TOGETHER; ++k) sums[k] += row[k * padded_ + j] * x;
      }
      for (int k = 0; k < TOGETHER; ++k) squares += sums[k] * sums[k];
    }
    return squares;
  }
};

template <int D>
struct FreshRows {
  Columns<D> columns;
  Scores scores;
  Screen<D> screen;
  std::vector<double> rough, left;
  std::vector<int> places;

  template <class Team>
  Proposal propose(const LinearSettings& s, Ridge<D>& ridge, Rows<D> rows, double beta, const Team& team) {
    if (ridge.count > 0.0 && rows.count >= SCREEN_FROM && rows.dim() >= SCREEN_FROM && ridge.blocks.is_one()) {
      return screened(s, ridge, rows, beta, team);
    }
    score(ridge, rows, team);
    return optimistic(s, ridge, scores, rows.count, beta, team);
  }

  template <class Team>
  void score(const Ridge<D>& ridge, Rows<D> rows, const Team& team) {
    scores.resize(rows.count);
    if constexpr (D == any) {
      if (!ridge.blocks.is_one()) return score_by_blocks(ridge, rows, scores);
    }
    columns.assign(rows);
    score_all(ridge, columns, scores, team);
  }

 private:
  template <class Team>
  Proposal screened(const LinearSettings& s, Ridge<D>& ridge, Rows<D> rows, double beta, const Team& team) {
    const int d = rows.dim();
    const double size = std::sqrt(square_length(ridge.whitener.data(), ridge.whitener.size()));
    const double length = std::sqrt(square_length(ridge.theta.data(), d));
    screen.widths(ridge.whitener, size, s.feature_bound, rows, rough);
    // What single numbers may be off, and what the mean, added up in another order.
    const double reach = beta * size * s.feature_bound;
    const double error = 2.0 * (d + 4.0) * (reach * EPS_SINGLE + length * s.feature_bound * EPS);
    double bar = -INFINITE;
    for (int i = 0; i < rows.count; ++i) {
      double& upper = rough[static_cast<std::size_t>(i)];
      upper = dot(ridge.theta.data(), rows[i].data(), d) + reach * upper;
      bar = larger(upper - error, bar);
    }
    left.clear();
    places.clear();
    for (int i = 0; i < rows.count; ++i) {
      if (rough[static_cast<std::size_t>(i)] + error < bar) continue;  // NaN stays in
      places.push_back(i);
      left.insert(left.end(), rows[i].begin(), rows[i].end());
    }
    // A hint about all rows says nothing about those that are left.
    ridge.favourite = 0;
    score(ridge, {left.data(), static_cast<int>(places.size()), d}, team);
    const Proposal best = optimistic(s, ridge, scores, static_cast<int>(places.size()), beta, team);
    ridge.favourite = 0;
    return {places[static_cast<std::size_t>(best.action)], best.upper};
  }
};

}  // namespace surefoot
