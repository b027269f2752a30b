// CLUCB: the paper's Algorithm 1, for a baseline whose rewards are known.
#pragma once
#include "lead.hpp"
#include "linear_state.hpp"

namespace surefoot {

template <int D>
struct Clucb {
  static constexpr std::string_view name = "CLUCB";
  static constexpr int Dim = D;
  using Settings = LinearSettings;
  using State = LinearState<D>;
  using Offer = surefoot::Offer<D>;
  using Record = surefoot::Record<D>;

  static Lead<D> lead(const State& state, Rows<D> rows, bool is_apt) { return {Floor::known, state, rows, is_apt}; }

  static Offer meet(const State&, const Situation& now) { return linear_offer<D>(now); }

  // The optimistic action.  (Algorithm 1, line 4)
  template <class Team>
  [[gnu::always_inline]] static Proposal propose(State& state, const Offer& offer, Record& record, const Team& team) {
    return most_optimistic(state, offer, record, team);
  }

  // LCB(z + phi_a) + sum over S^c of r_b >= (1 - alpha) sum over all rounds of r_b.  (Algorithm 1, line 5)
  [[gnu::always_inline]] static bool judge(State& state, const Offer& offer, Record& record) {
    const bool is_odd = is_too_high(state, offer.displaced(record.action), offer.known);
    pose(state.ridge, state.ledger, offer.proposal(record.action), offer.displaced(record.action), record);
    choose_set<D>(state.settings, state.ridge, state.memory, record.played, record);
    record.on_played = state.range(record.radius, record.played);
    return settle(state.settings, claim(state, offer, record), record) && !is_odd;
  }

  // What follows from that range.
  [[gnu::always_inline]] static Claim claim(const State& state, const Offer& offer, Record& record) {
    const Range& earned = record.on_played;
    record.kept = state.ledger.conserved_reward.total();
    record.owed = state.ledger.displaced_reward.with(offer.known);
    return {earned.low() + record.kept, (1.0 - state.settings.alpha) * (record.kept + record.owed),
            std::fabs(earned.mean) + earned.spread + record.kept + record.owed};
  }

  [[gnu::always_inline]] static void book(State& state, const Offer& offer, Record& record) {
    book_linear(state, offer, record, offer.known);
  }

  // It learns from its own rounds only.
  static bool teaches(const State&, bool is_learner) { return is_learner; }

  template <class Team>
  [[gnu::always_inline]] static auto learn(State& state, const Lesson& lesson, const Team& team) {
    return state.absorb(view<D>(lesson.features, state.dim()), lesson.reward, team);
  }
};

}  // namespace surefoot
