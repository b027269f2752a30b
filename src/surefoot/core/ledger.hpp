// What has been played: the sums z, v, w of the paper, updated as soon as a round is decided.
//
// It never waits for rewards: a pending round is in the ledger and not in the confidence set (docs/mathematics.md,
// "The order of learning"). Every sum is compensated, so that a million rounds leave no rounding error behind.
#pragma once
#include "archive.hpp"
#include "exact.hpp"
#include "vector.hpp"

namespace surefoot {

template <int D>
struct Ledger {
  double learner_rounds = 0.0, baseline_rounds = 0.0;
  Sum conserved_reward,
      displaced_reward;  // known rewards of the baseline where it was kept, and where it was displaced
  SumVector<D> played, displaced, conserved;  // z, v, w

  explicit Ledger(int dim) : played(dim), displaced(dim), conserved(dim) {}

  template <class Visit>
  void each(Visit visit) {
    visit(learner_rounds);
    visit(baseline_rounds);
    check_count(learner_rounds);
    check_count(baseline_rounds);
    visit(conserved_reward);
    visit(displaced_reward);
    visit(played);
    visit(displaced);
    visit(conserved);
  }

  int dim() const { return played.value.size(); }
  double rounds() const { return learner_rounds + baseline_rounds; }

  // A learner round: z += phi_a, v += phi_b.
  void book_learner(View<D> features, View<D> baseline, double known) {
    learner_rounds += 1.0;
    displaced_reward.add(known);
    played.add(features);
    displaced.add(baseline);
  }

  // A baseline round: w += phi_b.
  void book_baseline(View<D> baseline, double known) {
    baseline_rounds += 1.0;
    conserved_reward.add(known);
    conserved.add(baseline);
  }

  // Undoes either of the two, for a round that was not played as it was decided.
  void take_back(View<D> features, View<D> baseline, double known, bool is_learner) {
    (is_learner ? learner_rounds : baseline_rounds) -= 1.0;
    (is_learner ? displaced_reward : conserved_reward).add(-known);
    (is_learner ? displaced : conserved).subtract(baseline);
    if (is_learner) played.subtract(features);
  }
};

}  // namespace surefoot
