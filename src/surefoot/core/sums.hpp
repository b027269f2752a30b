// Sums in one order on every machine, chosen so that vector units can follow it: eight partial sums side by side.
#pragma once
#include <cmath>
#include <cstring>

#include "elementary.hpp"

namespace surefoot {

inline constexpr double EPS = 0x1p-53;  // unit roundoff of float64
inline constexpr int WIDE = 8;          // numbers side by side

// Eight numbers, or four, on which + - * / work one by one; a compiler maps them to the registers of the processor.
using Lanes = double __attribute__((vector_size(WIDE * sizeof(double))));
using Quad = double __attribute__((vector_size(4 * sizeof(double))));

// One number, four or eight.
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

inline Lanes load(const double* x) { return take<Lanes>(x); }
inline void store(double* x, Lanes lanes) { put(x, lanes); }

inline Lanes spread(double x) { return Lanes{x, x, x, x, x, x, x, x}; }

inline double total(Lanes x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }

// Calls `work<Number>(i)` for all places below n, as many side by side as there are; what it computes at one place must
// not depend on another.
template <class Work>
[[gnu::always_inline]] inline void side_by_side(int n, Work work) {
  int i = 0;
  for (; i + WIDE <= n; i += WIDE) work.template operator()<Lanes>(i);
  if (i + 4 <= n) {
    work.template operator()<Quad>(i);
    i += 4;
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

// <x, y>: fewer than eight terms one after the other; more in eight partial sums, then the rest.
[[gnu::always_inline]] inline double dot(const double* x, const double* y, int n) {
  double sum = 0.0;
  int i = 0;
  if (n >= WIDE) {
    Lanes sums = load(x) * load(y);
    for (i = WIDE; i + WIDE <= n; i += WIDE) sums += load(x + i) * load(y + i);
    sum = total(sums);
  }
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

inline double square_length(const double* x, int n) { return dot(x, x, n); }

template <class Number>
Number absolute(Number x) {
  return x < 0.0 ? -x : x;
}

// sum |x_i y_i|, in the same order: the size of what a sum of products is made of.
[[gnu::always_inline]] inline double size_of_dot(const double* x, const double* y, int n) {
  double sum = 0.0;
  int i = 0;
  if (n >= WIDE) {
    Lanes sums = absolute(load(x) * load(y));
    for (i = WIDE; i + WIDE <= n; i += WIDE) sums += absolute(load(x + i) * load(y + i));
    sum = total(sums);
  }
  for (; i < n; ++i) sum += absolute(x[i] * y[i]);
  return sum;
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
