// The optimistic choice among rows that are new in every round.
//
// Many long rows are looked at in single precision first; only those that could still be best within the error bound
// of that are scored exactly. The choice is the same, and so are its bits, whatever the screen rounds.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
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
  // M, for the rows to come; `size` is its length.
  void look_at(const Matrix<D>& whitener, double size) {
    scale(whitener, 1.0 / size);
    block_.resize(static_cast<std::size_t>(whitener.dim()) * NARROW);
  }

  // Writes ||M x|| / (||M|| D) of at most NARROW rows, up to 2 (d + 4) EPS_SINGLE.
  void widths(Rows<D> rows, double bound, double* out) {
    turn(rows, 1.0 / bound);
    const SingleLanes squares = squares_of(rows.dim());
    for (int i = 0; i < rows.count; ++i) out[i] = std::sqrt(static_cast<double>(squares[i]));
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
      float* row = whitener_.data() + static_cast<std::ptrdiff_t>(i) * padded_;
      for (int j = 0; j <= i; ++j) row[j] = static_cast<float>(whitener(i, j) * by);
    }
  }

  // Rows as columns.
  void turn(Rows<D> rows, double by) {
    const int d = rows.dim();
    // Beyond the last row that one again, whose widths nobody reads.
    const auto row = [&](int i) { return rows[i < rows.count ? i : rows.count - 1].data(); };
    for (int i = 0; i < NARROW; i += 4) {
      const double *a = row(i), *b = row(i + 1), *c = row(i + 2), *e = row(i + 3);
      float* to = block_.data() + i;
      int j = 0;
      for (; j + 4 <= d; j += 4) {
        const Square square = turned({take<Quad>(a + j), take<Quad>(b + j), take<Quad>(c + j), take<Quad>(e + j)});
        for (const Quad& column : {square.a, square.b, square.c, square.e}) {
          const SingleQuad narrow = narrowed(column * by);
          std::memcpy(to, &narrow, sizeof narrow);
          to += NARROW;
        }
      }
      for (; j < d; ++j) {
        for (const double* one : {a, b, c, e}) *to++ = static_cast<float>(one[j] * by);
        to += NARROW - 4;
      }
    }
  }

  // Products and sums may be fused: nothing but the choice of what is scored rests on them.
  [[gnu::optimize("fp-contract=fast")]] SingleLanes squares_of(int d) const {
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
      for (const SingleLanes& sum : sums) squares += sum * sum;
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

  // The row with the largest UCB; of rows that are not checked yet, the first one that is bad.
  template <class Team>
  Proposal propose(const LinearSettings& s, Ridge<D>& ridge, Rows<D> rows, double beta, const Team& team,
                   bool are_checked = true) {
    if (ridge.count > 0.0 && rows.count >= SCREEN_FROM && rows.dim() >= SCREEN_FROM && ridge.blocks.is_one()) {
      return screened(s, ridge, rows, beta, team, are_checked);
    }
    const int bad = score(ridge, rows, team, are_checked ? INFINITE : s.feature_bound);
    if (bad >= 0) return {-1 - bad, 0.0};
    return optimistic(s, ridge, scores, rows.count, beta, team);
  }

  // Returns the first row that is longer than the bound or not finite, where there is one, else -1.
  template <class Team>
  int score(const Ridge<D>& ridge, Rows<D> rows, const Team& team, double bound = INFINITE) {
    scores.resize(rows.count);
    if constexpr (D == any) {
      if (!ridge.blocks.is_one()) {
        const int bad = first_bad_row(rows, bound);
        if (bad < 0) score_by_blocks(ridge, rows, scores);
        return bad;
      }
    }
    const int bad = columns.assign(rows, bound);
    if (bad < 0) score_all(ridge, columns, scores, team);
    return bad;
  }

 private:
  template <class Team>
  Proposal screened(const LinearSettings& s, Ridge<D>& ridge, Rows<D> rows, double beta, const Team& team,
                    bool are_checked) {
    const int d = rows.dim();
    const double size = std::sqrt(square_length(ridge.whitener.data(), ridge.whitener.size()));
    const double length = std::sqrt(square_length(ridge.theta.data(), d));
    screen.look_at(ridge.whitener, size);
    rough.resize(static_cast<std::size_t>(rows.count));
    // What single numbers may be off, and what the mean, added up in another order.
    const double reach = beta * size * s.feature_bound;
    const double error = 2.0 * (d + 4.0) * (reach * EPS_SINGLE + length * s.feature_bound * EPS);
    double bar = -INFINITE;
    // Some rows at a time, since to read them all is a good part of the work.
    for (int first = 0; first < rows.count; first += NARROW) {
      const Rows<D> some{rows[first].data(), std::min(NARROW, rows.count - first), d};
      const int bad = are_checked ? -1 : first_bad_row(some, s.feature_bound);
      if (bad >= 0) return {-1 - first - bad, 0.0};
      double* uppers = rough.data() + first;
      screen.widths(some, s.feature_bound, uppers);
      for (int i = 0; i < some.count; ++i) {
        uppers[i] = dot(ridge.theta.data(), some[i].data(), d) + reach * uppers[i];
        bar = larger(uppers[i] - error, bar);
      }
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
