// The bank of the guard: a lower bound, valid at every moment, of the slack that was earned so far.
//
// Round s plays the proposal with probability p, else the baseline; U says which, y is the reward, divided by its upper
// bound. For a floor (sign +1: at least 1 - alpha of the baseline's reward) and for a ceiling (sign -1: at most
// 1 + alpha of its cost) the slack of the round is
//
//     d = sign p mu_a + (alpha - sign p) mu_b.
//
// A bet at a rate l has a coefficient for each side, s_a = sign l and s_b = l (alpha - sign p)/(1 - p), and a centre
// for each side, a and b, fixed before the coin. It pays
//
//     F = exp(l d') (1 + s (y - m)),      d' = sign p a + (alpha - sign p) b,
//
// with the coefficient s and the centre m of the side that was played. Since p s_a (mu_a - a) + (1 - p) s_b (mu_b - b)
// is l (d - d'), whatever the means are, as long as no factor is negative,
//
//     E[F | all before the coin] = exp(l d') (1 + l (d - d')) <= exp(l d).
//
// So the products of F exp(-l d) are supermartingales, and so is their average over a grid of rates. By Ville's
// inequality the slack S = sum d satisfies, at all times at once with probability 1 - delta,
//
//     sum over rates of exp(log_wealth - rate S) < rates/delta,    log_wealth = sum ln F.
//
// The bound L is the S at which both sides are equal. Centres decide how fast it grows, never whether it holds.
//
// Where p = 0 nothing is at stake: d = alpha mu_b. Such a round is centred at the least reward, so that F >= 1. Leaving
// it out, or taking it in late, can only lower the bound. (docs/mathematics.md, "The guard"; Waudby-Smith and Ramdas
// 2024 bet on means in this way.)
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
inline constexpr double LEAST_FACTOR = 0.05;  // of 1 + s (y - m): no single reward may ruin a bet
inline constexpr double NEVER = 1e-6;         // the least and, less than 1, the largest mean that is expected
inline constexpr int NEWTON = 4;              // steps towards L; each of them is a valid bound
inline constexpr double BELOW_ONE = 1.0 - 0x1p-50;
inline constexpr double ROUNDING = 1e-14;  // given away of every logarithm: at least fifty roundings of a number near 1
inline constexpr double MEMORY = 300.0;    // rewards of its side that a recent mean reaches back
inline constexpr double HISTORY = 1e4;     // and an overall one, at most
inline constexpr double CHANGE = 3.0;      // standard errors between the two that mean another world

// What is promised of one metric; rewards are divided by their upper bound. An event is ln(rates/delta).
struct MetricSettings {
  double sign, alpha, low, most_baseline, event, reserve;
  bool is_played;  // whether the promise is on the actions played
  double coin_event;
};

// What is expected of a side's rewards: their mean, and their variance around it.
struct Expected {
  double mean, spread;
};

// The same as it is estimated from the rewards that have entered: from recent ones, and from all since the last change.
// No proof rests on it.
struct SideEstimate {
  double count, mean, spread;
  double rewards, overall;
};

// What a round is settled by: its worst, and what was expected of both sides. All of it is fixed before the coin falls,
// and never computed again: what has entered by then may depend on the coin (docs/mathematics.md, "The guard").
struct Booked {
  double worst;
  Expected learner, baseline;
};

// Saved as the numbers below, in this order.
struct Bank {
  double bound;    // L, of the rounds that have entered
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
  const double width = 1.0 - s.low;
  const SideEstimate unknown{1.0, s.low + 0.5 * width, 0.25 * width * width, 1.0, s.low + 0.5 * width};
  return {-s.event / RATE_GRID[0], s.reserve, 0.0, 0.0, 0.0, s.reserve, unknown, unknown, {}};
}

constexpr bool is_floor(const MetricSettings& s) { return s.sign > 0.0; }

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

// What may be spent: what is proved of the slack, with every round that has not entered at its worst; for the promise
// on the actions played, the bank of these.
constexpr double available(const MetricSettings& s, const Bank& bank) {
  return s.is_played ? bank.played : bank.carried;
}

// The gate: the largest p that is proved to be safe in this round.
constexpr double allowed(const MetricSettings& s, const Bank& bank) {
  const double budget = available(s, bank);
  if (s.is_played) return budget >= worst_of_playing(s) ? 1.0 : 0.0;
  return free_share(s, budget);
}

// Sums round, and what that may have lost is given away with every one of them.
constexpr double rounded_up(double sum) { return sum * (1.0 + 0x1p-51); }
inline double less(double held, double paid) { return held - rounded_up(paid) - 0x1p-51 * std::fabs(held); }

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
  return least * (1.0 + ROUNDING);
}

// Take over what is proved: the bound less what is owed, or what was carried.
inline void carry(const MetricSettings& s, Bank& bank, double before) {
  bank.carried = std::max(before, less(bank.bound + s.reserve, bank.owed));
  if (s.is_played) bank.played = std::max(bank.played, less(bank.carried, coin_luck(s, bank.coins)));
}

// Book what may cost so much at worst until its rewards are settled; of the actions played so much, by coins of so much
// variance.
inline void pay(const MetricSettings& s, Bank& bank, double worst, double variance, double played) {
  bank.owed = rounded_up(bank.owed + worst);
  if (s.is_played) {
    bank.coins = rounded_up(bank.coins + variance);
    if (played > 0.0) bank.played = less(bank.played, played);
  }
  carry(s, bank, worst > 0.0 ? less(bank.carried, worst) : bank.carried);
}

// Book a round that is decided, at its worst until its reward is settled.
inline void charge(const MetricSettings& s, Bank& bank, double p, bool is_learner) {
  pay(s, bank, worst_of(s, p), p * (1.0 - p), is_learner ? worst_of_playing(s) : 0.0);
}

