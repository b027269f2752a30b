// ConservativeUCB: the multi-armed ancestor of CLUCB, by Wu, Shariff, Lattimore and Szepesvari (2016).
//
// Wu's radius psi(s) = 2 ln(K s^3 / delta) adds up, over all counts s, to zeta(3) delta and not to delta. The guarantee
// holds at delta only if that factor is paid, so it is paid here; K counts the one-sided bounds that safety rests on.
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

  template <class Team>
  static Proposal propose(State& state, const Offer& offer, Record& record, const Team&) {
    bound(state, offer.baseline, record);
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

  static void book(State& state, const Offer& offer, Record& record) {
    state[record.is_learner ? record.action : offer.baseline].play();
  }

  static bool teaches(const State&, bool) { return true; }

  template <class Team>
  static void learn(State& state, const Lesson& lesson, const Team&) {
    state[lesson.row].observe(lesson.reward);
  }

 private:
  static double upper(const Record& record, int i) { return record.upper[static_cast<std::size_t>(i)]; }
};

}  // namespace surefoot
