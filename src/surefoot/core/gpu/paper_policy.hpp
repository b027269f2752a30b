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

  static bool judge(State& state, const Offer& offer, Record& record) {
    return as(state, [&]<class P>(P) { return P::judge(state, offer, record); });
  }

  static void book(State& state, const Offer& offer, Record& record) {
    as(state, [&]<class P>(P) { P::book(state, offer, record); });
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
