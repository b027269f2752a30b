// UCB: optimism over plain arms, UCB1 of Auer, Cesa-Bianchi and Fischer (2002).
#pragma once
#include <cmath>

#include "arms.hpp"
#include "elementary.hpp"

namespace surefoot {

struct Ucb {
  static constexpr std::string_view name = "UCB";
  static constexpr bool needs_baseline = false;
  using Settings = ArmSettings;
  using State = ArmState;
  using Offer = ArmOffer;
  using Record = ArmRecord;

  static Offer meet(const State&, const Situation& now) { return arm_offer(now); }

  // Every arm once, then argmax mean_i + sigma sqrt(8 ln t / T_i).
  template <class Team>
  static Proposal propose(State& state, const Offer& offer, Record&, const Team&) {
    const int unseen = state.least_played_unseen(-1);
    if (unseen >= 0) return {unseen, INFINITE};
    Proposal best{0, -INFINITE};
    const double log_round = log_of(offer.round);
    for (int i = 0; i < state.count(); ++i) {
      const double index = state[i].mean() + state.settings.noise * std::sqrt(8.0 * log_round / state[i].seen);
      if (index > best.upper) best = {i, index};
    }
    return best;
  }

  static bool judge(State&, const Offer&, Record&) { return true; }

  static void book(State& state, const Offer& offer, Record& record) {
    state[record.is_learner ? record.action : offer.baseline].play();
  }

  static bool teaches(const State&, bool) { return true; }

  template <class Team>
  static void learn(State& state, const Lesson& lesson, const Team&) {
    state[lesson.row].observe(lesson.reward);
  }
};

}  // namespace surefoot
