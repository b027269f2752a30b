// In the place of the core's `lanes.hpp`: on a GPU the lanes are threads, and several numbers are simply several.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace surefoot {

inline constexpr int WIDE = 8;

template <int N>
struct Several {
  double x[N];

  double& operator[](int i) { return x[i]; }
  double operator[](int i) const { return x[i]; }
  Several& operator+=(const Several& other) { return *this = *this + other; }

  template <class Each>
  static Several by(Each each) {
    Several made;
#pragma unroll
    for (int i = 0; i < N; ++i) made.x[i] = each(i);
    return made;
  }
  friend Several operator+(const Several& a, const Several& b) {
    return by([&](int i) { return a.x[i] + b.x[i]; });
  }
  friend Several operator-(const Several& a, const Several& b) {
    return by([&](int i) { return a.x[i] - b.x[i]; });
  }
  friend Several operator*(const Several& a, const Several& b) {
    return by([&](int i) { return a.x[i] * b.x[i]; });
  }
  friend Several operator/(const Several& a, const Several& b) {
    return by([&](int i) { return a.x[i] / b.x[i]; });
  }
  friend Several operator+(const Several& a, double b) {
    return by([&](int i) { return a.x[i] + b; });
  }
  friend Several operator-(const Several& a, double b) {
    return by([&](int i) { return a.x[i] - b; });
  }
  friend Several operator-(double a, const Several& b) {
    return by([&](int i) { return a - b.x[i]; });
  }
  friend Several operator*(double a, const Several& b) {
    return by([&](int i) { return a * b.x[i]; });
  }
  friend Several operator*(const Several& a, double b) {
    return by([&](int i) { return a.x[i] * b; });
  }
};

// Which of several comparisons hold.
template <int N>
struct Tests {
  bool x[N];
};
template <int N>
Tests<N> operator<=(const Several<N>& a, double b) {
  Tests<N> made;
  for (int i = 0; i < N; ++i) made.x[i] = a.x[i] <= b;
  return made;
}

using Lanes = Several<8>;
using Pair = Several<2>;
template <class Number>
inline constexpr int WIDTH = static_cast<int>(sizeof(Number) / sizeof(double));

inline constexpr int NARROW = 4;
struct SingleLanes {
  float x[NARROW];

  float& operator[](int i) { return x[i]; }
  float operator[](int i) const { return x[i]; }
  SingleLanes& operator+=(const SingleLanes& other) {
    for (int i = 0; i < NARROW; ++i) x[i] += other.x[i];
    return *this;
  }
  friend SingleLanes operator*(float a, SingleLanes b) {
    for (int i = 0; i < NARROW; ++i) b.x[i] *= a;
    return b;
  }
  friend SingleLanes operator*(SingleLanes a, const SingleLanes& b) {
    for (int i = 0; i < NARROW; ++i) a.x[i] *= b.x[i];
    return a;
  }
};

template <class Number>
Number take(const double* from) {
  if constexpr (std::is_same_v<Number, double>) {
    return *from;
  } else {
    return Number::by([&](int i) { return from[i]; });
  }
}

template <class Number>
void put(double* to, const Number& values) {
  if constexpr (std::is_same_v<Number, double>) {
    *to = values;
  } else {
#pragma unroll
    for (int i = 0; i < WIDTH<Number>; ++i) to[i] = values.x[i];
  }
}

inline void fetch_ahead(const double* there) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(there));
#endif
}

inline double larger(double x, double y) { return x > y ? x : y; }
inline double absolute(double x) { return fabs(x); }
template <int N>
Several<N> larger(const Several<N>& x, const Several<N>& y) {
  return Several<N>::by([&](int i) { return larger(x.x[i], y.x[i]); });
}
template <int N>
Several<N> absolute(const Several<N>& x) {
  return Several<N>::by([&](int i) { return absolute(x.x[i]); });
}
template <int N>
Several<N> root(const Several<N>& x) {
  return Several<N>::by([&](int i) { return std::sqrt(x.x[i]); });
}

inline int holding(bool test) { return test ? 1 : 0; }
template <int N>
int holding(const Tests<N>& tests) {
  int count = 0;
  for (int i = 0; i < N; ++i) count += tests.x[i] ? 1 : 0;
  return count;
}

struct SingleQuad {
  float x[4];
};

using Quad = Several<4>;
using Register = Quad;

inline double root(double x) { return std::sqrt(x); }
inline std::array<double, 4> spread(const Quad& x) { return {x[0], x[1], x[2], x[3]}; }

struct Square {
  Quad a, b, c, e;
};
inline std::array<double, 4> squares_of(const double* x) {
  return {x[0] * x[0], x[1] * x[1], x[2] * x[2], x[3] * x[3]};
}
// Rows as columns.
inline Square turned(const Square& x) {
  const auto column = [&](int i) { return Quad{x.a[i], x.b[i], x.c[i], x.e[i]}; };
  return {column(0), column(1), column(2), column(3)};
}

// In the core's order.
inline Quad halved(const Quad (&x)[2]) { return x[0] + x[1]; }
inline double total(const Quad (&x)[2]) {
  const Quad half = halved(x);
  return (half[0] + half[2]) + (half[1] + half[3]);
}
inline SingleQuad narrowed(const Quad& x) {
  return {static_cast<float>(x[0]), static_cast<float>(x[1]), static_cast<float>(x[2]), static_cast<float>(x[3])};
}

}  // namespace surefoot
