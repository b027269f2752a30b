// The ramp of the guard: how large a share of the rounds to ask for. No proof rests on it; the gate has the last word.
//
// A reward of the baseline counts 1/(1 - p) times, so at a share p one unlucky reward takes up to (p - f)/(1 - p) from
// the bank, f the share that is free. The share to ask for is the one at which the bank lasts for seven of them,
//
//     (p - f)/(1 - p) = x,    x = bank/(7 v),    so p = (f + x)/(1 + x),
//
// with v the spread of the baseline's rewards, where 1 is that of rewards at the ends of their range alone. So the
// holdout 1 - p shrinks with the bank as that grows, and grows again with the losses of a learner that has become
// worse: the bank knows, whatever the learner is. (docs/mathematics.md, "The ramp")
#pragma once
#include <algorithm>

#include "bank.hpp"

namespace surefoot {

// Chosen by simulation (`python -m bench guard`); neither enters a proof.
inline constexpr double UNLUCKY = 7.0;  // rewards for which the bank is to last
inline constexpr double STEADY = 0.01;  // the least spread: rewards that never varied may do so yet

// How much of the share a learner keeps whose mean seems to be below the floor by `gap`: 1/z^2, if by z > 1 standard
// errors. So it is tried again and again, for it may learn.
constexpr double kept_at(double gap, double variance) {
  return gap > 0.0 ? std::min(1.0, variance / (gap * gap)) : 1.0;
}

// The budget is not spent on a learner that is below the floor by itself. Recent rewards tell whether it is; how far
// shows better in all rewards since it changed. One that has recovered is trusted at once.
constexpr double trust_of(const MetricSettings& s, const Bank& bank) {
  const SideEstimate &a = bank.learner, &b = bank.baseline;
  const double spread = std::max(a.spread, b.spread), floor = s.sign - s.alpha;
  const double recent = floor * b.mean - s.sign * a.mean, overall = floor * b.overall - s.sign * a.overall;
  if (recent <= 0.0) return 1.0;
  return std::min(kept_at(recent, spread * (1.0 / a.count + 1.0 / b.count)),
                  kept_at(overall, spread * (1.0 / a.rewards + 1.0 / b.rewards)));
}

// The share that the bank affords.
constexpr double affordable(const MetricSettings& s, const Bank& bank) {
  const double mean = bank.baseline.mean, most = std::max((mean - s.low) * (1.0 - mean), 1e-9);
  const double spread = std::min(std::max(bank.baseline.spread / most, STEADY), 1.0);
  const double reach = std::max(0.0, available(s, bank)) / (UNLUCKY * spread * (1.0 - s.low));
  return (free_share(s, 0.0) + reach) / (1.0 + reach);
}

}  // namespace surefoot
