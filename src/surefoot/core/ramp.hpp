// The ramp of the guard: how large a share of the rounds to ask for. No proof rests on it; the gate has the last word.
//
// With a holdout h = 1 - p kept up for t more rounds, the slack grows by D t, D = sign m_a + (alpha - sign) m_b, and
// the variance of its estimate by m t/h, m = (1 - sign alpha)^2 var_b, var_b the spread of the baseline's rewards
// around what was predicted of them. The bound stays above 0 for all t to come if
//
//     h >= event m / (D (G + sqrt(L (2G - L)))),      G what was estimated of the slack so far, L its bound.
//
// That makes the holdout shrink like 1/t. A quarter more is asked for, and more than that where L is small beside G: a
// bound that falls to 0 has to be earned again at the free share, which takes long. (docs/mathematics.md, "The ramp")
#pragma once
#include <algorithm>
#include <cmath>

#include "bank.hpp"

namespace surefoot {

// All of these were chosen by simulation (`python -m bench guard`); none enters a proof.
inline constexpr double CAUTION = 1.25;  // times the holdout that would just do
inline constexpr double STEADY = 0.3;    // of the first term of G + sqrt(L (2G - L)), 3 alpha at most: the less, the
                                         // harder a bound near 0 brakes
inline constexpr double BET = 0.4;       // the largest share of its wealth that the best rate may lose in one round
inline constexpr double WORSE = 4.0;     // standard errors below the floor at which a learner is left to probes
inline constexpr double SHRINK = 0.1;    // of the squared error of a lift, against which the lift is shrunk
inline constexpr double PROBE = 0.05;    // of the free share

// The holdout at which a round cannot cost the best rate more than BET of its wealth.
constexpr double affordable_holdout(const MetricSettings& s, const Bank& bank) {
  const double largest = BET / bank.rate, mean = bank.baseline.mean;
  if (is_floor(s)) return (1.0 - s.alpha) * (1.0 - mean) / (largest + 1.0 - (1.0 - s.alpha) * mean);
  const double scale = (1.0 + s.alpha) * mean;
  return scale / (largest + scale);
}

// The holdout that keeps the bound above 0; all of it where nothing is earned.
inline double steady_holdout(const MetricSettings& s, const Bank& bank, double error, double spread) {
  const double weight = s.alpha - s.sign, lift = s.sign * (bank.learner.mean - bank.baseline.mean);
  const double gain = lift * (lift * lift / (lift * lift + SHRINK * error)) + s.alpha * bank.baseline.mean;
  const double bound = bank.bound + s.reserve - bank.owed, total = bank.total + s.reserve - bank.owed;
  if (bound <= 0.0 || gain <= 0.0) return 1.0;
  const double reach = std::min(STEADY, 3.0 * s.alpha) * total + std::sqrt(bound * std::max(0.0, 2.0 * total - bound));
  return CAUTION * s.event * weight * weight * spread / (gain * reach);
}

// The share to ask for: at least a probe.
inline double wanted(const MetricSettings& s, const Bank& bank) {
  // Rewards that never varied must not look as if no holdout were needed.
  const double weight = s.alpha - s.sign, spread = std::max(bank.baseline.spread, 1e-9);
  const double gain = s.sign * bank.learner.mean + weight * bank.baseline.mean;
  // Of a cost no share need be free: the gate then cuts this to what the bank can pay.
  const double start = is_floor(s) ? free_share(s, 0.0) : s.alpha;
  const double error = bank.learner.spread / bank.learner.count + weight * weight * spread / bank.baseline.count;
  if (gain < -WORSE * std::sqrt(error)) return PROBE * start;
  return std::max(start, 1.0 - std::max(steady_holdout(s, bank, error, spread), affordable_holdout(s, bank)));
}

}  // namespace surefoot
