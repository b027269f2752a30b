// What a split over facts proves.
#pragma once
#include <cmath>

#include "ellipsoid.hpp"
#include "facts.hpp"

namespace surefoot {

// The ellipsoid that a split leaves the rest to, and a bound on ||theta||.
template <int D>
struct Region {
  const Vector<D>& center;
  const Matrix<D>& whitener;
  double radius, bound;

  int dim() const { return center.size(); }

  // radius M x
  void whiten(const double* x, double* out) const {
    const Product<D> whitened{whitener, x};
    whitened.each(0, dim(), [&](int i, double entry) { out[i] = radius * entry; });
  }
  // c + radius M^T u
  void point(const double* u, double* theta) const {
    for (int j = 0; j < dim(); ++j) theta[j] = center[j];
    for (int i = 0; i < dim(); ++i) {
      const int from = whitener.from(i);
      add_scaled(theta + from, radius * u[i], whitener.row(i) + from, whitener.reach(i) - from);
    }
  }
};

// By how much rounding may have raised the value of a split.
inline double rounding_of(int d, int count, double size) { return 8.0 * (d + count + 4.0) * EPS * size; }

struct Weighed {
  double value, error;
};

// What a split proves: pieces weight * normal by each fact, tangents as one piece by the ball, and what is left of q by
// the ellipsoid. `weight(k)` is the weight of fact k.
template <int D, class Weight>
Weighed weigh(const Region<D>& region, const double* q, const Facts<D>& work, int count, Weight weight) {
  const int d = region.dim();
  Vector<D> rest(d), ball(d);
  double value = 0.0, size = 0.0, moved = 0.0;
  for (int j = 0; j < d; ++j) {
    rest[j] = q[j];
    moved += std::fabs(q[j]);
  }
  for (int k = 0; k < count; ++k) {
    const Fact<D>& fact = work[k];
    const double w = weight(k);
    double length = 0.0;
    for (int j = 0; j < d; ++j) {
      const double piece = w * fact.normal[j];
      rest[j] -= piece;
      length += std::fabs(piece);
      if (fact.kind == tangent) ball[j] += piece;
    }
    moved += length;
    if (fact.kind != tangent) {
      value += w * fact.level;
      size += std::fabs(w * fact.level);
    }
  }
  const double reach = ball_spread(region.bound, ball.data(), d);
  const Range left = ellipsoid_range<D>(region.center, region.whitener, region.radius, rest);
  // What each weight moved is charged at the largest ||theta||: rounding in `rest` hides there.
  size += std::fabs(left.mean) + left.spread + reach + (count + 2.0) * region.bound * moved;
  return {value + (left.low() - reach), rounding_of(d, count, size)};
}

template <int D>
Weighed weigh(const Region<D>& region, const double* q, const Facts<D>& work) {
  return weigh(region, q, work, work.count, [&](int k) { return work[k].weight; });
}

}  // namespace surefoot
