// By how much a learner is ahead of its floor: while that is more than a round can cost, the gate need not be asked.
//
// Let a gate have passed <theta, q> - beta ||q||_{V^-1} for a question q, with something to spare. The next question is
// q + phi, whose width is at most the sum of both; and an observation x moves theta by e V^-1 x, so <theta, q> by at
// most |e| ||x||_{V^-1} ||q||_{V^-1}, while no width grows. A few products in each round follow what is left. Where
// that is not enough the gate is asked, and it is measured anew. So every answer is the gate's own, and in the long run
// one round of hundreds asks.
//
// CLUCB2 has three such questions, z, v and w. What is followed are the sums over them, each with its factor; and since
// the baseline's mean is not known, it is followed like the rest: from where it was measured, as far as theta moves.
#pragma once
#include <cmath>

#include "linear_state.hpp"

namespace surefoot {

// What a policy promises not to fall below: nothing, or a share of rewards that are known, or that are not.
enum class Floor { none, known, unknown };

template <int D>
class Lead {
 public:
  // For rounds that choose among these rows, by a state that nobody else changes meanwhile.
  Lead(Floor floor, const LinearState<D>& state, Rows<D> rows, bool is_apt)
      : floor_(floor), share_(1.0 - state.settings.alpha) {
    const LinearSettings& s = state.settings;
    // Else the gate looks at more than the set, or proposals are made by other widths than the set's.
    is_apt_ = is_apt && s.radius != Radius::dual && s.radius != Radius::likelihood && !state.likelihood &&
              !s.watchful && !(s.exploration > 0.0) && state.memory.refuted != TOO_HIGH;
    double square = 0.0;
    for (int i = 0; i < rows.count; ++i) square = larger(square_length(rows[i].data(), rows.dim()), square);
    const double longest = std::sqrt(square);
    widest_ = longest / std::sqrt(s.ridge);
    toll_ = 64.0 * EPS * s.theta_bound * longest;
  }

  // Whether the gate is sure to pass a proposal, which is then played, and nobody reads what it would say.
  [[gnu::always_inline]] bool covers(const LinearState<D>& state, const Offer<D>& offer, const Record<D>& record) {
    const double owed = floor_ == Floor::known ? offer.known : mean_today_;
    const double level = level_ - (share_ * owed + GUARD * std::fabs(owed) + toll_);
    const double width = width_ + share_ * width_today_;
    // A proposal's LCB is its UCB less two widths.
    const double needed = ROOM * record.beta * (width + 2.0 * widest_) - record.optimism;
    const bool is_ahead =
        level >= needed && is_precise(state.ridge, record.beta) && (floor_ == Floor::known || offer.baseline == today_);
    if (offer.is_claimed || !(floor_ == Floor::none ? is_apt_ : is_ahead)) return false;
    level_ = level;
    width_ = width;
    return true;
  }

  // After the gate was asked.
  [[gnu::noinline]] void measure(const LinearState<D>& state, const Offer<D>& offer, const Record<D>& record) {
    level_ = -INFINITE;
    const double margin = record.guaranteed - record.required;
    // One that is used up at once is not worth the while.
    if (!is_apt_ || floor_ == Floor::none || !record.is_learner || !(margin > 4.0 * record.radius * widest_)) return;
    if (state.ridge.count == 0.0 || !is_precise(state.ridge, record.beta)) return;
    const View<D> proposal = offer.proposal(record.action), displaced = offer.displaced(record.action);
    Range sum = record.on_played;
    double size = std::fabs(sum.mean) + sum.spread + std::fabs(record.kept) + std::fabs(record.owed);
    const double mean = dot(state.ridge.theta.data(), proposal.data(), state.dim());
    if (floor_ == Floor::unknown) {
      const auto add = [&](double share, const Range& found) {
        sum.spread += share * found.spread;
        size += std::fabs(found.mean) + found.spread;
      };
      add(share_, record.on_displaced);
      // The better one of two bounds on what the baseline earned itself; the other needs no width.
      add(record.owed > record.kept ? 1.0 - share_ : 0.0, record.on_conserved);
      const Range today = state.range(record.radius, displaced);
      today_ = offer.baseline;
      mean_today_ = today.mean + GUARD * (std::fabs(today.mean) + today.spread);
      width_today_ = today.spread / record.radius;
    }
    width_ = sum.spread / record.radius;
    // Without the proposal, whose mean comes with its reward.
    level_ = margin + sum.spread - mean - GUARD * size;
  }

  // After the reward of the round came.
  [[gnu::always_inline]] void learn(const typename Ridge<D>::Change& change, double reward) {
    const double width = change.width(), mean = reward - change.error * (1.0 / change.gain);
    const double moved = std::fabs(change.error) * width;
    width_ += width;
    level_ += mean - GUARD * (std::fabs(mean) + std::fabs(reward)) - moved * width_;
    mean_today_ += moved * width_today_;
  }

 private:
  static constexpr double ROOM = 1.01;      // for what rounding does to theta and to widths,
  static constexpr double PRECISE = 1e-15;  // of which there must be far less: of its square, relative to beta's
  Floor floor_;
  double level_ = -INFINITE;  // <theta, q> and what the baseline earned itself, less what is required
  double share_;              // of the baseline's reward, that is required
  double width_ = 0.0;        // at least ||q||_{V^-1}
  double widest_;             // no row is wider
  double toll_;               // what the gate takes off for the rounding of its sums, at most, for one more round
  int today_ = -1;            // the baseline's row as it was measured, and at least its mean and its width
  double mean_today_ = 0.0, width_today_ = 0.0;
  bool is_apt_;

  [[gnu::always_inline]] static bool is_precise(const Ridge<D>& ridge, double beta) {
    const double square = beta * beta;
    return ridge.drift * ridge.drift * (ridge.energy + square) <= PRECISE * square;
  }
};

}  // namespace surefoot
