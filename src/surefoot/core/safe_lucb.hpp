// SafeLUCB: the paper's guarantee proved from everything that is known, so that the learner acts far earlier.
#pragma once
#include "facts_gate.hpp"
#include "optimism.hpp"

namespace surefoot {

template <int D>
struct SafeLucb {
  static constexpr std::string_view name = "SafeLUCB";
  static constexpr int Dim = D;
  static constexpr bool remembers_baseline = true;
  using Settings = LinearSettings;
  using State = LinearState<D>;
  using Offer = surefoot::Offer<D>;
  using Record = surefoot::Record<D>;

  static Offer meet(const State&, const Situation& now) { return linear_offer<D>(now); }

  template <class Team>
  [[gnu::always_inline]] static Proposal propose(State& state, const Offer& offer, Record& record, const Team& team) {
    const Proposal plain = most_optimistic(state, offer, record, team);
    if (plain.action < 0 || state.settings.optimism == Optimism::set || state.ridge.count == 0.0) return plain;
    if (!offer.is_catalogue) {
      state.fresh.score(state.ridge, offer.rows, team);
      return most_promising(state, offer.rows, state.fresh.scores, record.beta);
    }
    // Rows off a short list have old scores.
    if (!state.catalogue->list.empty()) state.catalogue->score(state.ridge, team);
    return most_promising(state, offer.rows, state.catalogue->scores, record.beta);
  }

  static bool judge(State& state, const Offer& offer, Record& record) {
    state.memory.tell(state.settings, offer.low, offer.high);
    const bool is_odd = is_too_high(state, offer.displaced(record.action), state.memory.low);
    return ask_facts(state, offer, record) && !is_odd;
  }

  [[gnu::always_inline]] static void book(State& state, const Offer& offer, Record& record) {
    book_linear(state, offer, record, 0.0);
    if (state.likelihood) {
      state.likelihood->book(offer.proposal(record.action), offer.displaced(record.action), record.is_learner);
    }
    remember_round(state, offer.displaced(record.action), record);
  }

  // If the baseline stays the same and its mean is known exactly, its rewards say nothing new and would only widen the
  // set. This must be asked when the round is decided: later, what has happened since would select the data.
  static bool teaches(const State& state, bool is_learner) { return is_learner || state.memory.moved; }

  template <class Team>
  [[gnu::always_inline]] static void learn(State& state, const Lesson& lesson, const Team& team) {
    const View<D> features = view<D>(lesson.features, state.dim());
    state.absorb(features, lesson.reward, team);
    if (lesson.is_learner) state.memory.remember_reward(features, lesson.reward);
  }
};

}  // namespace surefoot
