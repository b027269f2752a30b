// ConservativeUCB: the multi-armed ancestor of CLUCB, by Wu, Shariff, Lattimore and Szepesvari (2016).
//
// Wu's radius psi(s) = 2 ln(K s^3 / delta) adds up, over all counts s, to zeta(3) delta and not to delta. The guarantee
// holds at delta only if that factor is paid, so it is paid here; K counts the one-sided bounds that safety rests on.
//
// Where single rewards are bounded, one likelihood set over all arms answers the whole question instead
// (`arm_likelihood.hpp`).
#pragma once
#include <cmath>

#include "arms.hpp"
#include "elementary.hpp"

namespace surefoot {

inline constexpr double ZETA_3 = 1.2020569031595942;  // sum of 1 / s^3

struct ConservativeUcb {
  static constexpr std::string_view name = "ConservativeUCB";
  static constexpr bool needs_baseline = true;
  using Settings = ArmSettings;
  using State = ArmState;
  using Offer = ArmOffer;
  using Record = ArmRecord;

  static Offer meet(const State&, const Situation& now) { return arm_offer(now); }

  // lower_i = max(0, mean_i - sqrt(psi / T_i)), upper_i = mean_i + sqrt(psi / T_i) with
  // psi(s) = 2 sigma^2 ln(zeta(3) K s^3 / delta). A known default arm is its own interval.
  static void bound(const State& state, int baseline, Record& record) {
    const Settings& s = state.settings;
    // A lower bound for every other arm, and both sides of a default that is not known.
    const double bounds = s.known >= 0.0 ? state.count() - 1.0 : state.count() + 1.0;
    record.lower.assign(state.arms.size(), 0.0);
    record.upper.assign(state.arms.size(), INFINITE);
    for (int i = 0; i < state.count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double seen = state[i].seen;
      if (i == baseline && s.known >= 0.0) {
        record.lower[at] = record.upper[at] = s.known;
      } else if (seen > 0.0) {
        const double psi = 2.0 * (s.noise * s.noise) * log_of(ZETA_3 * bounds * (seen * seen * seen) / s.delta);
        const double mean = state[i].mean(), spread = std::sqrt(psi / seen);
        // The cut at 0 is a declaration: no arm's mean is negative.
        record.lower[at] = larger(mean - spread, 0.0);
        record.upper[at] = mean + spread;
      }
    }
  }

  // Ranges by declaration below, and above what an arm is proposed by.
  static void bound_by_likelihood(const State& state, int baseline, Record& record) {
    record.lower.assign(state.arms.size(), state.likelihood->low);
    record.upper.assign(state.arms.size(), INFINITE);
    for (int i = 0; i < state.count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (i == baseline && state.settings.known >= 0.0) {
        record.lower[at] = record.upper[at] = state.settings.known;
      } else if (state[i].seen > 0.0) {
        record.upper[at] = state.likelihood->optimistic(i);
      }
    }
  }

  template <class Team>
  static Proposal propose(State& state, const Offer& offer, Record& record, const Team&) {
    if (state.likelihood) {
      bound_by_likelihood(state, offer.baseline, record);
    } else {
      bound(state, offer.baseline, record);
    }
    int best = state.least_played_unseen(state.settings.known >= 0.0 ? offer.baseline : -1);
    if (best < 0) {
      best = 0;
      for (int i = 0; i < state.count(); ++i) {
        if (upper(record, i) > upper(record, best)) best = i;
      }
    }
    return {best, upper(record, best)};
  }

  // sum_{i != 0} N_i lower_i + lower_J + N_0 mu_0 >= (1 - alpha) t mu_0, with the worst mu_0 of its interval.
  static bool judge(State& state, const Offer& offer, Record& record) {
    if (state.likelihood) return judge_by_likelihood(state, offer, record);
    const double owed = (1.0 - state.settings.alpha) * offer.round;
    record.optimism = upper(record, record.action);  // an order may have named another arm
    double earned = 0.0, size = 0.0;
    for (int i = 0; i < state.count(); ++i) {
      const double lower = record.lower[static_cast<std::size_t>(i)];
      // An arm at 0 adds nothing, and one that was never seen has no mean to bound its rounding by.
      if (i == offer.baseline || !(lower > 0.0)) continue;
      const double weight = state[i].plays + (i == record.action ? 1.0 : 0.0);
      earned += weight * lower;
      size += weight * (std::fabs(upper(record, i)) + 2.0 * std::fabs(state[i].mean()));
    }
    const double kept = state[offer.baseline].plays + (offer.baseline == record.action ? 1.0 : 0.0);
    // The condition is linear in mu_0, so its worst lies at one end of the interval.
    const auto at = static_cast<std::size_t>(offer.baseline);
    const double worst = kept - owed >= 0.0 ? record.lower[at] : record.upper[at];
    record.required = owed * worst;
    record.guaranteed = earned;
    // Of a default that was never seen inf is required: inf - inf must not arise.
    if (worst < INFINITE) {
      record.guaranteed += kept * worst;
      // A pass must not rest on the gate's own rounding.
      record.guaranteed -= 4.0 * (state.count() + 4.0) * EPS * (size + record.guaranteed + record.required);
    }
    return record.guaranteed >= record.required;
  }

  // The same with all on one side: sum_a w_a mu_a >= 0, of which N_0 - (1 - alpha) t is the default arm's weight.
  static bool judge_by_likelihood(State& state, const Offer& offer, Record& record) {
    ArmLikelihood& set = *state.likelihood;
    const bool is_known = state.settings.known >= 0.0;
    const auto today = static_cast<std::size_t>(offer.baseline);
    set.arms[today].is_known = is_known;
    record.optimism = upper(record, record.action);
    std::vector<double> weights;
    weights.reserve(state.arms.size());
    std::vector<MeanRange> ranges(state.arms.size(), {set.low, set.high});
    ranges[today].least = is_known ? state.settings.known : larger(set.low, 0.0);  // today's arm is never negative
    if (is_known) ranges[today].most = state.settings.known;
    for (const Arm& arm : state.arms) weights.push_back(arm.plays);
    weights[static_cast<std::size_t>(record.action)] += 1.0;
    weights[today] -= (1.0 - state.settings.alpha) * offer.round;
    const double rounding = 4.0 * EPS * offer.round;  // of the default arm's weight
    bool is_free = weights[today] >= rounding;
    for (std::size_t i = 0; i < ranges.size(); ++i) is_free = is_free && weights[i] >= 0.0 && ranges[i].least >= 0.0;
    record.required = 0.0;
    record.split = is_free ? set.by_ranges(weights, ranges) : set.least(weights, ranges);
    record.guaranteed = record.split.value;
    // Where nothing can be lost, the weight's rounding cannot either, and an exact 0 is a proof.
    if (!is_free) record.guaranteed -= rounding * ranges[today].most;
    if (set.is_refuted) record.guaranteed = -INFINITE;
    return record.guaranteed >= record.required;
  }

  static void book(State& state, const Offer& offer, Record& record) {
    state[record.is_learner ? record.action : offer.baseline].play();
  }

  static bool teaches(const State&, bool) { return true; }

  template <class Team>
  static void learn(State& state, const Lesson& lesson, const Team&) {
    state[lesson.row].observe(lesson.reward);
    if (state.likelihood) state.likelihood->learn(lesson.row, lesson.reward);
  }

 private:
  static double upper(const Record& record, int i) { return record.upper[static_cast<std::size_t>(i)]; }
};

}  // namespace surefoot
