// The bank of the guard: a lower bound, valid at every moment, of the slack that was earned so far.
//
// Round s plays the proposal with probability p, else the baseline; U says which, y is the reward, divided by its upper
// bound. For a floor (sign +1: at least 1 - alpha of the baseline's reward) and for a ceiling (sign -1: at most
// 1 + alpha of its cost) the slack of the round is
//
//     d = sign p mu_a + (alpha - sign p) mu_b,      g = sign U y + (1 - U) y (alpha - sign p)/(1 - p) + (U - p) h
//
// with E[g | past] = d for every h that is fixed before the coin. Where g >= -k and rate k < 1,
//
//     E[1 + rate g] = 1 + rate d <= exp(rate d),
//
// so the products of (1 + rate g) exp(-rate d) are supermartingales whatever the means do, and so is their average over
// a grid of rates. By Ville's inequality the slack S = sum d satisfies, at all times at once with probability 1 -
// delta,
//
//     sum over rates of exp(log_wealth - rate S) < rates/delta,    log_wealth = sum ln(1 + rate g).
//
// The bound L is the S at which both sides are equal. A rate that is too high for a round books it at its worst, which
// needs no data. (docs/mathematics.md, "The guard"; the logarithm is never looser than the quadratic of Fan, Grama and
// Liu 2015 that stands in its place in Howard et al. 2021.)
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "elementary.hpp"

