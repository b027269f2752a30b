// The paper's radius depends on nothing but the count of observations, so those of the next ones are computed side by
// side: one logarithm after the other would be what every round waits for.
#pragma once
#include <array>

#include "common.hpp"
#include "compiled_for.hpp"
#include "radius.hpp"
#include "team.hpp"

namespace surefoot {

class PaperRadii {
 public:
  static constexpr int AHEAD = 32;  // several registers of them: while one waits for a quotient, the others continue
  // As `paper_radius` has it; `is_next` where the settings are known to be those of before.
  template <class Team>
  [[gnu::always_inline]] double of(double observations, int dim, const LinearSettings& s, bool is_next,
                                   const Team& team) {
    // Written so that a count of NaN is looked at anew.
    const bool is_due = !(observations >= first_ && observations < first_ + AHEAD) ||
                        (SETTINGS_CHANGE && !is_next && told_by(s) != told_);
    if (team.is_due_for_any(is_due)) [[unlikely]] {
      told_ = told_by(s);
      first_ = observations;
      if constexpr (std::is_same_v<typename Team::Number, double>) {
        team.each(AHEAD, [&](int i) { radii_[static_cast<std::size_t>(i)] = paper_radius(first_ + i, dim, s); });
      } else {
        fill(dim, s);
      }
    }
    return radii_[static_cast<std::size_t>(static_cast<int>(observations - first_))];
  }

 private:
  struct Told {
    double noise, delta, ridge, theta_bound, feature_bound;
    bool operator==(const Told&) const = default;
  };
  static Told told_by(const LinearSettings& s) { return {s.noise, s.delta, s.ridge, s.theta_bound, s.feature_bound}; }
  // All of it in one loop, which a compiler can then map to vectors.
  [[gnu::flatten, gnu::noinline]] void fill(int dim, const LinearSettings& s) {
    for (int i = 0; i < AHEAD; ++i) radii_[static_cast<std::size_t>(i)] = paper_radius(first_ + i, dim, s);
  }

  Told told_{};
  double first_ = -AHEAD;
  OfTeam<std::array<double, AHEAD>> radii_{};
};

}  // namespace surefoot
