// What the learner earns beyond the baseline, with an interval that holds at all times at once; no proof rests on it.
//
// Over the rounds in which the proposal had a share p > 0, with any predictions e_a and e_b fixed before the coin,
//
//     x = U (y - e_a)/p - (1 - U)(y - e_b)/(1 - p) + e_a - e_b,        E[x | past] = mu_a - mu_b,
//
// so E[1 + rate x] <= exp(rate (mu_a - mu_b)) where 1 + rate x >= 0: bets on x and on -x bound the sum of mu_a - mu_b
// from both sides, as in the bank, whatever the means do. A rate that could be ruined books the worst instead, which
// needs no data.
#pragma once
#include <algorithm>
#include <cmath>

#include "bank.hpp"

namespace surefoot {

inline constexpr double LIFT_LEVEL = 0.95;
inline constexpr double LIFT_EVENT = log_of(2.0 * RATES / (1.0 - LIFT_LEVEL));
inline constexpr double NEAR_RUIN = 0.98;  // a rate takes a round in while rate * loss stays below this

// Saved as the numbers below, in this order.
struct Lift {
  double count;          // rounds
  PerRate above, below;  // logarithms of the wealth of bets on x and on -x
};

struct Interval {
  double low, high;
};

// Let every rate bet on x >= -loss, or book -spread where x could ruin it; `times` is 1, or -1 to take that back.
inline void bet_on_lift(PerRate& wealth, double x, double loss, double spread, double times) {
  for (std::size_t i = 0; i < RATES; ++i) {
    const double rate = RATE_GRID[i], gain = log1p_of(rate * x);
    const double term = rate * loss < NEAR_RUIN ? gain : -rate * spread;
    wealth[i] += times * term - ROUNDING * (1.0 + std::fabs(term));
  }
}

// Take in a round of which both sides were expected to bring so much, or the reward of a late one. A missing reward may
// have been anything: it counts at its worst for either bet, or whoever loses bad news would gain by it.
inline void enter_lift(Lift& lift, double low, double p, const Booked& booked, bool is_learner, double reward,
                       bool is_late) {
  if (p <= 0.0) return;
  const double learner = booked.learner.mean, baseline = booked.baseline.mean;
  const double gap = learner - baseline, spread = 1.0 - low;
  const auto played = [&](double y) { return gap + (y - learner) / p; };
  const auto kept = [&](double y) { return gap + (baseline - y) / (1.0 - p); };
  const auto found = [&](double y) { return is_learner ? played(y) : kept(y); };
  const auto bet_both = [&](double least, double most, double times) {
    bet_on_lift(lift.above, least, -std::min(played(low), kept(1.0)), spread, times);
    bet_on_lift(lift.below, -most, std::max(played(1.0), kept(low)), spread, times);
  };
  const double worst = std::min(found(low), found(1.0)), best = std::max(found(low), found(1.0));
  if (is_late) {
    bet_both(worst, best, -1.0);
  } else {
    lift.count += 1.0;
  }
  if (std::isnan(reward)) {
    bet_both(worst, best, 1.0);
  } else {
    bet_both(found(reward), found(reward), 1.0);
  }
}

// The interval of the mean of mu_a - mu_b, cut to what rewards from `low` to 1 allow.
inline Interval interval_of(const Lift& lift, double low) {
  const double widest = 1.0 - low;
  if (lift.count == 0.0) return {-widest, widest};
  return {std::max(-widest, mixture_bound(lift.above, LIFT_EVENT) / lift.count),
          std::min(widest, -mixture_bound(lift.below, LIFT_EVENT) / lift.count)};
}

}  // namespace surefoot
