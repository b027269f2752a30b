// The search for a split: the best lower bound of <theta, q> over one ellipsoid, the ball, and linear facts.
//
// With theta = c + radius M^T u the ellipsoid is the unit ball of u, a linear fact <theta, g> >= l is <a, u> >= h with
// a = radius M g and h = l - <c, g>, and the question asks for the least <p, u> with p = radius M q. Its dual,
//
//     maximise  h.mu - ||p - A^T mu||  over weights mu >= 0,
//
// is concave, and any mu is a valid split: mu_k g_k by fact k, the rest of q by the ellipsoid. The ascent keeps a
// working set of facts. On the face where only they have weight the maximum has a closed form; on the way there a
// weight that would turn negative leaves. Then the fact that the minimiser u violates most joins. The ball joins
// through its tangents, whose pieces add up to one piece of the ball. The value rises with every step, ends at the
// exact minimum over everything known, and may stop at any time. If it would rise without bound, no theta satisfies
// all facts.
#pragma once
#include <cmath>

#include "ascent.hpp"
#include "cells.hpp"
#include "settings.hpp"

namespace surefoot {

inline constexpr double VIOLATED = 1e-9;  // relative violation of a fact that is worth a step

// Where facts come from beside those that work: actions whose mean lies in [low, high], those offered now and others
// that were met, and what is given.
template <int D>
struct Sources {
  Rows<D> rows;
  double low, high;
  const Given<D>& given;
  const Cells<D>* met = nullptr;
};

// Writes the fact that theta violates most, relative to the length of its normal, and returns by how much.
template <int D>
double most_violated(const double* theta, double bound, const Sources<D>& from, Fact<D>& fact) {
  const int d = fact.normal.size();
  double worst = 0.0;
  int which = -1, kind = -1;
  const double* ranged = nullptr;
  const auto look_at = [&](const double* row) {
    const double mean = dot(theta, row, d), beyond = larger(from.low - mean, mean - from.high);
    if (!(beyond > 0.0)) return;
    const double excess = beyond / (std::sqrt(square_length(row, d)) + 1e-300);  // a row of zeros has no length
    if (excess > worst) {
      worst = excess;
      ranged = row;
      kind = mean < from.low ? range_least : range_most;
    }
  };
  // Where no range was declared there is nothing that a row could break.
  if (!(std::isinf(from.low) && std::isinf(from.high))) {
    for (int i = 0; i < from.rows.count; ++i) look_at(from.rows[i].data());
    for (int i = 0; from.met != nullptr && i < from.met->count(); ++i) {
      if ((*from.met)[i].is_silent()) look_at(from.met->row(i).data());
    }
  }
  for (int i = 0; i < from.given.count; ++i) {
    if (!(from.given.level(i) > -INFINITE)) continue;
    const double* normal = from.given.normal(i, d);
    const double beyond = from.given.level(i) - dot(normal, theta, d);
    if (!(beyond > 0.0)) continue;
    const double excess = beyond / (std::sqrt(square_length(normal, d)) + 1e-300);
    if (excess > worst) {
      worst = excess;
      which = i;
      kind = i < given ? i : other + i;
    }
  }
  const double length = std::sqrt(square_length(theta, d));
  if (length - bound > worst) {
    worst = length - bound;
    kind = tangent;
  }
  if (kind < 0) return 0.0;
  fact.kind = kind;
  fact.weight = 0.0;
  const bool is_range = kind == range_least || kind == range_most;
  const double sign = kind == range_most ? -1.0 : 1.0;
  const double* normal = kind == tangent ? theta : is_range ? ranged : from.given.normal(which, d);
  for (int j = 0; j < d; ++j) fact.normal[j] = kind == tangent ? -normal[j] / length : sign * normal[j];
  fact.level = kind == tangent       ? -bound
               : kind == range_least ? from.low
               : kind == range_most  ? -from.high
                                     : from.given.level(which);
  return worst;
}

// Updates facts that change with the ledger, and drops those that no longer say anything.
template <int D>
void refresh_working(Facts<D>& work, const Given<D>& facts) {
  int left = 0;
  for (int k = 0; k < work.count; ++k) {
    const int kind = work[k].kind, d = work[k].normal.size(), place = kind >= other ? kind - other : kind;
    if (kind < given || kind >= other) {
      if (!(facts.level(place) > -INFINITE)) continue;
      work[k].level = facts.level(place);
      for (int j = 0; j < d; ++j) work[k].normal[j] = facts.normal(place, d)[j];
    }
    if (left < k) std::swap(work[left], work[k]);
    left += 1;
  }
  work.count = left;
}

struct Found {
  double value, error;
  Status status;
};

// Improves the split in `work` until it proves `target`, is optimal, or the budget of joining facts is spent; the worst
// theta for the split is left in the workspace.
template <int D>
Found search(const Region<D>& region, const double* q, const Sources<D>& from, Facts<D>& work, double target,
             int budget, Whitened& space) {
  const int d = region.dim();
  Ascent<D> ascent(region, work, space);
  region.whiten(q, space.p.data());
  for (int k = 0; k < work.count; ++k) ascent.whiten(k);
  const double center = dot(q, region.center.data(), d);
  for (int step = 0; step <= budget; ++step) {
    if (ascent.climb() == Status::refuted) return {INFINITE, 0.0, Status::refuted};
    const double value = ascent.value();
    region.point(space.u.data(), space.theta.data());
    if (value + center > target || step == budget) break;
    if (work.count == work.room()) {
      int weakest = 0;
      for (int k = 0; k < work.count; ++k) weakest = work[k].weight < work[weakest].weight ? k : weakest;
      ascent.drop(weakest);
    }
    if (most_violated(space.theta.data(), region.bound, from, work[work.count]) <= VIOLATED * region.bound) break;
    ascent.whiten(work.count);
    work.count += 1;
  }
  // Weighed in the space of theta: whitened numbers guide the search and are not believed.
  Weighed found = weigh(region, q, work);
  if (!(found.value - found.error > target) && ascent.fill()) {
    const auto weight = [&](int k) { return space.direction[static_cast<std::size_t>(k)]; };
    const Weighed whole = weigh(region, q, work, work.count, weight);
    if (whole.value - whole.error > found.value - found.error) {
      for (int k = 0; k < work.count; ++k) work[k].weight = weight(k);
      found = whole;
    }
  }
  return {found.value, found.error, Status::found};
}

}  // namespace surefoot
