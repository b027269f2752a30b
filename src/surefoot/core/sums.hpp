// Sums in one order on every machine, chosen so that vector units can follow it: eight partial sums side by side.
#pragma once
#include <cmath>
#include <cstring>

#include "elementary.hpp"

namespace surefoot {

inline constexpr double EPS = 0x1p-53;  // unit roundoff of float64
inline constexpr int WIDE = 8;          // numbers side by side

// Eight numbers, on which + - * / work one by one; a compiler maps them to the registers that the processor has.
using Lanes = double __attribute__((vector_size(WIDE * sizeof(double))));

inline Lanes load(const double* x) {
  Lanes lanes;
  std::memcpy(&lanes, x, sizeof lanes);
  return lanes;
}

inline void store(double* x, Lanes lanes) { std::memcpy(x, &lanes, sizeof lanes); }

inline Lanes spread(double x) { return Lanes{x, x, x, x, x, x, x, x}; }

inline double total(Lanes x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }

// One number, or eight.
template <class Number>
Number take(const double* x);
template <>
inline double take<double>(const double* x) {
  return *x;
}
template <>
inline Lanes take<Lanes>(const double* x) {
  return load(x);
}

inline void put(double* x, double value) { *x = value; }
inline void put(double* x, Lanes values) { store(x, values); }

inline double larger(double x, double y) { return x > y ? x : y; }
inline Lanes larger(Lanes x, Lanes y) { return x > y ? x : y; }

inline double root(double x) { return std::sqrt(x); }

inline Lanes root(Lanes x) {
  for (int i = 0; i < WIDE; ++i) x[i] = std::sqrt(x[i]);
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

inline double absolute(double x) { return x < 0.0 ? -x : x; }
inline Lanes absolute(Lanes x) { return x < 0.0 ? -x : x; }

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
  int i = 0;
  for (; i + WIDE <= n; i += WIDE) store(x + i, load(x + i) + scale * load(y + i));
  for (; i < n; ++i) x[i] += scale * y[i];
}

// The largest absolute value.
inline double largest(const double* x, int n) {
  double most = 0.0;
  for (int i = 0; i < n; ++i) most = larger(std::fabs(x[i]), most);
  return most;
}

}  // namespace surefoot
