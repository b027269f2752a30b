// The share of rounds that needs no data: where no mean is below 0 and rounds are set off against the same baseline, a
// share alpha of them is free, whatever the learner plays.
//
// q is then a sum of rows with weights of at least 0. What rounding has left of it is absorbed by the weights, which
// are larger: so an exact 0 is a proof, where a search would give its rounding away and be refused.
#pragma once
#include <cmath>

#include "constraint.hpp"
#include "linear_state.hpp"

namespace surefoot {

// alpha kept - (1 - alpha) owed, less what rounding may have added.
inline double surplus(double alpha, double kept, double owed) {
  return alpha * kept - (1.0 - alpha) * owed - 8.0 * EPS * (kept + owed);
}

// One fact of a split that says <theta, normal> >= level.
template <int D>
Fact<D> fact_of(Kind kind, double level, double weight, View<D> normal) {
  Fact<D> fact(static_cast<int>(normal.size()));
  fact.kind = kind;
  fact.level = level;
  fact.weight = weight;
  std::copy(normal.begin(), normal.end(), fact.normal.data());
  return fact;
}

// Where the baseline has always had these features: q = (z + phi_a) + surplus phi_b.
template <int D>
bool splits_by_baseline(const LinearState<D>& state, View<D> displaced, Record<D>& record) {
  const LinearSettings& s = state.settings;
  const double kept = state.ledger.baseline_rounds, owed = state.ledger.learner_rounds + 1.0;
  const double left = surplus(s.alpha, kept, owed);
  if (!(left >= 0.0)) return false;
  for (int i = 0; i < state.dim(); ++i) {
    const double x = displaced[static_cast<std::size_t>(i)];
    const auto is_all = [&](double sum, double rounds) {
      return std::fabs(sum - rounds * x) <= 4.0 * EPS * std::fabs(rounds * x);
    };
    if (!is_all(record.conserved[i], kept) || !is_all(record.displaced[i], owed)) return false;
  }
  record.split.push_back(fact_of<D>(played_least, owed * (s.range_low - s.misfit), 1.0, record.played));
  record.split.push_back(fact_of<D>(baseline_least, state.memory.low - s.misfit, left, displaced));
  return true;
}

// Where all rounds stand in cells: one weight per row.
template <int D>
bool splits_by_cells(const LinearState<D>& state, View<D> proposal, View<D> displaced, Record<D>& record) {
  const LinearSettings& s = state.settings;
  if (!state.likelihood || !state.likelihood->is_whole) return false;
  const Cells<D>& cells = state.likelihood->booked;
  const int chosen = cells.find(proposal), today = cells.find(displaced);
  if (today < 0) return false;  // a baseline that was never kept is owed without anything to set it off against
  const auto weight = [&](int i) {
    const Cell& cell = cells[i];
    return cell.played + (i == chosen ? 1.0 : 0.0) +
           surplus(s.alpha, cell.kept, cell.displaced + (i == today ? 1.0 : 0.0));
  };
  for (int i = 0; i < cells.count(); ++i) {
    if (!(weight(i) >= 0.0)) return false;
  }
  for (int i = 0; i < cells.count(); ++i) {
    if (weight(i) > 0.0)
      record.split.push_back(fact_of<D>(range_least, s.range_low - s.misfit, weight(i), cells.row(i)));
  }
  if (chosen < 0) record.split.push_back(fact_of<D>(range_least, s.range_low - s.misfit, 1.0, proposal));
  return true;
}

// Whether the round is one of the free share: then its split is in the record.
template <int D>
bool is_free(const LinearState<D>& state, const Offer<D>& offer, double required, Record<D>& record) {
  const LinearSettings& s = state.settings;
  const ConstraintRow row = row_of(s.constraint);
  if (row.is_one_round || row.played != 1.0 || s.gate != Gate::facts || !(s.range_low > -INFINITE)) return false;
  const View<D> proposal = offer.proposal(record.action), displaced = offer.displaced(record.action);
  if (splits_by_baseline(state, displaced, record) || splits_by_cells(state, proposal, displaced, record)) {
    double value = 0.0, size = 0.0;
    for (const Fact<D>& fact : record.split) {
      value += fact.weight * fact.level;
      size += std::fabs(fact.weight * fact.level);
    }
    // Sums of zeros are exact.
    value -= 2.0 * (static_cast<double>(record.split.size()) + 2.0) * EPS * size;
    if (value >= required) {
      record.guaranteed = value;
      record.required = required;
      return true;
    }
  }
  record.split.clear();
  return false;
}

}  // namespace surefoot
