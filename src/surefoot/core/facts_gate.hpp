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
#include "free_share.hpp"
#include "likelihood_dual.hpp"
#include "linear_state.hpp"
#include "search.hpp"

namespace surefoot {

inline constexpr int BUDGET = 32;       // facts that may join in one search
inline constexpr double PATIENCE = 50;  // refusals in a row for which one round may pass without a search
inline constexpr double AHEAD =
    0.25;                             // of the rounds that a refusal will last at least, how many pass without a search
inline constexpr double LONGEST = 4;  // and how many of them in a row, at most
inline constexpr int CHECK_EVERY = 64;  // observations between two checks whether any theta still satisfies all facts

// Fills in the tangents of the likelihood set, as they stand now.
template <int D>
void gather_tangents(LinearState<D>& state) {
  for (int k = 0; k < TANGENTS; ++k) {
    state.facts.level(given + k) = -INFINITE;
    if (!state.likelihood) continue;
    const Tangent<D>& touched = state.likelihood->tangents[static_cast<std::size_t>(k)];
    if (!touched.is_set) continue;
    state.facts.level(given + k) = state.likelihood->level(touched, state.settings.theta_bound);
    for (int i = 0; i < state.dim(); ++i) state.facts.normal(given + k, state.dim())[i] = touched.normal.total(i);
  }
}

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
  gather_tangents(state);
}

// The ellipsoid that a split leaves the rest to: without data, or with the likelihood set alone, the ball.
template <int D>
Region<D> region_of(const LinearState<D>& state, const Record<D>& record) {
  const LinearSettings& s = state.settings;
  if (s.radius == Radius::likelihood) {
    return {state.memory.set.center, state.memory.set.whitener, s.theta_bound * (1.0 + 8.0 * EPS), s.theta_bound};
  }
  // Without data the ball is the ellipsoid with M = I / sqrt(ridge).
  if (state.ridge.count == 0.0) {
    const double radius = std::sqrt(s.ridge) * s.theta_bound * (1.0 + 8.0 * EPS);
    return {state.ridge.theta, state.ridge.whitener, radius, s.theta_bound};
  }
  if (s.radius == Radius::dual) {
    return {state.memory.set.center, state.memory.set.whitener, record.radius, s.theta_bound};
  }
  return {state.ridge.theta, state.ridge.whitener, record.radius, s.theta_bound};
}

