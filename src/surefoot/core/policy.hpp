// What a policy is: settings, state, and how it proposes, judges, books and learns. Engine, replay and bindings are
// written once over this concept; adding a policy is one header, one line in `registry.hpp`, and one Python class.
#pragma once
#include <concepts>
#include <string_view>

#include "elementary.hpp"
#include "scores.hpp"
#include "team.hpp"

namespace surefoot {

// Orders: let the gate decide; play the baseline whatever it says, at the caller's wish, while the alarm is on, or by
// the coin of a holdout. A number of at least 0 is a row that the learner plays; TRY - row is one that somebody else
// proposes, and that the gate may refuse.
inline constexpr int FREE = -1, HOLD = -2, ALARMED = -3, HELD_OUT = -4, TRY = -16;
constexpr bool is_tried(int order) { return order <= TRY; }
// The row that an order names, or -1.
constexpr int row_in(int order) { return is_tried(order) ? TRY - order : order >= 0 ? order : -1; }

// One round as simulations and replays meet it.
struct Situation {
  const double* rows;  // features of the actions, one row each
  int actions, dim;
  bool is_catalogue;     // the rows are those of the policy's catalogue
  int baseline;          // the row that is played today
  double known;          // its mean reward
  bool is_told;          // whether a policy that need not know it is told
  double round;          // from 1
  int width = 0;         // where row i is zero but for block i: of a block
  bool is_next = false;  // the settings are those of the round before
  bool is_read = true;   // somebody reads the record of this round
};

// A reward that is learned, and the round it belongs to.
struct Lesson {
  const double* features;
  int row;
  bool is_learner;
  double reward;
};

template <class P>
concept Policy = requires(typename P::State& state, const typename P::State& same, const Situation& situation,
                          const typename P::Offer& offer, typename P::Record& record, const Lesson& lesson) {
  { P::name } -> std::convertible_to<std::string_view>;
  { P::meet(same, situation) } -> std::same_as<typename P::Offer>;
  { P::propose(state, offer, record, Solo{}) } -> std::same_as<Proposal>;
  { P::judge(state, offer, record) } -> std::same_as<bool>;
  { P::book(state, offer, record) };
  { P::teaches(same, true) } -> std::same_as<bool>;
  { P::learn(state, lesson, Solo{}) };
};

// Judges a proposal that is in the record, and books what is played: the learner's by order, or where the gate agrees.
template <Policy P>
[[gnu::always_inline]] inline void conclude(typename P::State& state, const typename P::Offer& offer,
                                            typename P::Record& record) {
  const bool is_safe = P::judge(state, offer, record);
  record.is_learner = offer.order >= 0 || ((offer.order == FREE || is_tried(offer.order)) && is_safe);
  P::book(state, offer, record);
}

// Of a policy whose gate is asked in every round (`lead.hpp`).
struct NoLead {
  template <class... Given>
  static constexpr bool covers(const Given&...) {
    return false;
  }
  template <class... Given>
  static constexpr void measure(const Given&...) {}
};

// One round, inlined into the loops that play many: what the policy proposes, and whether it is played. A row that
// breaks the bound D leaves -1 - row as the record's action, and everything as it was. While a lead covers the round
// the gate is not asked, and what it would have said is not in the record.
template <Policy P, class Team, class Lead = NoLead>
[[gnu::always_inline]] inline void decide(typename P::State& state, const typename P::Offer& offer,
                                          typename P::Record& record, const Team& team, Lead&& lead = {}) {
  const Proposal proposal = P::propose(state, offer, record, team);
  record.action = proposal.action;
  record.optimism = proposal.upper;
  if (proposal.action < 0) return;
  if (row_in(offer.order) >= 0) record.action = row_in(offer.order);
  if (is_tried(offer.order)) record.optimism = INFINITE;  // it was not chosen by its bound, and none is claimed
  if (lead.covers(state, offer, record)) {
    record.is_learner = true;
    P::book(state, offer, record);
  } else {
    conclude<P>(state, offer, record);
    lead.measure(state, offer, record);
  }
}

}  // namespace surefoot
