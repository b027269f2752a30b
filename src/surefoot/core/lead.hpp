// By how much a learner is ahead of its floor: while that is more than a round can cost, the gate need not be asked.
//
// Let a gate have passed <theta, q> - beta ||q||_{V^-1} for a question q, with something to spare. The next question is
// q + phi, whose width is at most the sum of both; and an observation x moves theta by e V^-1 x, so <theta, q> by at
// most |e| ||x||_{V^-1} ||q||_{V^-1}, while no width grows. A few products in each round follow what is left. Where
// that is not enough the gate is asked, and it is measured anew. So every answer is the gate's own, and in the long run
// one round of hundreds asks.
#pragma once
#include <cmath>

#include "linear_state.hpp"

namespace surefoot {

template <int D>
class Lead {
 public:
  // For rounds that choose among these rows, by a state that nobody else changes meanwhile.
  Lead(const LinearState<D>& state, Rows<D> rows, bool is_apt) : share_(1.0 - state.settings.alpha) {
    const LinearSettings& s = state.settings;
    // Else the gate looks at more than the set, or proposals are made by other widths than the set's.
    is_apt_ = is_apt && s.radius != Radius::dual && s.radius != Radius::likelihood && !state.likelihood &&
              !s.watchful && !(s.exploration > 0.0) && state.memory.refuted != TOO_HIGH;
    double square = 0.0;
    for (int i = 0; i < rows.count; ++i) square = larger(square_length(rows[i].data(), rows.dim()), square);
    const double longest = std::sqrt(square);
    widest_ = longest / std::sqrt(s.ridge);
    toll_ = 16.0 * EPS * s.theta_bound * longest;
  }

  // Whether the gate is sure to pass a proposal, which is then played, and nobody reads what it would say.
  [[gnu::always_inline]] bool covers(const LinearState<D>& state, const Offer<D>& offer, const Record<D>& record) {
    const double level = level_ - (share_ * offer.known + GUARD * std::fabs(offer.known) + toll_);
    // A proposal's LCB is its UCB less two widths.
    const double needed = ROOM * record.beta * (width_ + 2.0 * widest_) - record.optimism;
    if (offer.is_claimed || !(level >= needed && is_precise(state.ridge, record.beta))) return false;
    level_ = level;
    return true;
  }

  // After the gate was asked.
  [[gnu::always_inline]] void measure(const LinearState<D>& state, const Offer<D>& offer, const Record<D>& record) {
    measure(state, offer.proposal(record.action), record);
  }

  // After the reward of the round came.
  [[gnu::always_inline]] void learn(const typename Ridge<D>::Change& change, double reward) {
    const double width = change.width(), mean = reward - change.error * (1.0 / change.gain);
    width_ += width;
    level_ += mean - GUARD * (std::fabs(mean) + std::fabs(reward)) - std::fabs(change.error) * width * width_;
  }

 private:
  static constexpr double ROOM = 1.01;      // for what rounding does to theta and to widths,
  static constexpr double PRECISE = 1e-15;  // of which there must be far less: of its square, relative to beta's
  double level_ = -INFINITE;                // <theta, q> and what the baseline earned itself, less what is required
  double share_;                            // of the baseline's reward, that is required
  double width_ = 0.0;                      // at least ||q||_{V^-1}
  double widest_;                           // no row is wider
  double toll_;  // what the gate takes off for the rounding of its sums, at most, for one more round
  bool is_apt_;

  [[gnu::always_inline]] static bool is_precise(const Ridge<D>& ridge, double beta) {
    const double square = beta * beta;
    return ridge.drift * ridge.drift * (ridge.energy + square) <= PRECISE * square;
  }

  [[gnu::noinline]] void measure(const LinearState<D>& state, View<D> proposal, const Record<D>& record) {
    level_ = -INFINITE;
    const double margin = record.guaranteed - record.required;
    // One that is used up at once is not worth the while.
    if (!is_apt_ || !record.is_learner || !(margin > 4.0 * record.radius * widest_)) return;
    if (state.ridge.count == 0.0 || !is_precise(state.ridge, record.beta)) return;
    const Range earned = state.range(record.radius, record.played);
    width_ = earned.spread / record.radius;
    // Without the proposal, whose mean comes with its reward.
    level_ = margin + earned.spread - dot(state.ridge.theta.data(), proposal.data(), state.dim()) -
             GUARD * (std::fabs(earned.mean) + earned.spread + record.kept + record.owed);
  }
};

}  // namespace surefoot
