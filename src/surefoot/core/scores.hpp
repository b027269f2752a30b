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

// What the square of a row's length may be.
inline double largest_square(double bound) {
  const double longest = bound * (1.0 + LENGTH_TOLERANCE);
  return longest * longest;
}

// The first row that is longer than the bound or not finite, or -1.
template <int D>
int first_bad_row(Rows<D> rows, double bound) {
  const double limit = largest_square(bound);
  int i = 0;
  if constexpr (D == 4) {
    const auto squares = [&](int row) { return take<Quad>(rows[row].data()) * take<Quad>(rows[row].data()); };
    while (i + 4 <= rows.count &&
           holding(totals({squares(i), squares(i + 1), squares(i + 2), squares(i + 3)}) <= limit) == 4) {
      i += 4;
    }
  }
  for (; i < rows.count; ++i) {
    if (!(square_length(rows[i].data(), rows.dim()) <= limit)) return i;  // NaN and infinity end up here too
  }
  return -1;
}

// Calls `use(column)` for every column of four rows, from row i on. Returns the squares of their lengths, each added up
// in the order of `square_length`.
template <int D, class Use>
[[gnu::always_inline]] inline Quad turn_four(Rows<D> rows, int i, Use use) {
  const double *a = rows[i].data(), *b = rows[i + 1].data(), *c = rows[i + 2].data(), *e = rows[i + 3].data();
  const int d = rows.dim();
  const auto square = [&](int j) {
    return turned({take<Quad>(a + j), take<Quad>(b + j), take<Quad>(c + j), take<Quad>(e + j)});
  };
  const auto add = [&](const Quad& column, Quad& sum) {
    use(column);
    sum += column * column;
  };
  Quad sums[WIDE] = {};
  int j = 0;
  for (; j + WIDE <= d; j += WIDE) {
    for (int half = 0; half < WIDE; half += 4) {
      const Square four = square(j + half);
      add(four.a, sums[half]);
      add(four.b, sums[half + 1]);
      add(four.c, sums[half + 2]);
      add(four.e, sums[half + 3]);
    }
  }
  Quad total = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  for (; j + 4 <= d; j += 4) {
    const Square four = square(j);
    add(four.a, total);
    add(four.b, total);
    add(four.c, total);
    add(four.e, total);
  }
  for (; j < d; ++j) add(Quad{a[j], b[j], c[j], e[j]}, total);
  return total;
}

// Rows as columns, in places for whole groups of eight: what a vector unit reads.
template <int D>
struct Columns {
  int actions = 0, places = 0, dim_ = 0;
  Common<double> values;

  // Takes rows in, and returns the first one that is longer than the bound or not finite, or -1.
  int assign(Rows<D> rows, double bound = INFINITE) {
    actions = rows.count;
    places = padded(actions);
    dim_ = rows.dim();
    values.resize(static_cast<std::size_t>(places) * static_cast<std::size_t>(dim()));
    const double limit = largest_square(bound);
    const std::ptrdiff_t apart = places;
    int i = 0, bad = -1;
    for (; i + 4 <= actions; i += 4) {
      double* to = values.data() + i;
      const Quad squares = turn_four(rows, i, [&](const Quad& column) {
        put(to, column);
        to += apart;
      });
      if (bad < 0 && holding(squares <= limit) < 4) bad = i;
    }
    // Beyond the last row there are zeros.
    for (; i < places; i += 4) {
      double* to = values.data() + i;
      for (int j = 0; j < dim(); ++j, to += apart) {
        put(to, Quad{});
        for (int k = 0; i + k < actions; ++k) to[k] = rows[i + k][static_cast<std::size_t>(j)];
      }
    }
    bad = bad < 0 ? actions / 4 * 4 : bad;
    while (bad < actions && square_length(rows[bad].data(), dim()) <= limit) ++bad;
    return bad < actions ? bad : -1;
  }
  int dim() const { return D == any ? dim_ : D; }
  double* column(int j) { return values.data() + static_cast<std::ptrdiff_t>(j) * places; }
  const double* column(int j) const { return values.data() + static_cast<std::ptrdiff_t>(j) * places; }
};

struct Scores {
  Common<double> means, squares;
  Common<double> uppers;  // room to work

  void resize(int actions) {
    const auto places = static_cast<std::size_t>(padded(actions));
    means.assign(places, NO_SCORE);
    squares.assign(places, 0.0);
    uppers.resize(places);
  }
};

