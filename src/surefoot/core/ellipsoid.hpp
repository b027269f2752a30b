// What the data leave possible for theta: the ball of radius B, and the ellipsoid ||theta - center||_V <= radius.
#pragma once
#include <cmath>

#include "ridge.hpp"
#include "sums.hpp"
#include "vector.hpp"

namespace surefoot {

inline constexpr double UNKNOWN = 1e300;  // the radius of a set that says nothing: beyond all bounds, still a number

// <theta, q> lies within `spread` of `mean`.
struct Range {
  double mean, spread;
  double low() const { return mean - spread; }
  double high() const { return mean + spread; }
};

// B ||q||: how far <theta, q> reaches to both sides of 0 over the ball.
template <class At>
double ball_spread(double bound, At q, int d) {
  // Rounded up: d terms, a root and two products cost less than d + 4 roundings.
  return bound * std::sqrt(square_length(q, d)) * (1.0 + (d + 4.0) * EPS);
}

// <center, q>, and radius ||q||_{V^-1} to both sides of it.  (paper, eq. 5)
template <int D, class Question>
Range ellipsoid_range(const Vector<D>& center, const Matrix<D>& whitener, double radius, const Question& q) {
  const int d = center.size();
  const double square = square_of_product(whitener, q.data());
  const double size = size_of_dot(center.data(), q.data(), d);
  return {dot(center.data(), q.data(), d), radius * std::sqrt(square) + (d + 4.0) * EPS * size};
}

// The same over the ellipsoid exactly as it is written down; the spread includes all rounding of this sum.
inline Range careful_range(const double* center, const double* whitener, double radius, const double* q, int d) {
  double mean = 0.0, size = 0.0, square = 0.0, sizes = 0.0;
  for (int i = 0; i < d; ++i) {
    const double* row = whitener + static_cast<std::ptrdiff_t>(i) * d;
    mean += center[i] * q[i];
    size += std::fabs(center[i] * q[i]);
    const double entry = dot(row, q, i + 1), large = size_of_dot(row, q, i + 1);
    square += entry * entry;
    sizes += large * large;
  }
  const double off = (d + 8.0) * EPS;
  const double spread = radius * (std::sqrt(square) * (1.0 + off) + off * std::sqrt(sizes));
  return {mean, spread + off * (size + spread)};
}

// A radius with room for a center that is off by 2 drift sqrt(energy), and for widths that are off by drift.
inline double widened(double radius, double drift, double energy, int d) {
  return (radius + 2.0 * drift * std::sqrt(energy)) * (1.0 + drift + 4.0 * (d + 4.0) * EPS);
}

// The radius beta, widened by what rounding may have done to center and whitener; if that may be more than can be
// bounded, the ellipsoid says nothing.
template <int D>
[[gnu::always_inline]] inline double guarded_radius(const Ridge<D>& ridge, double beta) {
  // Written so that a drift of NaN says nothing, too.
  return ridge.drift <= DRIFT_USABLE ? widened(beta, ridge.drift, ridge.energy, ridge.dim()) : UNKNOWN;
}

// An ellipsoid that is kept as it was.
template <int D>
struct Ellipsoid {
  Vector<D> center;
  Matrix<D> whitener;

  explicit Ellipsoid(int dim) : center(dim), whitener(dim) {}

  // Center 0 and whitener I: with a radius beyond all bounds, a set that says nothing.
  void forget() {
    center.fill(0.0);
    whitener.identity(1.0);
  }
};

}  // namespace surefoot
