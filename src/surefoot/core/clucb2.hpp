// CLUCB2: the paper's Algorithm 2, for a baseline whose rewards are unknown, over the newest ellipsoid (Remark 3).
//
// The exact one, over the intersection of all ellipsoids, finds its bounds in Python (`surefoot.linear.nested`), and
// asks `weigh_up` what follows from them.
#pragma once
#include "lead.hpp"
#include "linear_state.hpp"

namespace surefoot {

template <int D>
struct Clucb2 {
  static constexpr std::string_view name = "CLUCB2";
  static constexpr int Dim = D;
  using Settings = LinearSettings;
  using State = LinearState<D>;
  using Offer = surefoot::Offer<D>;
  using Record = surefoot::Record<D>;

  static Lead<D> lead(const State& state, Rows<D> rows, bool is_apt) { return {Floor::unknown, state, rows, is_apt}; }

  static Offer meet(const State&, const Situation& now) { return linear_offer<D>(now); }

  template <class Team>
  [[gnu::always_inline]] static Proposal propose(State& state, const Offer& offer, Record& record, const Team& team) {
    return most_optimistic(state, offer, record, team);
  }

  // LCB(z + phi_a) + alpha max{LCB(w), n r_l} >= (1 - alpha) UCB(v + phi_b).  (Algorithm 2)
  [[gnu::always_inline]] static Claim claim(const State& state, double lower_played, double lower_conserved,
                                            double upper_displaced, Record& record) {
    const LinearSettings& s = state.settings;
    const double floor = state.ledger.baseline_rounds * s.reward_floor;
    // Here these two are the bounds of w, from which a proof takes the better one.
    record.kept = floor;
    record.owed = lower_conserved;
    return {lower_played + s.alpha * larger(lower_conserved, floor), (1.0 - s.alpha) * upper_displaced,
            std::fabs(lower_played) + std::fabs(lower_conserved) + floor + std::fabs(upper_displaced)};
  }
  [[gnu::always_inline]] static Claim claim(const State& state, const Offer&, Record& record) {
    return claim(state, record.on_played.low(), record.on_conserved.low(), record.on_displaced.high(), record);
  }

  static bool weigh_up(const State& state, double lower_played, double lower_conserved, double upper_displaced,
                       Record& record) {
    return settle(state.settings, claim(state, lower_played, lower_conserved, upper_displaced, record), record);
  }

  [[gnu::always_inline]] static bool judge(State& state, const Offer& offer, Record& record) {
    const bool is_odd = is_too_high(state, offer.displaced(record.action), 0.0);
    pose(state.ridge, state.ledger, offer.proposal(record.action), offer.displaced(record.action), record);
    // One set for all three pieces, chosen for the first: any choice is valid (docs, "Radius dual").
    choose_set<D>(state.settings, state.ridge, state.memory, record.played, record);
    record.on_played = state.range(record.radius, record.played);
    record.on_conserved = state.range(record.radius, record.conserved);
    record.on_displaced = state.range(record.radius, record.displaced);
    return settle(state.settings, claim(state, offer, record), record) && !is_odd;
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