// ||phi||^2_{V^-1} of actions whose columns begin at `first`, as far as some rows of M go, from row i on: (M phi)_i^2
// is added for each.
template <int Together, int Many, class Number, int D>
[[gnu::always_inline]] inline void add_squares(const Matrix<D>& whitener, int i, const double* first,
                                               std::ptrdiff_t stride, std::ptrdiff_t apart, Number (&squares)[Many]) {
  const double* rows[Together];
  for (int r = 0; r < Together; ++r) rows[r] = whitener.row(i + r);
  Number sums[Together][Many] = {};
  const double* column = first;
#pragma GCC unroll 4
  for (int j = 0; j <= i; ++j, column += stride) {
    for (int k = 0; k < Many; ++k) {
      const Number x = take<Number>(column + k * apart);
      for (int r = 0; r < Together; ++r) sums[r][k] += rows[r][j] * x;
    }
  }
  for (int k = 0; k < Many; ++k) {
    for (int r = 0; r < Together; ++r) {
      for (int j = 1; j <= r; ++j) sums[r][k] += rows[r][i + j] * take<Number>(column + (j - 1) * stride + k * apart);
      squares[k] += sums[r][k] * sums[r][k];
    }
  }
}

// How many rows of M go together: while one sum waits, the others continue, and all stay in registers.
template <int Many>
inline constexpr int ROWS_TOGETHER = Many < 3 ? 4 : 2;

// <theta, phi> and ||phi||^2_{V^-1} of the actions at some places, each `apart` from the one before, term after term:
// equal rows have equal scores.
template <class Number, int Many, int D>
[[gnu::always_inline]] inline void score_at(const Ridge<D>& ridge, const Columns<D>& columns, int at,
                                            std::ptrdiff_t apart, Scores& scores) {
  const int d = ridge.dim();
  Number means[Many] = {}, squares[Many] = {};
  const double* first = columns.column(0) + at;
  const std::ptrdiff_t stride = columns.places;
  const bool is_ball = ridge.count == 0.0;
  for (int j = 0; j < d; ++j) {
    const double center = ridge.theta[j];
    for (int k = 0; k < Many; ++k) {
      const Number x = take<Number>(first + j * stride + k * apart);
      if (is_ball) {
        squares[k] += x * x;
      } else {
        means[k] += center * x;
      }
    }
  }
  for (int k = 0; k < Many; ++k) put(scores.means.data() + at + k * apart, means[k]);
  if (!is_ball) {
    int i = 0;
    const auto add = [&]<int Some>() __attribute__((always_inline)) {
      add_squares<Some>(ridge.whitener, i, first, stride, apart, squares);
      i += Some;
    };
    while (i + ROWS_TOGETHER<Many> <= d) add.template operator()<ROWS_TOGETHER<Many>>();
    if (i + 2 <= d) add.template operator()<2>();
    if (i < d) add.template operator()<1>();
  }
  for (int k = 0; k < Many; ++k) put(scores.squares.data() + at + k * apart, squares[k]);
}

// Means and squares of rows that are new.
template <int D, class Team>
void score_all(const Ridge<D>& ridge, const Columns<D>& columns, Scores& scores, const Team& team) {
  if constexpr (!std::is_same_v<typename Team::Number, double>) {
    int begin = 0;
    const auto left = [&] { return (columns.actions - begin + WIDTH<Register> - 1) / WIDTH<Register>; };
    const auto some = [&]<class Number, int Many>() __attribute__((always_inline)) {
      score_at<Number, Many>(ridge, columns, begin, WIDTH<Number>, scores);
      begin += Many * WIDTH<Number>;
    };
    if constexpr (WIDTH<Register> == WIDE) {
      // Eight numbers side by side keep a core busy alone.
      while (begin + WIDTH<Quad> < columns.actions) some.template operator()<Register, 1>();
      if (begin < columns.actions) some.template operator()<Quad, 1>();
    } else {
      // Several registers together share what they read of M; in few dimensions that is little.
      while (D == any && (left() > 5 || left() == 4)) some.template operator()<Register, 4>();
      if (D == any && left() == 5) some.template operator()<Register, 5>();
      if (D == any && left() == 3) some.template operator()<Register, 3>();
      while (left() >= 2) some.template operator()<Register, 2>();
      if (left() == 1) some.template operator()<Register, 1>();
    }
  } else {
    team.each_several(columns.places,
                      [&]<int Many>(int at, int apart) { score_at<double, Many>(ridge, columns, at, apart, scores); });
  }
  for (int i = columns.actions; i < columns.places; ++i) scores.means[static_cast<std::size_t>(i)] = NO_SCORE;
}

