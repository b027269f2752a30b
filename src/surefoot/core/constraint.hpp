// Constraints: what must never be lost. Each turns a round into a question q and a level that <theta, q> must reach.
//
// cumulative     at every round, all that was earned makes (1 - alpha) of the baseline's.  (paper, eq. 4)
// checkpoints    the same, but only at every k-th round; the rest of the block lends its slack in advance.
// stagewise      every single action makes (1 - alpha) of the baseline's.  (Moradipari et al. 2020)
// reserve        cumulative, with an additive budget granted in advance.
// realised_path  cumulative, in rewards that learner rounds actually received.  (after Du et al. 2021)
#pragma once
#include <cmath>

#include "question.hpp"

namespace surefoot {

// What each constraint weighs, and what of it carries over to the next round.
struct ConstraintRow {
  double played;      // weight of z + phi_a in the question
  bool is_one_round;  // asks of this round alone
  bool carries_over;  // a proof of its question holds for the next one, too
};

inline ConstraintRow row_of(Constraint kind) {
  switch (kind) {
    case Constraint::stagewise:
      return {1.0, true, false};
    case Constraint::realised_path:
      return {0.0, false, false};
    case Constraint::cumulative:
    case Constraint::checkpoints:
    case Constraint::reserve:
      return {1.0, false, true};
  }
  return {1.0, false, false};  // never: the compiler asks for a row of every constraint
}

// Rounds until the next multiple of `every`, after so many.
inline double rounds_left(double rounds, double every) { return std::ceil(rounds / every) * every - rounds; }

// Writes the question, and returns the level that <theta, q> must reach.
//
// A misspecification of epsilon moves every mean by at most that much, so it is owed once per unit of weight. What was
// spent before a restart is a debt (`surefoot.safety.alarm`).
template <int D>
double ask(const LinearSettings& s, const Ledger<D>& ledger, const Memory<D>& memory, View<D> proposal,
           View<D> displaced, Record<D>& record) {
  const ConstraintRow row = row_of(s.constraint);
  const double alpha = s.alpha, owed = 1.0 - alpha;
  for (int i = 0; i < record.question.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    record.question[i] = row.is_one_round
                             ? proposal[at] - owed * displaced[at]
                             : row.played * record.played[i] + alpha * record.conserved[i] - owed * record.displaced[i];
  }
  const double learner = ledger.learner_rounds + 1.0, baseline = ledger.baseline_rounds;
  const double weights = row.is_one_round ? 1.0 + owed : (row.played + owed) * learner + alpha * baseline;
  double level = s.misfit * weights;
  // What was lost in earlier rounds is no matter of this one alone.
  if (!row.is_one_round) level += memory.debt;
  if (s.constraint == Constraint::checkpoints) {
    // Counted from the first round of the promise, also if the ledger began anew since.
    const double left = rounds_left(memory.rounds_before + learner + baseline, s.amount);
    level -= alpha * left * larger(s.reward_floor, s.range_low);
  } else if (s.constraint == Constraint::reserve) {
    level -= s.amount;
  } else if (s.constraint == Constraint::realised_path) {
    // A reward that has not come yet is the lowest there can be.
    level -= memory.earned.total() + (learner - memory.earned_rounds) * s.amount;
  }
  return level;
}

}  // namespace surefoot
