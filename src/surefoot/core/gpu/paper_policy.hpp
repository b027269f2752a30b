// LUCB, CLUCB and CLUCB2 in one program: they differ in what they judge, book and learn from, and the rest of their
// rounds, which is most, then fits into a multiprocessor's cache of instructions once.
#pragma once
#include "clucb.hpp"
#include "clucb2.hpp"
#include "lucb.hpp"

namespace surefoot::gpu {

enum class Which { lucb, clucb, clucb2 };  // as the host numbers them

template <int D>
struct PaperPolicy {
  static constexpr std::string_view name = "LUCB, CLUCB or CLUCB2";
  static constexpr int Dim = D;
  using Settings = LinearSettings;
  using Offer = surefoot::Offer<D>;
  using Record = surefoot::Record<D>;
  struct State : LinearState<D> {
    using LinearState<D>::LinearState;
    Which which = Which::lucb;
  };

  // Does what the run's own policy does.
  template <class Act>
  static auto as(const State& state, Act act) {
    if (state.which == Which::lucb) return act(Lucb<D>{});
    if (state.which == Which::clucb) return act(Clucb<D>{});
    return act(Clucb2<D>{});
  }

  static Lead<D> lead(const State& state, Rows<D> rows, bool is_apt) {
    return as(state, [&]<class P>(P) { return P::lead(state, rows, is_apt); });
  }

  static Offer meet(const State& state, const Situation& now) {
    return as(state, [&]<class P>(P) { return P::meet(state, now); });
  }

  template <class Team>
  static Proposal propose(State& state, const Offer& offer, Record& record, const Team& team) {
    return most_optimistic(state, offer, record, team);
  }

  // What the gates have in common once, and in a loop that is not unrolled: they are asked in few rounds, and what all
  // rounds need should not make room for them.
  static bool judge(State& state, const Offer& offer, Record& record) {
    if (state.which == Which::lucb) {
      if constexpr (MAY_BE<Radius::dual>) return Lucb<D>::judge(state, offer, record);  // V is looked at for its set
      return true;                                                                      // nobody reads what it notes
    }
    pose(state.ridge, state.ledger, offer.proposal(record.action), offer.displaced(record.action), record);
    choose_set<D>(state.settings, state.ridge, state.memory, record.played, record);
    const int asked = state.which == Which::clucb ? 1 : 3;
#pragma unroll 1
    for (int i = 0; i < asked; ++i) {
      const Vector<D> question = i == 0 ? record.played : i == 1 ? record.conserved : record.displaced;
      const Range found = state.range(record.radius, question);
      if (i == 0) record.on_played = found;
      if (i == 1) record.on_conserved = found;
      if (i == 2) record.on_displaced = found;
    }
    const Claim claim =
        state.which == Which::clucb ? Clucb<D>::claim(state, offer, record) : Clucb2<D>::claim(state, offer, record);
    return settle(state.settings, claim, record);
  }

  static void book(State& state, const Offer& offer, Record& record) {
    book_linear(state, offer, record, state.which == Which::clucb ? offer.known : 0.0);
  }

  static bool teaches(const State& state, bool is_learner) {
    return as(state, [&]<class P>(P) { return P::teaches(state, is_learner); });
  }

  template <class Team>
  static auto learn(State& state, const Lesson& lesson, const Team& team) {
    return state.absorb(view<D>(lesson.features, state.dim()), lesson.reward, team);
  }
};

}  // namespace surefoot::gpu
