// Four numbers, which every lane has whole; where they are dealt to four lanes, `dealt/quad.hpp` stands in its place.
#pragma once

namespace surefoot {

using Quad = Several<4>;

inline double root(double x) { return std::sqrt(x); }
inline double quotient(double x, double y) { return x / y; }

template <int D>
inline constexpr bool IS_DEALT = false;

inline std::array<double, 4> spread(const Quad& x) { return {x[0], x[1], x[2], x[3]}; }

template <class Square>
Square turn(const Square& x) {
  const auto column = [&](int i) { return Quad{x.a[i], x.b[i], x.c[i], x.e[i]}; };
  return {column(0), column(1), column(2), column(3)};
}

}  // namespace surefoot
