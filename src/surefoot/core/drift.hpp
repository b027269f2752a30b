// The watch's bets: an e-process that grows where rewards stop following one theta. (docs/mathematics.md, "The watch")
//
// Each learned reward has a prediction from all learned before it, and an error e. One bettor says that from some round
// on, all rewards of the baseline's rounds (or all of the learner's) lie `shift` noise scales above their predictions.
// On its rounds its wealth is multiplied by
//
//     exp((shift e/noise) - shift^2/2),
//
// and a fresh share of its capital enters in every round, so that a change late in life is seen as well. What
// predictions have cost beside the best theta is subtracted: surprises = sum e^2 D^2, D^2 the leverage of the row, and
// ridge B^2. Under the declared model the wealth that is left is at most 1 on average whenever one stops, so by Ville's
// inequality it reaches 1/delta with a probability of at most delta, at any time.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

#include "elementary.hpp"

namespace surefoot {

inline constexpr std::size_t BETTORS = 10;
inline constexpr std::array<double, BETTORS> SHIFTS{0.1,  -0.1, 0.2,  -0.2, 0.4,
                                                    -0.4, 0.8,  -0.8, 1.6,  -1.6};  // in units of the noise
inline constexpr double HORIZON = 500.0;  // half of the capital has entered after so many rounds of a side; the rest
                                          // never runs out
inline constexpr double DRIFT_ROUNDING = 1e-6;  // of the logarithm, given away

struct Bettor {
  double wealth = -INFINITE;  // its logarithm; no capital has entered
  double grown = -INFINITE;   // that of the one share of capital that has grown most, for people
  double since = 0.0;         // the round in which that share entered
  double seen = 0.0;          // rounds since
  double errors = 0.0;        // their sum
};

struct SideBets {
  double rounds = 0.0;
  std::array<Bettor, BETTORS> bettors;
};

// Saved as the numbers below, in this order.
struct Bets {
  SideBets baseline, learner;
};

// What the best bettor has seen: so many rounds since round `since`, and by how much they lay off on average.
struct Drift {
  bool is_learner;
  double since, rounds, shift;
};

// What has entered of a bettor's capital in the n-th round of a side: H/((H + n - 1)(H + n)), which adds up to 1.
constexpr double log_entering(double n) { return log_of(HORIZON / ((HORIZON + n - 1.0) * (HORIZON + n))); }

// ln(e^a + e^b); the larger is taken out, so that no exponential overflows.
constexpr double log_sum(double a, double b) {
  const double larger = std::max(a, b);
  return larger + log_of(exp_of(a - larger) + exp_of(b - larger));
}

// Take in the error of one prediction, in units of the noise.
constexpr void bet(Bets& bets, bool is_learner, double error, double round) {
  SideBets& side = is_learner ? bets.learner : bets.baseline;
  side.rounds += 1.0;
  const double entering = log_entering(side.rounds);
  for (std::size_t i = 0; i < BETTORS; ++i) {
    Bettor& bettor = side.bettors[i];
    const double gain = SHIFTS[i] * error - 0.5 * SHIFTS[i] * SHIFTS[i];
    bettor.wealth = log_sum(bettor.wealth, entering) + gain;
    if (entering >= bettor.grown) bettor = {bettor.wealth, entering, round, 0.0, 0.0};
    bettor.grown += gain;
    bettor.seen += 1.0;
    bettor.errors += error;
  }
}

// The logarithm of the bettors' average wealth, before what predictions have cost.
constexpr double log_wealth(const Bets& bets) {
  double largest = -INFINITE, total = 0.0;
  for (const SideBets* side : {&bets.baseline, &bets.learner}) {
    for (const Bettor& bettor : side->bettors) largest = std::max(largest, bettor.wealth);
  }
  if (largest == -INFINITE) return largest;  // before the first bet, where -inf - -inf would be NaN
  for (const SideBets* side : {&bets.baseline, &bets.learner}) {
    for (const Bettor& bettor : side->bettors) total += exp_of(bettor.wealth - largest);
  }
  return largest + log_of(total / (2.0 * BETTORS));
}

// The logarithm of the e-process: an alarm is due where it reaches ln(1/delta).
constexpr double log_evidence(const Bets& bets, double surprises, double noise, double ridge, double theta_bound) {
  const double cost = (surprises + ridge * theta_bound * theta_bound) / (2.0 * noise * noise);
  return log_wealth(bets) - cost - DRIFT_ROUNDING;
}

// What the wealthiest bettor has seen.
constexpr Drift seen_by_best(const Bets& bets, double noise) {
  const Bettor* best = bets.baseline.bettors.data();
  bool is_learner = false;
  for (const SideBets* side : {&bets.baseline, &bets.learner}) {
    for (const Bettor& bettor : side->bettors) {
      if (bettor.wealth > best->wealth) best = &bettor, is_learner = side == &bets.learner;
    }
  }
  return {is_learner, best->since, best->seen, noise * (best->errors / best->seen)};
}

}  // namespace surefoot
