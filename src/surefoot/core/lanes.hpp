// Several numbers side by side, on which + - * / work one by one: what vector units of a CPU compute with. On a GPU,
// whose lanes are threads, `gpu/lanes.hpp` stands in its place.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
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
using SingleQuad = float __attribute__((vector_size(4 * sizeof(float))));

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
// Asks for what is read later; a CPU sees by itself what is read one after the other.
inline void fetch_ahead(const double*) {}

template <class Number>
inline Number root(Number x) {
  for (std::size_t i = 0; i < sizeof x / sizeof(double); ++i) x[i] = std::sqrt(x[i]);
  return x;
}

// The upper half of eight numbers added to the lower one, in as many registers as they take.
inline Quad halved(const Lanes (&x)[1]) {
  return __builtin_shufflevector(x[0], x[0], 0, 1, 2, 3) + __builtin_shufflevector(x[0], x[0], 4, 5, 6, 7);
}
inline Quad halved(const Quad (&x)[2]) { return x[0] + x[1]; }
inline Quad halved(const Pair (&x)[4]) { return __builtin_shufflevector(x[0] + x[2], x[1] + x[3], 0, 1, 2, 3); }

// ((x0 + x4) + (x2 + x6)) + ((x1 + x5) + (x3 + x7)) of eight numbers.
template <std::size_t Parts, class Number>
inline double total(const Number (&x)[Parts]) {
  const Quad half = halved(x);
  return (half[0] + half[2]) + (half[1] + half[3]);
}

// Its numbers one by one.
[[gnu::always_inline]] inline std::array<double, 4> spread(Quad x) { return {x[0], x[1], x[2], x[3]}; }

// Of four numbers in memory.
[[gnu::always_inline]] inline std::array<double, 4> squares_of(const double* x) {
  const Quad numbers = take<Quad>(x);
  return spread(numbers * numbers);
}

inline SingleQuad narrowed(Quad x) { return __builtin_convertvector(x, SingleQuad); }

// Four times four numbers.
struct Square {
  Quad a, b, c, e;
};

// Rows as columns, in as few steps as it takes.
[[gnu::always_inline]] inline Square turned(const Square& x) {
  const Quad even = __builtin_shufflevector(x.a, x.b, 0, 4, 2, 6), odd = __builtin_shufflevector(x.a, x.b, 1, 5, 3, 7);
  const Quad next = __builtin_shufflevector(x.c, x.e, 0, 4, 2, 6), last = __builtin_shufflevector(x.c, x.e, 1, 5, 3, 7);
  return {__builtin_shufflevector(even, next, 0, 1, 4, 5), __builtin_shufflevector(odd, last, 0, 1, 4, 5),
          __builtin_shufflevector(even, next, 2, 3, 6, 7), __builtin_shufflevector(odd, last, 2, 3, 6, 7)};
}

// How many of the tests hold; side by side, a test that holds is -1.
inline int holding(bool test) { return test ? 1 : 0; }
template <class Mask>
  requires(!std::is_same_v<Mask, bool>)
inline int holding(Mask tests) {
  if constexpr (WIDTH<Mask> == WIDE) {
    return holding(__builtin_shufflevector(tests, tests, 0, 1, 2, 3) +
                   __builtin_shufflevector(tests, tests, 4, 5, 6, 7));
  } else if constexpr (WIDTH<Mask> == WIDTH<Quad>) {
    return holding(__builtin_shufflevector(tests, tests, 0, 1) + __builtin_shufflevector(tests, tests, 2, 3));
  } else {
    return -static_cast<int>(tests[0] + tests[1]);
  }
}

}  // namespace surefoot
