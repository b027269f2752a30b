// The step of a guard over all its metrics: ask for a share, book the round, take its rewards in.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

#include "bank.hpp"
#include "lift.hpp"
#include "ramp.hpp"

namespace surefoot {

// How large a share to ask for: what the bank affords, of a learner that must keep the floor by itself (earn) or of one
// that may spend the budget (save); the free share alone; or all that is allowed.
enum class Ramp { earn, save, free, gate };

// The same of one metric, at most what is allowed.
constexpr double share_of(const MetricSettings& s, const Bank& bank, Ramp ramp) {
  const double most = allowed(s, bank);
  switch (ramp) {
    case Ramp::earn:
      return std::min(most, affordable(s, bank) * trust_of(s, bank));
    case Ramp::save:
      return std::min(most, affordable(s, bank));
    case Ramp::free:
      return std::min(most, free_share(s, 0.0));
    default:
      return most;
  }
}

// The share of the next proposal: the least over all metrics, at most `largest`.
constexpr double share_of(std::span<const MetricSettings> settings, std::span<const Bank> banks, Ramp ramp,
                          double largest) {
  double share = largest;
  for (std::size_t i = 0; i < banks.size(); ++i) share = std::min(share, share_of(settings[i], banks[i], ramp));
  return share;
}

// What every metric will settle a round by; a prediction that is NaN is the running mean.
inline void plan_round(std::span<const MetricSettings> settings, std::span<const Bank> banks, double share,
                       std::span<const double> predicted, std::span<Booked> booked) {
  for (std::size_t i = 0; i < banks.size(); ++i) {
    booked[i] = booked_of(settings[i], banks[i], share, predicted.empty() ? NOT_A_NUMBER : predicted[i]);
  }
}

// Charge a round to every bank at its worst.
inline void charge_round(std::span<const MetricSettings> settings, std::span<Bank> banks, double share,
                         bool is_learner) {
  for (std::size_t i = 0; i < banks.size(); ++i) charge(settings[i], banks[i], share, is_learner);
}

// Take in the rewards of the next round, or of a late one that entered without them, one for each metric; NaN where it
// is missing.
inline void enter_round(std::span<const MetricSettings> settings, std::span<Bank> banks, double share,
                        std::span<const Booked> booked, bool is_learner, std::span<const double> rewards,
                        bool is_late) {
  for (std::size_t i = 0; i < banks.size(); ++i) {
    enter(settings[i], banks[i], share, booked[i], is_learner, rewards[i], is_late);
  }
}

// The same for what is told of the lift.
inline void enter_lifts(std::span<const MetricSettings> settings, std::span<Lift> lifts, double share,
                        std::span<const Booked> booked, bool is_learner, std::span<const double> rewards,
                        bool is_late) {
  for (std::size_t i = 0; i < lifts.size(); ++i) {
    enter_lift(lifts[i], settings[i].low, share, booked[i], is_learner, rewards[i], is_late);
  }
}

}  // namespace surefoot