namespace surefoot {

inline constexpr std::size_t RATES = 12;
using PerRate = std::array<double, RATES>;

// 4 / 2.13^i, to the digits that saved wealths were made with.
inline constexpr PerRate RATE_GRID{4.0,
                                   1.8779342723004695,
                                   0.8816592827701736,
                                   0.41392454590148997,
                                   0.19433077272370422,
                                   0.09123510456511935,
                                   0.042833382424938664,
                                   0.02010956921358623,
                                   0.009441112306847995,
                                   0.0044324470924169,
                                   0.0020809610762520655,
                                   0.0009769770311042563};
inline constexpr double NEAR_RUIN = 0.98;  // a rate takes a round in while rate * k stays below this
inline constexpr double WORKING = 0.8;     // `rate` is the lowest one that alone proves this share of the best bound
inline constexpr int NEWTON = 4;           // steps towards L; each of them is a valid bound
inline constexpr double BELOW_ONE = 1.0 - 0x1p-50;
inline constexpr double ROUNDING = 1e-14;  // given away of every logarithm: at least fifty roundings of a number near 1
inline constexpr double MEMORY = 5000.0;   // rewards that the estimated means reach back

// What is promised of one metric; rewards are divided by their upper bound. An event is ln(rates/delta).
struct MetricSettings {
  double sign, alpha, low, most_baseline, event, reserve;
  bool is_played;  // whether the promise is on the actions played
  double coin_event;
};

// Mean of one side's rewards, and their spread around what was predicted of them: for the ramp, no proof rests on it.
struct SideEstimate {
  double count, mean, spread;
};

// Saved as the numbers below, in this order.
struct Bank {
  double total;    // of the estimates g
  double bound;    // L, of the rounds that have entered
  double rate;     // to work with
  double carried;  // the bank as it was proved before
  double owed;     // what rounds that have not entered may cost at worst
  double entered;  // rounds
  double coins;    // variance of the coins
  double played;   // the bank of the actions played
  SideEstimate learner, baseline;
  PerRate wealth;  // logarithm of the wealth of every rate
};

// A bank with nothing in it but the reserve; half a success in one trial is all that is known of both sides.
constexpr Bank new_bank(const MetricSettings& s) {
  const SideEstimate unknown{1.0, 0.5, 0.25};
  return {0.0, -s.event / RATE_GRID[0], RATE_GRID[0], s.reserve, 0.0, 0.0, 0.0, s.reserve, unknown, unknown, {}};
}

constexpr bool is_floor(const MetricSettings& s) { return s.sign > 0.0; }

// What a reward of the baseline counts, played by chance 1 - p: (alpha - sign p)/(1 - p).
constexpr double slope_of(const MetricSettings& s, double p) { return (s.alpha - s.sign * p) / (1.0 - p); }

// The most that a round may cost on average, whatever the means: -d at its largest, at least 0.
constexpr double worst_of(const MetricSettings& s, double p) {
  const double baseline = s.alpha - s.sign * p, learner = is_floor(s) ? p * s.low : -p;
  return std::max(0.0, -(learner + std::min(baseline * s.low, baseline * s.most_baseline)));
}

// The largest p whose worst is at most `budget`; for a floor at least alpha, whatever the budget.
constexpr double free_share(const MetricSettings& s, double budget) {
  const double paid = budget >= 0.0 ? budget : 0.0;  // nor may a number that is none open the gate
  const double spread = is_floor(s) ? s.most_baseline - s.low : 1.0 - s.low;
  const double safe = s.alpha * (is_floor(s) ? s.most_baseline : s.low) + paid;
  // A little less than that, so that rounding does not make a share cost what it must not.
  return spread > 0.0 ? std::min(1.0, BELOW_ONE * safe / spread) : 1.0;
}

// The most that one round of the learner may cost, once its coin has fallen.
constexpr double worst_of_playing(const MetricSettings& s) {
  if (is_floor(s)) return std::max(0.0, (1.0 - s.alpha) * s.most_baseline - s.low);
  return std::max(0.0, 1.0 - (1.0 + s.alpha) * s.low);
}

// What the learner is expected to earn where that is predicted of the baseline: better by as much as it was so far.
constexpr double predicted_learner(const MetricSettings& s, const Bank& bank, double prediction) {
  return std::min(std::max(prediction + bank.learner.mean - bank.baseline.mean, s.low), 1.0);
}

// h: what takes the coin's own luck out of g, as far as means can be predicted. At p <= alpha a floor needs no balance:
// there g >= 0, and no bet can be lost.
constexpr double balance_of(const MetricSettings& s, double p, double baseline, double learner) {
  if (p == 0.0 || (is_floor(s) && p <= s.alpha)) return 0.0;
  return baseline * slope_of(s, p) - s.sign * learner;
}

// The least that g can be once the coin has fallen: what a round counts whose reward is missing.
constexpr double least_of(const MetricSettings& s, double p, double balance, bool is_learner) {
  if (is_learner) return (is_floor(s) ? s.low : -1.0) + (1.0 - p) * balance;
  const double slope = slope_of(s, p);
  return std::min(slope, slope * s.low) - p * balance;
}

// k: how far below 0 the estimate g may fall, whatever the coin.
constexpr double largest_loss(const MetricSettings& s, double p, double balance) {
  const double learner = p > 0.0 ? least_of(s, p, balance, true) : 0.0;
  return std::max({0.0, -learner, -least_of(s, p, balance, false)});
}

// g, the unbiased estimate of the round's slack.
constexpr double estimate_of(const MetricSettings& s, double p, double balance, bool is_learner, double reward) {
  return is_learner ? s.sign * reward + (1.0 - p) * balance : reward * slope_of(s, p) - p * balance;
}

// What may be spent: what is proved of the slack, with every round that has not entered at its worst; for the promise
// on the actions played, the bank of these. Rounding of the sums is given away.
inline double available(const MetricSettings& s, const Bank& bank) {
  const double held = s.is_played ? bank.played : bank.carried;
  return held - 1e-12 * (std::fabs(held) + bank.owed + std::fabs(bank.total));
}

// The gate: the largest p that is proved to be safe in this round.
inline double allowed(const MetricSettings& s, const Bank& bank) {
  const double budget = available(s, bank);
  if (s.is_played) return budget >= worst_of_playing(s) ? 1.0 : 0.0;
  return free_share(s, budget);
}

// How far the coins may have fallen against us: sum (U - p)(mu_a - mu_b) >= -this, at all times at once. The least over
// rates of ((e^(rate spread) - 1 - rate spread) variance + event)/rate.
constexpr double coin_luck(const MetricSettings& s, double variance) {
  if (variance == 0.0) return 0.0;
  const double spread = 1.0 - s.low;
  double least = INFINITE;
  for (const double grid : RATE_GRID) {
    const double rate = grid / spread, cost = expm1_of(rate * spread) - rate * spread;
    least = std::min(least, (cost * variance + s.coin_event) / rate);
  }
  return least;
}

// Take over what is proved: the bound less what is owed, or what was carried.
constexpr void carry(const MetricSettings& s, Bank& bank, double before) {
  bank.carried = std::max(before, bank.bound + s.reserve - bank.owed);
  if (s.is_played) bank.played = std::max(bank.played, bank.carried - coin_luck(s, bank.coins));
}

// Book a round that is decided, at its worst until its reward is settled.
constexpr void charge(const MetricSettings& s, Bank& bank, double p, bool is_learner) {
  const double worst = worst_of(s, p);
  bank.owed += worst;
  if (s.is_played) {
    bank.coins += p * (1.0 - p);
    if (is_learner) bank.played -= worst_of_playing(s);
  }
  carry(s, bank, bank.carried - worst);
}

// What the best rate proves by itself: the largest of (log_wealth - event)/rate.
constexpr double single_bound(const PerRate& wealth, double event) {
  double bound = -INFINITE;
  for (std::size_t i = 0; i < RATES; ++i) bound = std::max(bound, (wealth[i] - event) / RATE_GRID[i]);
  return bound;
}

// L, by Newton's steps from the best single rate; the curve is convex, so each stays on the side that is proved.
inline double mixture_bound(const PerRate& wealth, double event) {
  double bound = single_bound(wealth, event);
  for (int step = 0; step < NEWTON; ++step) {
    PerRate parts;
    for (std::size_t i = 0; i < RATES; ++i) parts[i] = exp_of(wealth[i] - RATE_GRID[i] * bound - event);
    double total = 0.0, slope = 0.0;
    for (std::size_t i = 0; i < RATES; ++i) {
      total += parts[i];
      slope += RATE_GRID[i] * parts[i];
    }
    if (total > 1.0) bound += log_of(total) * total / slope;
  }
  return bound - 1e-13 * (1.0 + std::fabs(bound));
}

// The lowest rate that alone proves enough.
constexpr double working_rate(const PerRate& wealth, double event) {
  const double alone = single_bound(wealth, event), enough = (alone > 0.0 ? WORKING : 1.0) * alone;
  double best = 0.0;
  for (std::size_t i = 0; i < RATES; ++i) {
    if ((wealth[i] - event) / RATE_GRID[i] >= enough) best = RATE_GRID[i];
  }
  return best;
}

// Running means of a reward and of the square of its error, which forget.
constexpr void remember(SideEstimate& side, double reward, double expected) {
  side.count = std::min(side.count + 1.0, MEMORY);
  side.mean += (reward - side.mean) / side.count;
  side.spread += ((reward - expected) * (reward - expected) - side.spread) / side.count;
}

// What a round is settled by: h, its worst, and what was predicted of both sides. All of it is fixed before the coin
// falls, and never computed again: what has entered by then may depend on the coin (docs/mathematics.md, "The guard").
struct Booked {
  double balance, worst, baseline, learner;
};

// Let every rate bet on g: ln(1 + rate g), or -rate worst where it could be ruined.
inline void bet_on_slack(PerRate& wealth, double estimate, double loss, double worst) {
  for (std::size_t i = 0; i < RATES; ++i) {
    const double rate = RATE_GRID[i], gain = log1p_of(rate * estimate);
    const double term = rate * loss < NEAR_RUIN ? gain : -rate * worst;
    wealth[i] = wealth[i] + term - (ROUNDING * (1.0 + std::fabs(term)) + 2.3e-16 * std::fabs(wealth[i]));
  }
}

// Take in the next round in the order of decisions; a reward that is NaN is missing, and counts at its least.
inline void enter(const MetricSettings& s, Bank& bank, double p, const Booked& booked, bool is_learner, double reward) {
  const double least = least_of(s, p, booked.balance, is_learner);
  const bool is_missing = std::isnan(reward);
  const double estimate = is_missing ? least : std::max(least, estimate_of(s, p, booked.balance, is_learner, reward));
  bank.total += estimate;
  bank.owed = std::max(0.0, bank.owed - booked.worst);
  bank.entered += 1.0;
  bet_on_slack(bank.wealth, estimate, largest_loss(s, p, booked.balance), booked.worst);
  bank.bound = mixture_bound(bank.wealth, s.event);
  bank.rate = working_rate(bank.wealth, s.event);
  carry(s, bank, bank.carried);
  if (is_missing) return;
  remember(is_learner ? bank.learner : bank.baseline, reward, is_learner ? booked.learner : booked.baseline);
}

}  // namespace surefoot
