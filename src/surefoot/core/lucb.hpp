// LUCB: optimism alone, a learner without a floor.  (Abbasi-Yadkori et al. 2011)
#pragma once
#include "lead.hpp"
#include "linear_state.hpp"

namespace surefoot {

template <int D>
struct Lucb {
  static constexpr std::string_view name = "LUCB";
  static constexpr int Dim = D;
  using Settings = LinearSettings;
  using State = LinearState<D>;
  using Offer = surefoot::Offer<D>;
  using Record = surefoot::Record<D>;

  static Lead<D> lead(const State& state, Rows<D> rows, bool is_apt) { return {Floor::none, state, rows, is_apt}; }

  // It looks at no baseline.
  static Offer meet(const State&, const Situation& now) {
    Offer offer = linear_offer<D>(now);
    offer.baseline = -1;
    return offer;
  }

  template <class Team>
  [[gnu::always_inline]] static Proposal propose(State& state, const Offer& offer, Record& record, const Team& team) {
    return most_optimistic(state, offer, record, team);
  }

  // Always yes; notes the least that the optimistic action leaves us with.
  [[gnu::always_inline]] static bool judge(State& state, const Offer& offer, Record& record) {
    pose(state.ridge, state.ledger, offer.proposal(record.action), offer.displaced(record.action), record);
    choose_set<D>(state.settings, state.ridge, state.memory, record.played, record);
    record.required = -INFINITE;
    // A finite radius guarantees something finite.
    const bool is_read = offer.is_claimed || !(record.radius < UNKNOWN);
    record.guaranteed = is_read ? state.range(record.radius, record.played).low() : 0.0;
    return true;
  }

  [[gnu::always_inline]] static void book(State& state, const Offer& offer, Record& record) {
    book_linear(state, offer, record, 0.0);
  }

  static bool teaches(const State&, bool) { return true; }

  template <class Team>
  [[gnu::always_inline]] static auto learn(State& state, const Lesson& lesson, const Team& team) {
    return state.absorb(view<D>(lesson.features, state.dim()), lesson.reward, team);
  }
};

}  // namespace surefoot
