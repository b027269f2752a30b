// Means and widths of many rows at once: what the optimistic choice among finitely many actions needs.
//
// UCB = mean + factor sqrt(square) with square = ||phi||^2_{V^-1} (or ||phi||^2 while the set is the ball).
#pragma once
#include <cmath>
#include <vector>

#include "common.hpp"
#include "registers.hpp"
#include "ridge.hpp"
#include "settings.hpp"
#include "team.hpp"

namespace surefoot {

inline constexpr double LENGTH_TOLERANCE = 1e-12;  // a row may be longer than D by this share, for D's own rounding

// An action and its upper confidence bound. Row r that breaks the bound D or is not finite is -1 - r.
struct Proposal {
  int action;
  double upper;
};

// The first row that is longer than the bound or not finite, or -1.
template <int D>
int first_bad_row(Rows<D> rows, double bound) {
  const double longest = bound * (1.0 + LENGTH_TOLERANCE), limit = longest * longest;
  for (int i = 0; i < rows.count; ++i) {
    if (!(square_length(rows[i].data(), rows.dim()) <= limit)) return i;  // NaN and infinity end up here too
  }
  return -1;
}

// Rows as columns, in places for whole groups of eight: what a vector unit reads.
template <int D>
struct Columns {
  int actions = 0, places = 0, dim_ = 0;
  Common<double> values;

  void assign(Rows<D> rows) {
    actions = rows.count;
    places = padded(actions);
    dim_ = rows.dim();
    values.resize(static_cast<std::size_t>(places) * static_cast<std::size_t>(dim()));
    for (int i = 0; i < places; i += 2) {
      // Two rows at a time, in squares of four numbers; beyond the last row there are zeros.
      const bool has_next = i + 1 < actions;
      int j = 0;
      if (has_next) {
        const double *row = rows[i].data(), *next = rows[i + 1].data();
        for (; j + 2 <= dim(); j += 2) {
          const Pair a = take<Pair>(row + j), b = take<Pair>(next + j);
          put(column(j) + i, firsts(a, b));
          put(column(j + 1) + i, seconds(a, b));
        }
      }
      for (; j < dim(); ++j) {
        column(j)[i] = i < actions ? rows[i][static_cast<std::size_t>(j)] : 0.0;
        column(j)[i + 1] = has_next ? rows[i + 1][static_cast<std::size_t>(j)] : 0.0;
      }
    }
  }
  int dim() const { return D == any ? dim_ : D; }
  double* column(int j) { return values.data() + static_cast<std::ptrdiff_t>(j) * places; }
  const double* column(int j) const { return values.data() + static_cast<std::ptrdiff_t>(j) * places; }
};

struct Scores {
  Common<double> means, squares;

