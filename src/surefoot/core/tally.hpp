// What is counted along a run, by the true means.
#pragma once
#include <vector>

#include "sums.hpp"

namespace surefoot {

inline constexpr double SLACK = 1e-12;  // relative rounding of the sums that a violation is judged by

struct Counts {
  double round = 0.0, regret = 0.0, earned = 0.0, owed = 0.0, baseline_rounds = 0.0, last_baseline = 0.0;
  double worst_share = INFINITE;  // of what the baseline would have earned
};

struct Tally : Counts {
  std::vector<double> watched;     // alphas by which violations are counted
  std::vector<double> violations;  // rounds below (1 - alpha) of the baseline's, for each of them

  double least = 1.0;  // of the watched: no other is violated where this one is not

  explicit Tally(std::vector<double> alphas) : watched(std::move(alphas)), violations(watched.size()) {
    for (const double alpha : watched) least = alpha < least ? alpha : least;
  }

  // One more round: what was played has this mean, the best action that one, and the baseline would have earned
  // `owed_`.
  [[gnu::always_inline]] void count(double mean, double best, double owed_, bool is_learner) {
    round += 1.0;
    regret += best - mean;
    earned += mean;
    owed += owed_;
    if (!is_learner) {
      baseline_rounds += 1.0;
      last_baseline = round;
    }
    // As long as nothing is owed there is no share to speak of. The quotient is taken only where it is a new minimum.
    if (owed > 0.0 && earned < worst_share * owed) worst_share = earned / owed;
    if (owed >= 0.0 && earned >= bar(least)) return;
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (earned < bar(watched[i])) violations[i] += 1.0;
    }
  }

  // What the rounds so far must have earned at least, by this alpha.
  double bar(double alpha) const { return (1.0 - alpha) * owed * (1.0 - SLACK); }

  // What `write` puts down, in the order of MEASURES in `surefoot.simulation.engine`.
  static constexpr int HEAD = 6;
  int size() const { return HEAD + static_cast<int>(violations.size()); }
  void write(double* row) const {
    const double head[HEAD] = {regret, earned, owed, baseline_rounds, last_baseline, worst_share};
    for (int i = 0; i < HEAD; ++i) row[i] = head[i];
    for (std::size_t i = 0; i < violations.size(); ++i) row[HEAD + static_cast<int>(i)] = violations[i];
  }
};

}  // namespace surefoot
