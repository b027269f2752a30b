// The paper's radius depends on nothing but the count of observations, so those of the next ones are computed side by
// side: one logarithm after the other would be what every round waits for.
#pragma once
#include <array>

#include "radius.hpp"

namespace surefoot {

class PaperRadii {
 public:
  // As `paper_radius` has it.
  double of(double observations, int dim, const LinearSettings& s) {
    const Told told{s.noise, s.delta, s.ridge, s.theta_bound, s.feature_bound};
    // Written so that a count of NaN is looked at anew.
    if (!(observations >= first_ && observations < first_ + WIDE) || told != told_) {
      told_ = told;
      first_ = observations;
      fill(dim, s);
    }
    return radii_[static_cast<std::size_t>(observations - first_)];
  }

 private:
  struct Told {
    double noise, delta, ridge, theta_bound, feature_bound;
    bool operator==(const Told&) const = default;
  };
  // All of it in one loop, which a compiler can then map to vectors.
  [[gnu::flatten]] void fill(int dim, const LinearSettings& s) {
    for (int i = 0; i < WIDE; ++i) radii_[static_cast<std::size_t>(i)] = paper_radius(first_ + i, dim, s);
  }

  Told told_{};
  double first_ = -WIDE;
  std::array<double, WIDE> radii_{};
};

}  // namespace surefoot
