// Sums in one order on every machine, chosen so that vector units can follow it: eight partial sums side by side.
#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>

#include "elementary.hpp"

namespace surefoot {

inline constexpr double EPS = 0x1p-53;  // unit roundoff of float64
inline constexpr int WIDE = 8;          // numbers side by side

// Eight numbers, four or two, on which + - * / work one by one.
using Lanes = double __attribute__((vector_size(WIDE * sizeof(double))));
using Quad = double __attribute__((vector_size(4 * sizeof(double))));
using Pair = double __attribute__((vector_size(2 * sizeof(double))));

// As many as a register of this processor holds. Compilers keep what is wider in memory, which takes up to ten times as
// long.
using Register = std::conditional_t<(__BIGGEST_ALIGNMENT__ >= sizeof(Lanes)), Lanes,
                                    std::conditional_t<(__BIGGEST_ALIGNMENT__ >= sizeof(Quad)), Quad, Pair>>;
template <class Number>
inline constexpr int WIDTH = static_cast<int>(sizeof(Number) / sizeof(double));  // NOLINT(bugprone-sizeof-expression)

// One number, or several.
template <class Number>
Number take(const double* x) {
  Number values;
  std::memcpy(&values, x, sizeof values);
  return values;
}

template <class Number>
void put(double* x, Number values) {
  std::memcpy(x, &values, sizeof values);
}

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

template <class Number>
Number larger(Number x, Number y) {
  return x > y ? x : y;
}

inline double root(double x) { return std::sqrt(x); }

template <class Number>
inline Number root(Number x) {
  for (std::size_t i = 0; i < sizeof x / sizeof(double); ++i) x[i] = std::sqrt(x[i]);
  return x;
}

// ((x0 + x4) + (x2 + x6)) + ((x1 + x5) + (x3 + x7)) of eight numbers, in as many registers as they take.
inline double total(const Lanes (&x)[1]) {
  const Quad half = __builtin_shufflevector(x[0], x[0], 0, 1, 2, 3) + __builtin_shufflevector(x[0], x[0], 4, 5, 6, 7);
  return (half[0] + half[2]) + (half[1] + half[3]);
}
inline double total(const Quad (&x)[2]) {
  const Quad half = x[0] + x[1];
  return (half[0] + half[2]) + (half[1] + half[3]);
}
inline double total(const Pair (&x)[4]) {
  const Pair quarter = (x[0] + x[2]) + (x[1] + x[3]);
  return quarter[0] + quarter[1];
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

template <class Number>
Number absolute(Number x) {
  return x < 0.0 ? -x : x;
}

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