// Actions whose means lie within the declared range, and the facts of this round.
template <int D>
Sources<D> sources_of(const LinearState<D>& state, Rows<D> rows) {
  const LinearSettings& s = state.settings;
  const Cells<D>* met = state.likelihood ? &state.likelihood->met() : nullptr;
  return {rows, s.range_low - s.misfit, s.range_high + s.misfit, state.facts, met};
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

// Whether a point of the likelihood set is known at which the question fails: then no tangent can prove it.
template <int D>
bool is_witnessed(const LinearState<D>& state, double required, const Record<D>& record) {
  const Tangent<D>& witness = state.likelihood->witness;
  if (!witness.is_set) return false;
  const int d = state.dim();
  const double* theta = witness.point.data();
  if (!(dot(record.question.data(), theta, d) < required)) return false;
  // At its own point a tangent is as high as the loss.
  double loss = witness.height.total();
  for (int i = 0; i < d; ++i) loss -= witness.normal.total(i) * theta[i];
  return loss <= state.likelihood->allowed();
}

// Whether that point satisfies everything else that is known, too: then nothing can prove the question.
template <int D>
bool is_beyond_doubt(LinearState<D>& state, const Region<D>& region, Rows<D> rows) {
  const int d = state.dim();
  const double* theta = state.likelihood->witness.point.data();
  Fact<D> broken(d);
  if (most_violated(theta, region.bound, sources_of(state, rows), broken) > VIOLATED * region.bound) return false;
  if (state.is_ball()) return true;
  // ||theta - center||_V <= radius
  Vector<D> apart(d);
  for (int i = 0; i < d; ++i) apart[i] = theta[i] - region.center[i];
  return state.ridge.square_in_gram(apart) <= region.radius * region.radius;
}

// Touches the likelihood set where that proves most of the question; what it proves by itself, up to a little.
template <int D>
double touch_for(LinearState<D>& state, View<D> proposal, View<D> displaced, double required, const Record<D>& record) {
  Likelihood<D>& set = *state.likelihood;
  if (set.forecaster.rounds == 0.0) return -INFINITE;
  DualSearch<D> dual(set, state.settings.theta_bound, {proposal, displaced});
  if (!dual.fit()) {
    state.memory.refuted = REFUTED;
    return -INFINITE;
  }
  const double found = dual.find(record.question);
  set.touch_at(dual.point);
  if (!(found > required)) set.bear_witness(dual.witness(record.question, required));
  gather_tangents(state);
  return found;
}

// Looks for a better split than q whole, which proves `value`; leaves it in the record.
template <int D>
Weighed improve(LinearState<D>& state, const Offer<D>& offer, double required, double value, Record<D>& record) {
  Memory<D>& memory = state.memory;
  const View<D> proposal = offer.proposal(record.action), displaced = offer.displaced(record.action);
  const Region<D> region = region_of(state, record);
  gather(state, displaced, record);
  if (state.settings.gate != Gate::facts || memory.pause > 0.0) {
    memory.pause = larger(0.0, memory.pause - 1.0);
    return closed_form(state, region, record);
  }
  const double* q = record.question.data();
  refresh_working(memory.working, state.facts);
  Weighed found = weigh(region, q, memory.working);
  int budget = BUDGET;
  bool is_done = found.value - found.error > required;  // by the weights of the round before
  if (!is_done && state.likelihood) {
    // Where the set alone cannot prove it, what is known beside it seldom does, and then by few facts.
    if (is_witnessed(state, required, record)) {
      is_done = is_beyond_doubt(state, region, offer.rows);
      budget = BUDGET / 4;
    } else {
      if (!(touch_for(state, proposal, displaced, required, record) > required)) budget = BUDGET / 4;
      if (memory.refuted > 0.0) return {-INFINITE, 0.0};
      refresh_working(memory.working, state.facts);
    }
  }
  if (!is_done) {
    // A little beyond what is required, so that the rounding error taken off afterwards does not undo it.
    const double target = required + 1e-9 * std::fabs(value - required);
    const Found better = search(region, q, sources_of(state, offer.rows), memory.working, target, budget, state.space);
    if (better.status == Status::refuted) {
      memory.refuted = REFUTED;
      return {-INFINITE, 0.0};
    }
    found = {better.value, better.error};
  }
  record.split.assign(memory.working.places.begin(), memory.working.places.begin() + memory.working.count);
  return found;
}

// Whether some theta satisfies the confidence set, the ball and every linear fact.
template <int D>
bool is_consistent(LinearState<D>& state, Rows<D> rows, View<D> displaced, const Record<D>& record) {
  gather(state, displaced, record);
  const bool is_ball = state.settings.radius == Radius::likelihood;
  const Region<D> region =
      is_ball ? region_of(state, record)
              : Region<D>{state.ridge.theta, state.ridge.whitener, record.radius, state.settings.theta_bound};
  Facts<D> work(state.dim());
  const Vector<D> nothing(state.dim());
  return search(region, nothing.data(), sources_of(state, rows), work, INFINITE, 2 * BUDGET, state.space).status !=
         Status::refuted;
}

// Where the tangents of the split touch the likelihood set.
template <int D>
void keep_points(const LinearState<D>& state, Record<D>& record) {
  for (const Fact<D>& fact : record.split) {
    if (fact.kind < likelihood) continue;
    record.points.push_back(state.likelihood->tangents[static_cast<std::size_t>(fact.kind - likelihood)].point);
  }
}

// How many rounds may pass after a refusal before the next search. It is never unsafe to wait, and the set by
// likelihood is costly to search: what is missing is earned by rounds on the baseline, a share alpha of its mean each.
template <int D>
double pause_after(const LinearState<D>& state, View<D> displaced, double missing) {
  // After many refusals in a row the next answer is likely the same: waiting a fiftieth longer costs a fiftieth more.
  const double patience = std::floor(state.memory.refused / PATIENCE);
  if (!state.likelihood) return patience;
  const double mean = dot(state.likelihood->model.theta.data(), displaced.data(), state.dim());
  const double rounds = AHEAD * missing / (state.settings.alpha * larger(mean, state.settings.range_low));
  return larger(patience, rounds >= 0.0 && rounds < LONGEST ? std::floor(rounds) : LONGEST);
}

// Whether the proposal keeps the constraint for every possible theta.
template <int D>
bool ask_facts(LinearState<D>& state, const Offer<D>& offer, Record<D>& record) {
  const LinearSettings& s = state.settings;
  Memory<D>& memory = state.memory;
  const View<D> proposal = offer.proposal(record.action), displaced = offer.displaced(record.action);
  pose(state.ridge, state.ledger, proposal, displaced, record, s.radius == Radius::likelihood);
  const double required = ask(s, state.ledger, memory, proposal, displaced, record);
  const auto seen = static_cast<long long>(state.ridge.count);
  const bool is_due = seen > 0 && (seen % CHECK_EVERY == 0 || (seen & (seen - 1)) == 0);
  if (is_due && !is_consistent(state, offer.rows, displaced, record)) memory.refuted = REFUTED;
  choose_set<D>(s, state.ridge, memory, record.question, record);
  record.split.clear();
  record.points.clear();
  if (memory.refuted > 0.0) {
    record.guaranteed = -INFINITE;
    record.required = required;
    return false;
  }
  const Range whole = state.range(record.radius, record.question);
  const double value = whole.low();
  if (settle(s, {value, required, std::fabs(whole.mean) + whole.spread}, record)) return true;
  const bool is_searching = s.gate == Gate::facts && memory.pause == 0.0;
  if (is_free(state, offer, required, record)) return true;
  const auto [found, error] = improve(state, offer, required, value, record);
  if (memory.refuted > 0.0) {
    record.guaranteed = -INFINITE;
    return false;
  }
  bool is_safe = false;
  if (found - error > value) {
    is_safe = settle(s, {found - error, required, 0.0}, record);  // `error` has covered the sizes
    keep_points(state, record);
  } else {
    record.split.clear();
  }
  if (is_safe) {
    memory.refused = memory.pause = 0.0;
  } else if (is_searching) {
    memory.refused += 1.0;
    memory.pause = pause_after(state, displaced, required - larger(value, found - error));
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
