// In the place of `quad.hpp`: four numbers of which each of four lanes has one. What the core computes with four
// numbers side by side, as a CPU's vector unit does, a team of four lanes then shares, with the same bits.
#pragma once
#include "board.hpp"
#include "quotient.hpp"

namespace surefoot {

inline unsigned own_team() { return 0xFU << (threadIdx.x & 28U); }
inline int own_place() { return static_cast<int>(threadIdx.x % 4); }

// The number of one of the lanes of the team, for all of it. They come here together, and wherever one tells its
// numbers to the others.
__forceinline__ double of_lane(double own, int lane) { return __shfl_sync(own_team(), own, lane, 4); }

struct Quad {
  double own;

  Quad() : own(0.0) {}
  explicit Quad(double own_) : own(own_) {}
  Quad(double a, double b, double c, double e) {
    const int place = own_place();
    const double low = place == 0 ? a : b, high = place == 2 ? c : e;
    own = place < 2 ? low : high;
  }

  double operator[](int i) const { return of_lane(own, i); }
  Quad& operator+=(const Quad& other) { return *this = *this + other; }

  friend Quad operator+(const Quad& a, const Quad& b) { return Quad(a.own + b.own); }
  friend Quad operator-(const Quad& a, const Quad& b) { return Quad(a.own - b.own); }
  friend Quad operator*(const Quad& a, const Quad& b) { return Quad(a.own * b.own); }
  friend Quad operator/(const Quad& a, const Quad& b) { return Quad(quotient(a.own, b.own)); }
  friend Quad operator*(double a, const Quad& b) { return Quad(a * b.own); }
  friend Quad operator*(const Quad& a, double b) { return Quad(a.own * b); }
};
template <>
inline constexpr int WIDTH<Quad> = 4;

inline Quad root(const Quad& x) { return Quad(root(x.own)); }
inline Quad larger(const Quad& x, const Quad& y) { return Quad(larger(x.own, y.own)); }
inline Quad absolute(const Quad& x) { return Quad(absolute(x.own)); }

template <int D>
inline constexpr bool IS_DEALT = D == 4;

// Where dealt numbers stand: four by four, of which this lane has one each.
template <class Number>
struct Dealt {
  Number* own;

  Dealt operator+(std::ptrdiff_t numbers) const { return {own + numbers / 4}; }
  Dealt& operator+=(std::ptrdiff_t numbers) { return *this = *this + numbers; }
  double operator[](int i) const { return of_lane(own[i / 4], i % 4); }
};

template <class Number, class From>
Number take(Dealt<From> from) {
  if constexpr (std::is_same_v<Number, Quad>) {
    return Quad(*from.own);
  } else {
    return from[0];
  }
}
template <class Number>
void put(Dealt<double> to, const Number& values) {
  if constexpr (std::is_same_v<Number, Quad>) {
    *to.own = values.own;
  } else {
    __trap();  // four come together
  }
}

// What lies in memory whole.
template <>
__forceinline__ Quad take<Quad>(const double* from) {
  return Quad(from[0], from[1], from[2], from[3]);
}

__forceinline__ std::array<double, 4> spread(const Quad& x) { return gpu::board().spread(x.own, own_team()); }

// Every lane has all four then.
template <>
__forceinline__ void put<Quad>(double* to, const Quad& values) {
  const std::array<double, 4> all = spread(values);
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = all[i];
}

template <class Square>
__forceinline__ Square turn(const Square& x) {
  return gpu::board().turned(x, own_team());
}

// ((0 + x0) + x1) + ..., as the core adds up fewer than eight.
__forceinline__ double in_order(const Quad& terms) {
  const std::array<double, 4> x = spread(terms);
  return (((0.0 + x[0]) + x[1]) + x[2]) + x[3];
}

template <class From, class At>
__forceinline__ double dot(Dealt<From> x, At y, int) {
  return in_order(take<Quad>(x) * take<Quad>(y));
}
template <class From, class At>
__forceinline__ double size_of_dot(Dealt<From> x, At y, int) {
  return in_order(absolute(take<Quad>(x) * take<Quad>(y)));
}
template <class From>
__forceinline__ double square_length(Dealt<From> x, int n) {
  return dot(x, x, n);
}

}  // namespace surefoot
