// What a policy remembers beside ridge and ledger: known rewards, realised rewards, the last proof, and facts worth
// keeping.
#pragma once
#include <cmath>

#include "archive.hpp"
#include "elementary.hpp"
#include "ellipsoid.hpp"
#include "facts.hpp"
#include "settings.hpp"

namespace surefoot {

// Why nothing more is proved.
inline constexpr double REFUTED = 1.0;   // no theta is left that satisfies data and declarations
inline constexpr double TOO_HIGH = 2.0;  // a declared reward of the baseline that its features do not allow

// Where nothing is declared the range is infinite, and the floor 0: a baseline's mean is never negative.
inline double least_known(const LinearSettings& s, double least) {
  return larger(least, larger(s.reward_floor, s.range_low));
}
inline double most_known(const LinearSettings& s, double most) { return most < s.range_high ? most : s.range_high; }

// All of it but the set and the facts, whose room grows with the square of the dimension.
template <int D>
struct RememberedRounds {
  double low = 0.0, high = 0.0;  // what is known of this round's baseline reward
  Sum kept_low, kept_high;       // of the rounds that kept the baseline
  Sum owed_low, owed_high;       // of the rounds that displaced it
  Sum earned;                    // rewards of learner rounds that were learned
  double earned_rounds = 0.0;
  double refuted = 0.0;  // 0, REFUTED or TOO_HIGH
  double proved = 0.0, proved_round = 0.0;
  double refused = 0.0, pause = 0.0;  // refusals in a row, and rounds to come without a search
  bool moved = false;                 // for good once a baseline's reward is not exactly known, or its features change
  double debt = 0.0, rounds_before = 0.0;  // of rounds before a restart (`surefoot.safety.alarm`)
  SumVector<D> earned_features;
  Vector<D> proved_question, first_baseline;

  explicit RememberedRounds(int dim) : earned_features(dim), proved_question(dim), first_baseline(dim) {}

  int dim() const { return proved_question.size(); }

  template <class Visit>
  void each(Visit visit, Facts<D>& working) {
    visit(low);
    visit(high);
    for (Sum* sum : {&kept_low, &kept_high, &owed_low, &owed_high, &earned}) visit(*sum);
    for (double* number : {&earned_rounds, &refuted, &proved, &proved_round}) visit(*number);
    visit(working.count);
    if (working.count > working.room()) damaged("it holds more facts than there is room for");
    visit(refused);
    visit(pause);
    visit(moved);
    visit(debt);
    visit(rounds_before);
    for (const double number : {earned_rounds, proved_round, refused, pause, rounds_before}) check_count(number);
    visit(earned_features);
    visit(proved_question);
    visit(first_baseline);
  }

  // What is known of this round's baseline reward: [least, most], cut to the declared range and floor.
  void tell(const LinearSettings& s, double least, double most) {
    low = least_known(s, least);
    high = most_known(s, most);
  }

  // Adds this round's known baseline reward to the sums of the rounds that displaced it, or that kept it.
  void remember_baseline(View<D> displaced, bool is_first, bool is_learner) {
    (is_learner ? owed_low : kept_low).add_any(low);
    (is_learner ? owed_high : kept_high).add_any(high);
    if (low != high) moved = true;
    for (int i = 0; i < first_baseline.size(); ++i) {
      const double x = displaced[static_cast<std::size_t>(i)];
      if (is_first) {
        first_baseline[i] = x;
      } else if (first_baseline[i] != x) {
        moved = true;
      }
    }
  }

  // Counts the known baseline reward of an earlier round on the other side: it was displaced, or kept, after all.
  void move_baseline(const LinearSettings& s, double least, double most, bool is_learner) {
    const auto move = [&](Sum& from, Sum& to, double known) {
      // From an infinite sum nothing can be taken back; it goes on saying nothing.
      if (std::isfinite(known)) from.add_any(-known);
      to.add_any(known);
    };
    move(is_learner ? kept_low : owed_low, is_learner ? owed_low : kept_low, least_known(s, least));
    move(is_learner ? kept_high : owed_high, is_learner ? owed_high : kept_high, most_known(s, most));
  }

  // What was proved was proved of a ledger that is no more.
  void forget_proof() {
    proved = proved_round = 0.0;
    proved_question = Vector<D>(dim());
  }

  // Begins an empty ledger beside what was learned, which owes nothing of the old one (docs, "Leases").
  void begin_ledger() {
    for (Sum* sum : {&kept_low, &kept_high, &owed_low, &owed_high}) *sum = Sum{};
    refused = pause = debt = rounds_before = 0.0;
    forget_proof();
  }

  // Takes in the reward of a learner round: the realised sum, and the features it belongs to.
  void remember_reward(View<D> features, double reward) {
    earned_rounds += 1.0;
    earned.add_any(reward);
    earned_features.add(features);
  }
};

template <int D>
struct Memory : RememberedRounds<D> {
  using Rounds = RememberedRounds<D>;
  Ellipsoid<D> set;  // the `dual` set in use
  Facts<D> working;

  explicit Memory(int dim) : RememberedRounds<D>(dim), set(dim), working(dim) {}

  template <class Visit>
  void each(Visit visit) {
    RememberedRounds<D>::each(visit, working);
    visit(set.center);
    visit(set.whitener);
    working.each(visit);
  }
};

// psi = sqrt((sigma^2 m + rho)(ln((sigma^2 m + rho)/rho) + 2 ln(1/delta'))).  (Garcelon et al. 2020, re-derived)
//
// With probability 1 - delta', at every m at once, m rewards add up to at most psi more than their means.
inline double realised_slack(const LinearSettings& s, double rounds) {
  const double variance = s.noise * s.noise, rho = 30.0 * variance, total = variance * rounds + rho;
  return std::sqrt(total * (log_of(total / rho) + 2.0 * log_of(1.0 / s.sum_delta)));
}

// What <theta, sum of learned features over learner rounds> is at least, by the rewards received.
template <int D>
double realised_level(const LinearSettings& s, const Memory<D>& memory) {
  const double rounds = memory.earned_rounds;
  return memory.earned.total() - realised_slack(s, rounds) - s.misfit * rounds;
}

}  // namespace surefoot