// <row, x> of four times Groups rows of M, from row i on, each added up over its columns one after the other.
template <int Groups, int D>
[[gnu::always_inline]] inline void products_at(const Matrix<D>& lower, int i, const double* x, int begin, int end,
                                               double* out) {
  Quad sums[Groups] = {};
  const auto row = [&](int g, int k) { return lower.row(i + 4 * g + k); };
  int j = begin;
  for (; j + 4 <= end; j += 4) {
    for (int g = 0; g < Groups; ++g) {
      const auto part = [&](int k) { return take<Quad>(row(g, k) + j); };
      const Square columns = turned({part(0), part(1), part(2), part(3)});
      sums[g] += columns.a * x[j];
      sums[g] += columns.b * x[j + 1];
      sums[g] += columns.c * x[j + 2];
      sums[g] += columns.e * x[j + 3];
    }
  }
  for (; j < end; ++j) {
    for (int g = 0; g < Groups; ++g) sums[g] += Quad{row(g, 0)[j], row(g, 1)[j], row(g, 2)[j], row(g, 3)[j]} * x[j];
  }
  for (std::ptrdiff_t g = 0; g < Groups; ++g) put(out + 4 * g, sums[g]);
}

// ||M x||^2 of a row that is zero beyond a span, which begins a block of its own or lies in one.
template <int D>
double square_in_block(const Matrix<D>& whitener, const double* x, Span span, Span block) {
  double square = 0.0;
  // Columns left of the row's first entry meet nothing but zeros, and so do rows of M above it.
  int i = span.begin;
  const auto add = [&]<int Groups>() {
    double entries[4 * Groups];
    const int last = i + 4 * Groups;
    products_at<Groups>(whitener, i, x, std::max(whitener.from(i), span.begin), std::min(last, span.end), entries);
    for (const double entry : entries) square += entry * entry;
    i = last;
  };
  while (i + 16 <= block.end) add.template operator()<4>();
  while (i + 4 <= block.end) add.template operator()<1>();
  for (; i < block.end; ++i) {
    double entry = 0.0;
    for (int j = std::max(whitener.from(i), span.begin); j < std::min(i + 1, span.end); ++j)
      entry += whitener(i, j) * x[j];
    square += entry * entry;
  }
  return square;
}

// The same row by row, without the zeros of a row and of M: what pays while there are several blocks.
template <int D>
void score_by_blocks(const Ridge<D>& ridge, Rows<D> rows, Scores& scores) {
  const int d = ridge.dim();
  for (int at = 0; at < rows.count; ++at) {
    const double* x = rows[at].data();
    const Span span = rows.width > 0 ? Span{at * rows.width, (at + 1) * rows.width} : span_of(x, d);
    double mean = 0.0, square = 0.0;
    for (int j = span.begin; j < span.end; ++j) mean += ridge.theta[j] * x[j];
    if (ridge.count == 0.0) {
      for (int j = span.begin; j < span.end; ++j) square += x[j] * x[j];
    } else {
      square = square_in_block(ridge.whitener, x, span, ridge.blocks.around(span));
    }
    scores.means[static_cast<std::size_t>(at)] = mean;
    scores.squares[static_cast<std::size_t>(at)] = square;
  }
}

// A mean and a square after an observation x, given <V^-1 x, phi>.
template <class Number, class Change>
[[gnu::always_inline]] inline void move_score(const Change& change, Number along, double* mean, double* square) {
  put(mean, take<Number>(mean) + change.error * along);
  put(square, larger(Number{} + 0.0, take<Number>(square) - change.gain * along * along));
}

// Where columns and their scores lie: by name, since a compiler must take it that what is written may be where a vector
// says where it begins.
template <int D>
struct Followed {
  const double* first;
  std::ptrdiff_t places;
  int dim_;
  double *means, *squares;

  Followed(const Columns<D>& columns, Scores& scores)
      : first(columns.column(0)),
        places(columns.places),
        dim_(columns.dim()),
        means(scores.means.data()),
        squares(scores.squares.data()) {}
  int dim() const { return D == any ? dim_ : D; }
};

// Scores at some places, each `apart` from the one before, after an observation x, by <V^-1 x, phi>. While one sum
// waits, the others continue.
template <int Many, class Number, int D>
[[gnu::always_inline]] inline void follow_at(const Followed<D>& from, const double* step,
                                             const typename Ridge<D>::Change& change, int at, std::ptrdiff_t apart) {
  Number along[Many];
  const double* first = from.first + at;
  for (int k = 0; k < Many; ++k) along[k] = take<Number>(first + k * apart) * step[0];
  for (int j = 1; j < from.dim(); ++j) {
    first += from.places;
    for (int k = 0; k < Many; ++k) along[k] += take<Number>(first + k * apart) * step[j];
  }
  for (int k = 0; k < Many; ++k) {
    move_score(change, along[k], from.means + at + k * apart, from.squares + at + k * apart);
  }
}

