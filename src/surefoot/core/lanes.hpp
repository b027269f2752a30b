// Several numbers side by side, on which + - * / work one by one: what vector units of a CPU compute with. On a GPU,
// whose lanes are threads, `gpu/lanes.hpp` stands in its place.
#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>

namespace surefoot {

inline constexpr int WIDE = 8;  // numbers side by side

// Eight numbers, four or two.
using Lanes = double __attribute__((vector_size(WIDE * sizeof(double))));
using Quad = double __attribute__((vector_size(4 * sizeof(double))));
using Pair = double __attribute__((vector_size(2 * sizeof(double))));

// As many as a register of this processor holds. Compilers keep what is wider in memory, which takes up to ten times as
// long.
using Register = std::conditional_t<(__BIGGEST_ALIGNMENT__ >= sizeof(Lanes)), Lanes,
                                    std::conditional_t<(__BIGGEST_ALIGNMENT__ >= sizeof(Quad)), Quad, Pair>>;
template <class Number>
inline constexpr int WIDTH = static_cast<int>(sizeof(Number) / sizeof(double));  // NOLINT(bugprone-sizeof-expression)

inline constexpr int NARROW = __BIGGEST_ALIGNMENT__ / sizeof(float);  // single numbers side by side, in a register
using SingleLanes = float __attribute__((vector_size(NARROW * sizeof(float))));

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

template <class Number>
Number larger(Number x, Number y) {
  return x > y ? x : y;
}

template <class Number>
Number absolute(Number x) {
  return x < 0.0 ? -x : x;
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

// The first numbers of two pairs, and the second ones.
inline Pair firsts(Pair a, Pair b) { return __builtin_shufflevector(a, b, 0, 2); }
inline Pair seconds(Pair a, Pair b) { return __builtin_shufflevector(a, b, 1, 3); }

// How many of the tests hold.
inline int holding(bool test) { return test ? 1 : 0; }
template <class Mask>
  requires(!std::is_same_v<Mask, bool>)
inline int holding(Mask tests) {
  int count = 0;
  for (int i = 0; i < WIDTH<Mask>; ++i) count += tests[i] != 0;
  return count;
}

}  // namespace surefoot
