// SafeLUCB's gate: is <theta, q> at least what the constraint asks, by everything that is known?
//
// joint   q whole, by the newest set: one piece where the paper's gate has three.  (contrast certificates, Cheng 2026)
// ledger  q as the last proved question and the change since; each piece by its own round's set.  (ibid.)
// facts   the best split found over the set, the ball and every linear fact; joint if that suffices.
//
// All of them rest on one event, the confidence set's. Only the realised sum is another, and has its own share of
// delta.
#pragma once
#include <cmath>

#include "constraint.hpp"
#include "linear_state.hpp"
#include "search.hpp"

namespace surefoot {

inline constexpr int BUDGET = 32;       // facts that may join in one search
inline constexpr double PATIENCE = 50;  // refusals in a row for which one round may pass without a search
inline constexpr int CHECK_EVERY = 64;  // observations between two checks whether any theta still satisfies all facts

// Fills in the facts that change with the ledger.
template <int D>
void gather(LinearState<D>& state, View<D> displaced, const Record<D>& record) {
  const LinearSettings& s = state.settings;
  const Memory<D>& memory = state.memory;
  Given<D>& facts = state.facts;
  const int d = state.dim();
  const auto write = [&](Kind kind, double sign, auto part) {
    for (int i = 0; i < d; ++i) facts.normal(kind, d)[i] = sign * part(i);
  };
  const auto write_both = [&](Kind least, Kind most, auto part) {
    write(least, 1.0, part);
    write(most, -1.0, part);
  };
  write_both(kept_least, kept_most, [&](int i) { return record.conserved[i]; });
  write_both(owed_least, owed_most, [&](int i) { return record.displaced[i]; });
  write_both(played_least, played_most, [&](int i) { return record.played[i]; });
  write_both(baseline_least, baseline_most, [&](int i) { return displaced[static_cast<std::size_t>(i)]; });
  write(realised, 1.0, [&](int i) { return memory.earned_features.total(i); });
  write(proved_before, 1.0, [&](int i) { return memory.proved_question[i]; });
  const double learner = state.ledger.learner_rounds + 1.0, baseline = state.ledger.baseline_rounds;
  for (int k = 0; k < given; ++k) facts.level(k) = -INFINITE;
  if (baseline > 0.0) {
    facts.level(kept_least) = memory.kept_low.total() - s.misfit * baseline;
    facts.level(kept_most) = -memory.kept_high.total() - s.misfit * baseline;
  }
  facts.level(owed_least) = memory.owed_low.with(memory.low) - s.misfit * learner;
  facts.level(owed_most) = -memory.owed_high.with(memory.high) - s.misfit * learner;
  facts.level(played_least) = learner * (s.range_low - s.misfit);
  facts.level(played_most) = learner * (-s.range_high - s.misfit);
  facts.level(baseline_least) = memory.low - s.misfit;
  facts.level(baseline_most) = -memory.high - s.misfit;
  if (s.sum_delta > 0.0 && memory.earned_rounds > 0.0) facts.level(realised) = realised_level(s, memory);
  if (memory.proved_round > 0.0) facts.level(proved_before) = memory.proved;
}

// The better of two splits that need no search: w by its floor, or the question as it was last proved by that proof,
// and the rest of q by the set. Leaves it in the record.
template <int D>
Weighed closed_form(const LinearState<D>& state, const Region<D>& region, Record<D>& record) {
  const LinearSettings& s = state.settings;
  const int d = state.dim();
  Weighed best{-INFINITE, 0.0};
  Facts<D> split(d, 1);
  for (const int kind : {kept_least, proved_before}) {
    if (state.facts.level(kind) == -INFINITE || (kind == proved_before && s.gate == Gate::joint)) continue;
    split.count = 1;
    split[0].kind = kind;
    split[0].level = state.facts.level(kind);
    split[0].weight = kind == kept_least ? s.alpha : 1.0;
    for (int j = 0; j < d; ++j) split[0].normal[j] = state.facts.normal(kind, d)[j];
    const Weighed found = weigh(region, record.question.data(), split);
    if (found.value > best.value) {
      best = found;
      record.split.assign(1, split[0]);
    }
  }
  return best;
}

// Looks for a better split than q whole, which proves `value`; leaves it in the record.
template <int D>
Weighed improve(LinearState<D>& state, Rows<D> rows, View<D> displaced, double required, double value,
                Record<D>& record) {
  const LinearSettings& s = state.settings;
  Memory<D>& memory = state.memory;
  const bool is_dual = s.radius == Radius::dual && state.ridge.count > 0.0;
  Region<D> region{is_dual ? memory.set.center : state.ridge.theta,
                   is_dual ? memory.set.whitener : state.ridge.whitener, record.radius, s.theta_bound};
  // Without data the ball is the ellipsoid with M = I / sqrt(ridge).
  if (state.ridge.count == 0.0) region.radius = std::sqrt(s.ridge) * s.theta_bound * (1.0 + 8.0 * EPS);
  gather(state, displaced, record);
  if (s.gate != Gate::facts || memory.pause > 0.0) {
    memory.pause = larger(0.0, memory.pause - 1.0);
    return closed_form(state, region, record);
  }
  refresh_working(memory.working, state.facts);
  Weighed found = weigh(region, record.question.data(), memory.working);
  if (!(found.value - found.error > required)) {  // the weights of the round before no longer suffice
    const Sources<D> from{rows, s.range_low - s.misfit, s.range_high + s.misfit, state.facts};
    // A little beyond what is required, so that the rounding error taken off afterwards does not undo it.
    const double target = required + 1e-9 * std::fabs(value - required);
    const Found better = search(region, record.question.data(), from, memory.working, target, BUDGET, state.space);
    if (better.status == Status::refuted) {
      memory.refuted = REFUTED;
      return {-INFINITE, 0.0};
    }
    found = {better.value, better.error};
  }
  const auto first = memory.working.places.begin();
  record.split.assign(first, first + memory.working.count);
  return found;
}

// Whether some theta satisfies the confidence set, the ball and every linear fact.
template <int D>
bool is_consistent(LinearState<D>& state, Rows<D> rows, View<D> displaced, const Record<D>& record) {
  const LinearSettings& s = state.settings;
  gather(state, displaced, record);
  const Region<D> region{state.ridge.theta, state.ridge.whitener, record.radius, s.theta_bound};
  const Sources<D> from{rows, s.range_low - s.misfit, s.range_high + s.misfit, state.facts};
  Facts<D> work(state.dim());
  const Vector<D> nothing(state.dim());
  return search(region, nothing.data(), from, work, INFINITE, 2 * BUDGET, state.space).status != Status::refuted;
}

// Whether the proposal keeps the constraint for every possible theta.
template <int D>
bool ask_facts(LinearState<D>& state, const Offer<D>& offer, Record<D>& record) {
  const LinearSettings& s = state.settings;
  Memory<D>& memory = state.memory;
  const View<D> proposal = offer.proposal(record.action), displaced = offer.displaced(record.action);
  pose(state.ridge, state.ledger, proposal, displaced, record);
  const double required = ask(s, state.ledger, memory, proposal, displaced, record);
  const auto seen = static_cast<long long>(state.ridge.count);
  const bool is_due = seen > 0 && (seen % CHECK_EVERY == 0 || (seen & (seen - 1)) == 0);
  if (is_due && !is_consistent(state, offer.rows, displaced, record)) memory.refuted = REFUTED;
  choose_set<D>(s, state.ridge, memory, record.question, record);
  record.split.clear();
  if (memory.refuted > 0.0) {
    record.guaranteed = -INFINITE;
    record.required = required;
    return false;
  }
  const Range whole = state.range(record.radius, record.question);
  const double value = whole.low();
  if (settle(s, value, required, std::fabs(whole.mean) + whole.spread, record)) return true;
  const bool is_searching = s.gate == Gate::facts && memory.pause == 0.0;
  const auto [found, error] = improve(state, offer.rows, displaced, required, value, record);
  if (memory.refuted > 0.0) {
    record.guaranteed = -INFINITE;
    return false;
  }
  bool is_safe = false;
  if (found - error > value) {
    is_safe = settle(s, found - error, required, 0.0, record);  // `error` has covered the sizes
  } else {
    record.split.clear();
  }
  // After many refusals in a row the next answer is likely the same: waiting a fiftieth longer costs a fiftieth more.
  if (is_safe) {
    memory.refused = memory.pause = 0.0;
  } else if (is_searching) {
    memory.refused += 1.0;
    memory.pause = std::floor(memory.refused / PATIENCE);
  }
  return is_safe;
}

// Remembers what is known of this round's baseline, and what has been proved once the round is played.
template <int D>
void remember_round(LinearState<D>& state, View<D> displaced, const Record<D>& record) {
  const LinearSettings& s = state.settings;
  Memory<D>& memory = state.memory;
  memory.remember_baseline(displaced, state.ledger.rounds() == 1.0, record.is_learner);
  if (!row_of(s.constraint).carries_over || memory.refuted > 0.0) return;
  const int d = state.dim();
  if (record.is_learner) {
    memory.proved_question = record.question;
    memory.proved = record.guaranteed;
  } else {
    const Range today = state.range(record.radius, displaced);
    double size = 0.0;
    for (int i = 0; i < d; ++i) {
      const double x = displaced[static_cast<std::size_t>(i)];
      memory.proved_question[i] += s.alpha * x;
      size += std::fabs(memory.proved_question[i]) + std::fabs(x);
    }
    // The proof carried on grows by what this baseline round earns at least (docs, "Gates").
    const double gain = s.alpha * larger(today.low(), memory.low - s.misfit);
    memory.proved +=
        gain - 8.0 * EPS * (s.theta_bound * size + std::fabs(memory.proved) + std::fabs(today.mean) + today.spread);
  }
  memory.proved_round = state.ledger.rounds();
}

}  // namespace surefoot
