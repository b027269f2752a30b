// What policies over plain arms hold: counts and sums per arm.
#pragma once
#include <optional>
#include <vector>

#include "archive.hpp"
#include "arm_likelihood.hpp"
#include "exact.hpp"
#include "policy.hpp"
#include "settings.hpp"

namespace surefoot {

struct Arm {
  double plays = 0.0;  // decided
  double seen = 0.0;   // observed
  Sum total;

  // Counted when decided, whenever its reward comes: the floor is about what was played.
  void play() { plays += 1.0; }
  void observe(double reward) {
    seen += 1.0;
    total.add(reward);
  }
  double mean() const { return total.total() / seen; }
};

struct ArmSettings {
  double noise = 1.0;
  double alpha = 0.0, delta = 0.01;  // of those that keep a floor
  double known = -1.0;               // the default arm's mean; -1 where it is not known
};

struct ArmState {
  ArmSettings settings;
  std::vector<Arm> arms;
  std::optional<ArmLikelihood> likelihood;  // where single rewards are bounded

  ArmState(int count, const ArmSettings& settings_) : settings(settings_), arms(static_cast<std::size_t>(count)) {}

  int count() const { return static_cast<int>(arms.size()); }
  Arm& operator[](int i) { return arms[static_cast<std::size_t>(i)]; }
  const Arm& operator[](int i) const { return arms[static_cast<std::size_t>(i)]; }

  // Row after row: plays, seen, totals, carries; then the likelihood set.
  template <class Visit>
  void each(Visit visit) {
    for (Arm& arm : arms) visit(arm.plays);
    for (Arm& arm : arms) visit(arm.seen);
    for (const Arm& arm : arms) {
      check_count(arm.plays);
      check_count(arm.seen);
    }
    for (Arm& arm : arms) visit(arm.total.value);
    for (Arm& arm : arms) visit(arm.total.carry);
    if (likelihood) likelihood->each(visit);
  }

  // The arm without an observation that was played least, the first one on a tie; -1 if there is none. An arm whose
  // mean is known needs no observation (-1: no arm is known).
  int least_played_unseen(int known) const {
    int best = -1;
    for (int i = 0; i < count(); ++i) {
      if ((*this)[i].seen == 0.0 && i != known && (best < 0 || (*this)[i].plays < (*this)[best].plays)) best = i;
    }
    return best;
  }
};

struct ArmOffer {
  int baseline = -1;
  double round = 1.0;
  int order = FREE;
};

struct ArmRecord {
  int action = -1;
  bool is_learner = false;
  double guaranteed = -INFINITE, required = -INFINITE, optimism = 0.0;
  std::vector<double> lower, upper;  // of every arm, where a policy bounds them
  ArmSplit split;                    // of the question, where a likelihood set answers it
};

inline ArmOffer arm_offer(const Situation& now) { return {.baseline = now.baseline, .round = now.round}; }

}  // namespace surefoot