// Pay for rounds of which nothing is left, whatever their shares and their coins were: for good, as none will enter.
inline void lose(const MetricSettings& s, Bank& bank, double rounds, double largest_share) {
  pay(s, bank, rounded_up(rounds * worst_of(s, largest_share)), 0.25 * rounds,
      rounded_up(rounds * worst_of_playing(s)));
}

// What a round of share p will be settled by, from a bank that is known before its coin: the guard's own, or the one
// that a lease froze. Where nothing is predicted of the baseline (NaN) it is expected to go on as it did, and the
// learner to be better by as much as it was.
inline Booked booked_of(const MetricSettings& s, const Bank& bank, double p, double predicted) {
  const double baseline = std::isnan(predicted) ? bank.baseline.mean : predicted;
  const double learner = std::min(std::max(baseline + bank.learner.mean - bank.baseline.mean, s.low), 1.0);
  return {worst_of(s, p), {learner, bank.learner.spread}, {baseline, bank.baseline.spread}};
}

// The centre m at which a bet of coefficient s grows fastest, if rewards take two values, of this mean and spread: one
// of them is the end of the range where the bet loses, which is the most cautious guess. Then s m + E ln(1 + s (y - m))
// is largest at the closed form below, and 1 + s (y - m) is a ratio of likelihoods. Cut so that no factor is below the
// least.
inline double centre_of(double s, double low, const Expected& side) {
  const bool loses_high = s < 0.0;
  const double width = 1.0 - low, mean = std::min(std::max((side.mean - low) / width, NEVER), 1.0 - NEVER);
  const double spread = std::min(side.spread / (width * width), mean * (1.0 - mean));
  const double first = loses_high ? mean - spread / (1.0 - mean) : 0.0;
  const double gap = (loses_high ? 1.0 : mean + spread / mean) - first, chance = (mean - first) / gap;
  const double bet = s * width * gap, sum = bet + 1.0, root = std::sqrt(std::max(0.0, sum * sum - 4.0 * bet * chance));
  const double tilted = bet > -1.0 ? 2.0 * chance / (sum + root) : (sum - root) / (2.0 * bet);
  const double best = low + width * (first + gap * tilted), reach = (1.0 - LEAST_FACTOR) / std::fabs(s);
  const double cut = loses_high ? std::max(best, 1.0 - reach) : std::min(best, low + reach);
  return std::min(std::max(cut, low), 1.0);
}

// Let every rate bet on a round; a reward that is NaN is missing, and counts where it pays least. `times` is 1, or -1
// to take such a bet back.
inline void bet(const MetricSettings& s, PerRate& wealth, double p, const Booked& booked, bool is_learner,
                double reward, double times = 1.0) {
  const double weight = s.alpha - s.sign * p, slope = weight / (1.0 - p);
  const double least = (is_learner ? s.sign : slope) < 0.0 ? 1.0 : s.low;
  const double y = std::isnan(reward) ? least : std::min(std::max(reward, s.low), 1.0);
  for (std::size_t i = 0; i < RATES; ++i) {
    const double rate = RATE_GRID[i], on_learner = s.sign * rate, on_baseline = rate * slope;
    const double a = centre_of(on_learner, s.low, booked.learner);
    const double b = p > 0.0 ? centre_of(on_baseline, s.low, booked.baseline) : s.low;
    const double coefficient = is_learner ? on_learner : on_baseline, centre = is_learner ? a : b;
    const double expected = rate * (s.sign * p * a + weight * b), won = coefficient * (y - centre);
    const double term = expected + log1p_of(won);
    const double rounding = 1.0 + std::fabs(term) + (1.0 + std::fabs(coefficient)) / (1.0 + won);
    wealth[i] += times * term - (ROUNDING * rounding + 2.3e-16 * std::fabs(wealth[i]));
  }
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

// Running means of a reward and of the square of its error, which forget. The overall mean begins again at the recent
// one where rewards have changed.
constexpr void remember(SideEstimate& side, double reward, double expected) {
  side.count = std::min(side.count + 1.0, MEMORY);
  side.mean += (reward - side.mean) / side.count;
  side.spread += ((reward - expected) * (reward - expected) - side.spread) / side.count;
  side.rewards = std::min(side.rewards + 1.0, HISTORY);
  side.overall += (reward - side.overall) / side.rewards;
  const double moved = side.mean - side.overall;
  if (moved * moved * side.count > CHANGE * CHANGE * side.spread) {
    side.rewards = side.count;
    side.overall = side.mean;
  }
}

// Take in the next round in the order of decisions or, of a late one that entered without its reward, the reward. A
// round with nothing at stake teaches nothing of the two sides: its rewards may be of another kind than those of rounds
// in which proposal and baseline differ.
inline void enter(const MetricSettings& s, Bank& bank, double p, const Booked& booked, bool is_learner, double reward,
                  bool is_late) {
  if (is_late) {
    bet(s, bank.wealth, p, booked, is_learner, NOT_A_NUMBER, -1.0);
  } else {
    bank.owed = booked.worst > 0.0 ? std::max(0.0, rounded_up(bank.owed - booked.worst)) : bank.owed;
    bank.entered += 1.0;
  }
  bet(s, bank.wealth, p, booked, is_learner, reward);
  bank.bound = mixture_bound(bank.wealth, s.event);
  carry(s, bank, bank.carried);
  if (p == 0.0 || std::isnan(reward)) return;
  remember(is_learner ? bank.learner : bank.baseline, reward, (is_learner ? booked.learner : booked.baseline).mean);
}

}  // namespace surefoot
