// What a linear policy was told: checked by the Python class that makes it.
#pragma once
#include "compiled_for.hpp"
#include "sums.hpp"

namespace surefoot {

// Python names each by its number, which may be no larger than `last`.
enum class Gate { joint, ledger, facts, last = facts };
enum class Optimism { set, facts, last = facts };
enum class Constraint { cumulative, checkpoints, stagewise, reserve, realised_path, last = realised_path };

struct LinearSettings {
  double noise = 1.0, delta = 0.01, ridge = 1.0, theta_bound = 1.0, feature_bound = 1.0;
  double alpha = 0.0, reward_floor = 0.0;
  DeclaredRadius radius = Radius::paper;
  double misfit = 0.0;  // how far a mean may lie from <theta, features>
  double range_low = -INFINITE, range_high = INFINITE;
  double sum_delta = 0.0;                      // for the sum of realised rewards; 0 leaves that fact out
  double reward_low = 0.0, reward_high = 1.0;  // of a single reward, where a likelihood set is used
  double likelihood_delta = 0.0;               // for that set; 0 leaves it out
  Constraint constraint = Constraint::cumulative;
  double amount = 0.0;  // of the constraint
  Gate gate = Gate::facts;
  Optimism optimism = Optimism::set;
  double exploration = 0.0;  // what proposals count a width, where that is not the radius of the set; 0: it is
  // A policy that plays, not a replay: a replay declares one mean for all contexts, which single rows may contradict.
  bool watchful = false;
};

}  // namespace surefoot
