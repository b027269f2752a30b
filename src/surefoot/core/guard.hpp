// The step of a guard over all its metrics: ask for a share, book the round, take its rewards in.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "bank.hpp"
#include "lift.hpp"
#include "ramp.hpp"

namespace surefoot {

// How large a share to ask for: what is earned back soonest, the free share alone, or all that is allowed.
enum class Ramp { automatic, free, gate };

// In place of what is predicted of the baseline: nothing, so that the balance h is 0. NaN stands for the running mean.
inline constexpr double NOT_PREDICTED = INFINITE;

// The share of the next proposal: the least that every metric allows and the ramp asks for, at most `largest`.
inline double share_of(std::span<const MetricSettings> settings, std::span<const Bank> banks, Ramp ramp,
                       double largest) {
  double share = largest;
  for (std::size_t i = 0; i < banks.size(); ++i) {
    share = std::min(share, allowed(settings[i], banks[i]));
    if (ramp == Ramp::automatic) share = std::min(share, wanted(settings[i], banks[i]));
    if (ramp == Ramp::free) share = std::min(share, free_share(settings[i], 0.0));
  }
  return share;
}

// What one metric will settle a round by, from the means of a bank that is known before the coin: the guard's own, or
// the one that a lease froze.
inline Booked booked_of(const MetricSettings& s, const Bank& bank, double share, double predicted) {
  // Needed even where nothing is balanced: the spread of rewards is taken around it.
  const double baseline = std::isfinite(predicted) ? predicted : bank.baseline.mean;
  const double learner = predicted_learner(s, bank, baseline);
  const double balance = predicted == NOT_PREDICTED ? 0.0 : balance_of(s, share, baseline, learner);
  return {balance, worst_of(s, share), baseline, learner};
}

// The same of every metric.
inline void plan_round(std::span<const MetricSettings> settings, std::span<const Bank> banks, double share,
                       std::span<const double> predicted, std::span<Booked> booked) {
  for (std::size_t i = 0; i < banks.size(); ++i) booked[i] = booked_of(settings[i], banks[i], share, predicted[i]);
}

// Charge a round to every bank at its worst.
inline void charge_round(std::span<const MetricSettings> settings, std::span<Bank> banks, double share,
                         bool is_learner) {
  for (std::size_t i = 0; i < banks.size(); ++i) charge(settings[i], banks[i], share, is_learner);
}

// Take the rewards of the next round in, one for each metric; NaN where it is missing.
inline void enter_round(std::span<const MetricSettings> settings, std::span<Bank> banks, double share,
                        std::span<const Booked> booked, bool is_learner, std::span<const double> rewards) {
  for (std::size_t i = 0; i < banks.size(); ++i) enter(settings[i], banks[i], share, booked[i], is_learner, rewards[i]);
}

// The same for what is told of the lift.
inline void enter_lifts(std::span<const MetricSettings> settings, std::span<Lift> lifts, double share,
                        std::span<const Booked> booked, bool is_learner, std::span<const double> rewards) {
  for (std::size_t i = 0; i < lifts.size(); ++i) {
    enter_lift(lifts[i], settings[i].low, share, booked[i].learner, booked[i].baseline, is_learner, rewards[i]);
  }
}

}  // namespace surefoot
