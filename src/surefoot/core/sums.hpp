// Sums in one order on every machine, chosen so that vector units can follow it: eight partial sums side by side.
#pragma once
#include <cmath>

#include "elementary.hpp"
#include "lanes.hpp"

namespace surefoot {

inline constexpr double EPS = 0x1p-53;  // unit roundoff of float64

// Calls `work<Number>(i)` for all places below n, as many side by side as there are; what it computes at one place must
// not depend on another.
template <class Work>
[[gnu::always_inline]] inline void side_by_side(int n, Work work) {
  int i = 0;
  for (; i + WIDTH<Register> <= n; i += WIDTH<Register>) work.template operator()<Register>(i);
  if (WIDTH<Register> > WIDTH<Quad> && i + WIDTH<Quad> <= n) {
    work.template operator()<Quad>(i);
    i += WIDTH<Quad>;
  }
  for (; i < n; ++i) work.template operator()<double>(i);
}

// The sums of the rows of a square, each one after the other.
[[gnu::always_inline]] inline Quad totals(const Square& x) {
  const Square columns = turned(x);
  return (((Quad{} + columns.a) + columns.b) + columns.c) + columns.e;
}

// The sum of `term<Number>(i)` over all places below n: fewer than eight one after the other; more in eight partial
// sums, then the rest.
template <class Term>
[[gnu::always_inline]] inline double sum_of(int n, Term term) {
  double sum = 0.0;
  int i = 0;
  if (n >= WIDE) {
    Register sums[WIDE / WIDTH<Register>];
    for (Register& part : sums) {
      part = term.template operator()<Register>(i);
      i += WIDTH<Register>;
    }
    while (i + WIDE <= n) {
      for (Register& part : sums) {
        part += term.template operator()<Register>(i);
        i += WIDTH<Register>;
      }
    }
    sum = total(sums);
  }
  for (; i < n; ++i) sum += term.template operator()<double>(i);
  return sum;
}

// <x, y>
[[gnu::always_inline]] inline double dot(const double* x, const double* y, int n) {
  return sum_of(n, [&]<class Number>(int i) { return take<Number>(x + i) * take<Number>(y + i); });
}

inline double square_length(const double* x, int n) { return dot(x, x, n); }

// sum |x_i y_i|: the size of what a sum of products is made of.
[[gnu::always_inline]] inline double size_of_dot(const double* x, const double* y, int n) {
  return sum_of(n, [&]<class Number>(int i) { return absolute(take<Number>(x + i) * take<Number>(y + i)); });
}

// x += scale y
inline void add_scaled(double* x, double scale, const double* y, int n) {
  side_by_side(n, [&]<class Number>(int i) { put(x + i, take<Number>(x + i) + scale * take<Number>(y + i)); });
}

// The largest absolute value.
inline double largest(const double* x, int n) {
  double most = 0.0;
  for (int i = 0; i < n; ++i) most = larger(std::fabs(x[i]), most);
  return most;
}

}  // namespace surefoot
