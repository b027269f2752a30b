// Which action SafeLUCB proposes: the one with the largest upper bound, by the confidence set alone or by everything
// known.
//
// The facts that prove lower bounds give upper ones, too: UCB(phi) = -lower(-phi). Rows are tried in the order of the
// set's own bound, which is never lower, until no other can win.
#pragma once
#include <cmath>
#include <vector>

#include "linear_state.hpp"
#include "search.hpp"

namespace surefoot {

inline constexpr int OPTIMISM_BUDGET = 16;  // facts that may join in the search for one action's bound

// The row whose mean may be largest over all facts, the first one on a tie, and that bound; its scores are up to date.
template <int D>
Proposal most_promising(LinearState<D>& state, Rows<D> rows, const Scores& scores, double beta) {
  const LinearSettings& s = state.settings;
  const int d = state.dim();
  const double radius = guarded_radius(state.ridge, beta);
  std::vector<double> uppers(static_cast<std::size_t>(rows.count));
  std::vector<bool> is_open(uppers.size(), true);
  for (std::size_t i = 0; i < uppers.size(); ++i) uppers[i] = scores.means[i] + radius * std::sqrt(scores.squares[i]);
  const auto most_open = [&] {
    int best = -1;
    for (int i = 0; i < rows.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (is_open[at] && (best < 0 || uppers[at] > uppers[static_cast<std::size_t>(best)])) best = i;
    }
    return best;
  };
  const Region<D> region{state.ridge.theta, state.ridge.whitener, radius, s.theta_bound};
  const Given<D> nothing(0, d);
  const Sources<D> from{rows, s.range_low - s.misfit, s.range_high + s.misfit, nothing};
  Vector<D> negative(d);
  Proposal best{0, -INFINITE};
  for (int place = 0; place < rows.count; ++place) {
    const int i = most_open();
    is_open[static_cast<std::size_t>(i)] = false;
    const double cheap =
        uppers[static_cast<std::size_t>(i)] < s.range_high ? uppers[static_cast<std::size_t>(i)] : s.range_high;
    if (place == 0) best.action = i;  // some row must be returned, even if the facts are refuted at once
    if (cheap <= best.upper) break;
    for (int j = 0; j < d; ++j) negative[j] = -rows[i][static_cast<std::size_t>(j)];
    Facts<D> work(d);
    const Found found = search(region, negative.data(), from, work, INFINITE, OPTIMISM_BUDGET, state.space);
    if (found.status == Status::refuted) return {best.action, cheap};
    const double proved = -(found.value - found.error), upper = proved < cheap ? proved : cheap;
    if (upper > best.upper) best = {i, upper};
  }
  return best;
}

}  // namespace surefoot