  void resize(int actions) {
    const auto places = static_cast<std::size_t>(padded(actions));
    means.assign(places, NO_SCORE);
    squares.assign(places, 0.0);
  }
};

// <theta, phi> and ||phi||^2_{V^-1} of the actions at one place, term after term: equal rows have equal scores.
template <class Number, int D>
void score_at(const Ridge<D>& ridge, const Columns<D>& columns, int at, Scores& scores) {
  const int d = ridge.dim();
  Number mean{}, square{};
  const double* first = columns.column(0) + at;
  const std::ptrdiff_t stride = columns.places;
  if (ridge.count == 0.0) {
    for (int j = 0; j < d; ++j) {
      const Number x = take<Number>(first + j * stride);
      square += x * x;
    }
  } else {
    int i = 0;
    // Four rows of M together: while one sum waits, the others continue.
    for (; i + 4 <= d; i += 4) {
      const double *a = ridge.whitener.row(i), *b = ridge.whitener.row(i + 1);
      const double *c = ridge.whitener.row(i + 2), *e = ridge.whitener.row(i + 3);
      Number p{}, q{}, r{}, s{};
      for (int j = 0; j <= i; ++j) {
        const Number x = take<Number>(first + j * stride);
        p += a[j] * x;
        q += b[j] * x;
        r += c[j] * x;
        s += e[j] * x;
      }
      const Number x0 = take<Number>(first + i * stride), x1 = take<Number>(first + (i + 1) * stride);
      const Number x2 = take<Number>(first + (i + 2) * stride), x3 = take<Number>(first + (i + 3) * stride);
      q += b[i + 1] * x1;
      r += c[i + 1] * x1;
      s += e[i + 1] * x1;
      r += c[i + 2] * x2;
      s += e[i + 2] * x2;
      s += e[i + 3] * x3;
      square += p * p;
      square += q * q;
      square += r * r;
      square += s * s;
      mean += ridge.theta[i] * x0;
      mean += ridge.theta[i + 1] * x1;
      mean += ridge.theta[i + 2] * x2;
      mean += ridge.theta[i + 3] * x3;
    }
    for (; i < d; ++i) {
      const double* row = ridge.whitener.row(i);
      Number entry{};
      for (int j = 0; j <= i; ++j) entry += row[j] * take<Number>(first + j * stride);
      square += entry * entry;
      mean += ridge.theta[i] * take<Number>(first + i * stride);
    }
  }
  put(scores.means.data() + at, mean);
  put(scores.squares.data() + at, square);
}

// Means and squares of rows that are new.
template <int D, class Team>
void score_all(const Ridge<D>& ridge, const Columns<D>& columns, Scores& scores, const Team& team) {
  each_register(team, columns.places, columns.actions,
                [&]<class Number>(Number, int at) { score_at<Number>(ridge, columns, at, scores); });
  for (int i = columns.actions; i < columns.places; ++i) scores.means[static_cast<std::size_t>(i)] = NO_SCORE;
}

// The same row by row, without the zeros of a row and of M: what pays while there are several blocks.
template <int D>
void score_by_blocks(const Ridge<D>& ridge, Rows<D> rows, Scores& scores) {
  const int d = ridge.dim();
  const Matrix<D>& whitener = ridge.whitener;
  for (int at = 0; at < rows.count; ++at) {
    const double* x = rows[at].data();
    const Span span = span_of(x, d), block = ridge.blocks.around(span);
    double mean = 0.0, square = 0.0;
    for (int j = span.begin; j < span.end; ++j) mean += ridge.theta[j] * x[j];
    if (ridge.count == 0.0) {
      for (int j = span.begin; j < span.end; ++j) square += x[j] * x[j];
    } else {
      // Columns left of the row's first entry meet nothing but zeros, and so do rows of M above it.
      int i = span.begin;
      for (; i + 4 <= block.end; i += 4) {
        double p = 0.0, q = 0.0, r = 0.0, s = 0.0;
        const double *a = whitener.row(i), *b = whitener.row(i + 1), *c = whitener.row(i + 2), *e = whitener.row(i + 3);
        for (int j = std::max(whitener.from(i), span.begin); j < std::min(i + 4, span.end); ++j) {
          p += a[j] * x[j];
          q += b[j] * x[j];
          r += c[j] * x[j];
          s += e[j] * x[j];
        }
        square += p * p;
        square += q * q;
        square += r * r;
        square += s * s;
      }
      for (; i < block.end; ++i) {
        double entry = 0.0;
        for (int j = std::max(whitener.from(i), span.begin); j < std::min(i + 1, span.end); ++j)
          entry += whitener(i, j) * x[j];
        square += entry * entry;
      }
    }
    scores.means[static_cast<std::size_t>(at)] = mean;
    scores.squares[static_cast<std::size_t>(at)] = square;
  }
}

// A mean and a square after an observation x, given <V^-1 x, phi>.
template <class Number, class Change>
void move_score(const Change& change, Number along, std::ptrdiff_t at, Scores& scores) {
  double *mean = scores.means.data() + at, *square = scores.squares.data() + at;
  put(mean, take<Number>(mean) + change.error * along);
  put(square, larger(Number{} + 0.0, take<Number>(square) - change.gain * along * along));
}

// Scores at some places, each `apart` from the one before, after an observation x, by <V^-1 x, phi>. While one sum
// waits, the others continue.
template <int Many, class Number, int D>
void follow_at(const Columns<D>& columns, const double* step, const typename Ridge<D>::Change& change, int at,
               std::ptrdiff_t apart, Scores& scores) {
  Number along[Many];
  const double* first = columns.column(0) + at;
  for (int k = 0; k < Many; ++k) along[k] = take<Number>(first + k * apart) * step[0];
  for (int j = 1; j < columns.dim(); ++j) {
    first += columns.places;
    for (int k = 0; k < Many; ++k) along[k] += take<Number>(first + k * apart) * step[j];
  }
  for (int k = 0; k < Many; ++k) move_score(change, along[k], at + k * apart, scores);
}

// All scores after an observation x, given V^-1 x.
template <int D, class Team>
void follow(const Columns<D>& columns, const double* step, const typename Ridge<D>::Change& change, Scores& scores,
            const Team& team) {
  const int quarter = columns.places / (4 * WIDE) * WIDE, behind = 4 * quarter;
  each_register(team, quarter, quarter, [&]<class Number>(Number, int at) {
    follow_at<4, Number>(columns, step, change, at, quarter, scores);
  });
  each_register(team, columns.places - behind, columns.actions - behind, [&]<class Number>(Number, int at) {
    follow_at<1, Number>(columns, step, change, behind + at, 0, scores);
  });
}

// The same after several observations, one after the other; each row is read once for four of them.
template <int D, class Team>
void follow_all(const Columns<D>& columns, const std::vector<double>& steps,
                const std::vector<typename Ridge<D>::Change>& changes, Scores& scores, const Team& team) {
  const auto d = static_cast<std::ptrdiff_t>(columns.dim());
  const auto count = static_cast<std::ptrdiff_t>(changes.size());
  each_register(team, columns.places, columns.actions, [&]<class Number>(Number, int at) {
    const double* first = columns.column(0) + at;
    std::ptrdiff_t done = 0;
    for (; done + 4 <= count; done += 4) {
      const double* step = steps.data() + done * d;
      Number along[4];
      const Number x = take<Number>(first);
      for (int k = 0; k < 4; ++k) along[k] = x * step[k * d];
      for (std::ptrdiff_t j = 1; j < d; ++j) {
        const Number y = take<Number>(first + j * columns.places);
        for (int k = 0; k < 4; ++k) along[k] += y * step[k * d + j];
      }
      for (int k = 0; k < 4; ++k) move_score(changes[static_cast<std::size_t>(done + k)], along[k], at, scores);
    }
    for (; done < count; ++done) {
      follow_at<1, Number>(columns, steps.data() + done * d, changes[static_cast<std::size_t>(done)], at, 0, scores);
    }
  });
}

// What a width counts: beta, or B while the set is the ball.
template <int D>
double factor_of(const LinearSettings& s, const Ridge<D>& ridge, double beta) {
  return ridge.count == 0.0 ? s.theta_bound : beta;
}

// The row with the largest UCB, the first one on a tie.  (paper, Algorithm 1, line 4)
//
// In most rounds one pass over the squares shows that the last best row still is.
template <int D, class Team>
Proposal optimistic(const LinearSettings& s, Ridge<D>& ridge, const Scores& scores, int actions, double beta,
                    const Team& team) {
  const double factor = factor_of(s, ridge, beta);
  const double *means = scores.means.data(), *squares = scores.squares.data();
  const int guess = ridge.favourite < actions ? ridge.favourite : 0;
  const double bar = means[guess] + factor * std::sqrt(squares[guess]);
  const double square = factor * factor * (1.0 + 1e-12), size = std::fabs(bar);
  int rivals = 0;
  each_register(team, padded(actions), actions, [&]<class Number>(Number, int at) {
    const Number mean = take<Number>(means + at);
    // A row that may reach the bar, rounding included, counts as a rival; so does one that ties with the guess: among
    // equals the first must win, not the last best.
    const Number gap = larger(Number{} + 0.0, (bar - mean) - 4.0 * EPS * (size + absolute(mean)));
    rivals += holding(square * take<Number>(squares + at) >= gap * gap);
  });
  if (team.total(rivals) == 1) return {guess, bar};  // the guess itself
  int best = guess;
  double highest = -INFINITE;
  for (int i = 0; i < actions; ++i) {
    const double upper = means[i] + factor * std::sqrt(squares[i]);
    if (upper > highest) {
      best = i;
      highest = upper;
    }
  }
  ridge.favourite = best;
  return {best, highest};
}

}  // namespace surefoot