// All scores after an observation x, given V^-1 x.
template <int D, class Team>
[[gnu::always_inline]] inline void follow(const Columns<D>& columns, const double* step,
                                          const typename Ridge<D>::Change& change, Scores& scores, const Team& team) {
  const Followed<D> from(columns, scores);
  if constexpr (std::is_same_v<typename Team::Number, double>) {
    team.each_several(columns.places,
                      [&]<int Many>(int at, int apart) { follow_at<Many, double>(from, step, change, at, apart); });
  } else {
    // Sums of a few terms wait for nothing.
    const int quarter = D == any ? columns.places / (4 * WIDE) * WIDE : 0, behind = 4 * quarter;
    each_register(team, quarter, quarter,
                  [&]<class Number>(Number, int at) { follow_at<4, Number>(from, step, change, at, quarter); });
    each_register(team, columns.places - behind, columns.actions - behind,
                  [&]<class Number>(Number, int at)
                      __attribute__((always_inline)) { follow_at<1, Number>(from, step, change, behind + at, 0); });
  }
}

// The same after several observations, one after the other; each row is read once for four of them.
template <int D, class Team>
void follow_all(const Columns<D>& columns, const std::vector<double>& steps,
                const std::vector<typename Ridge<D>::Change>& changes, Scores& scores, const Team& team) {
  const auto d = static_cast<std::ptrdiff_t>(columns.dim());
  const auto count = static_cast<std::ptrdiff_t>(changes.size());
  const Followed<D> from(columns, scores);
  each_register(team, columns.places, columns.actions, [&]<class Number>(Number, int at) {
    const double* first = from.first + at;
    std::ptrdiff_t done = 0;
    for (; done + 4 <= count; done += 4) {
      const double* step = steps.data() + done * d;
      Number along[4];
      const Number x = take<Number>(first);
      for (int k = 0; k < 4; ++k) along[k] = x * step[k * d];
      for (std::ptrdiff_t j = 1; j < d; ++j) {
        const Number y = take<Number>(first + j * from.places);
        for (int k = 0; k < 4; ++k) along[k] += y * step[k * d + j];
      }
      for (int k = 0; k < 4; ++k) {
        move_score(changes[static_cast<std::size_t>(done + k)], along[k], from.means + at, from.squares + at);
      }
    }
    for (; done < count; ++done) {
      follow_at<1, Number>(from, steps.data() + done * d, changes[static_cast<std::size_t>(done)], at, 0);
    }
  });
}

// What a width counts: beta, or B while the set is the ball, whose widths are lengths.
template <int D>
double factor_of(const LinearSettings& s, const Ridge<D>& ridge, double beta) {
  if (ridge.count > 0.0) return beta;
  return s.exploration > 0.0 ? s.exploration / std::sqrt(s.ridge) : s.theta_bound;
}

// Whether one row alone may have the largest UCB, given that UCB: seen by the squares, without a root for every row.
template <class Team>
[[gnu::always_inline]] inline bool is_unrivalled(const Scores& scores, int actions, double upper, double factor,
                                                 const Team& team) {
  const double *means = scores.means.data(), *squares = scores.squares.data();
  // A row that may reach the bar, rounding included, counts as a rival; so does one that ties: among equals the first
  // must win, not the last best. What rounding does to a gap is far less than the share of it that is left out.
  const double square = factor * factor * (1.0 + 1e-12), bar = upper - 8.0 * EPS * std::fabs(upper);
  const int rivals = count_registers(team, actions, [&]<class Number>(Number, int at) __attribute__((always_inline)) {
    const Number gap = larger(Number{} + 0.0, bar - take<Number>(means + at));
    return square * take<Number>(squares + at) >= gap * gap;
  });
  return rivals == 1;  // the row itself
}

// The row with the largest UCB, the first one on a tie.  (paper, Algorithm 1, line 4)
template <class Team>
Proposal highest(Scores& scores, int actions, double factor, const Team& team) {
  const auto places = static_cast<int>(scores.means.size());
  const Largest found = team.largest(places, scores.uppers.data(), [&]<class Number>(int at) {
    return take<Number>(scores.means.data() + at) + factor * root(take<Number>(scores.squares.data() + at));
  });
  return found.place < actions ? Proposal{found.place, found.value} : Proposal{0, -INFINITE};  // no bound is a number
}

// The same. In most rounds one pass over the squares shows that the last best row still is.
template <int D, class Team>
Proposal optimistic(const LinearSettings& s, Ridge<D>& ridge, Scores& scores, int actions, double beta,
                    const Team& team) {
  const double factor = factor_of(s, ridge, beta);
  const auto guess = static_cast<std::size_t>(ridge.favourite < actions ? ridge.favourite : 0);
  const double bar = scores.means[guess] + factor * std::sqrt(scores.squares[guess]);
  if (is_unrivalled(scores, actions, bar, factor, team)) return {static_cast<int>(guess), bar};
  const Proposal best = highest(scores, actions, factor, team);
  ridge.favourite = best.action;
  return best;
}

}  // namespace surefoot
