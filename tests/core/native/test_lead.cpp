// A lead against the gate itself, which must pass every round that it is not asked about.
#include "lead.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

#include "check.hpp"
#include "clucb.hpp"
#include "clucb2.hpp"
#include "engine.hpp"
#include "philox.hpp"

namespace {

using namespace surefoot;

struct Counted {
  int covered = 0, refused = 0;  // rounds that the gate was not asked about, and those of them that it would refuse
};
Counted counted;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// Asks the gate all the same, of a copy.
template <template <int> class Policy, int D>
struct Watched : Lead<D> {
  using Lead<D>::Lead;

  bool covers(const LinearState<D>& state, const Offer<D>& offer, const Record<D>& record) {
    if (!Lead<D>::covers(state, offer, record)) return false;
    LinearState<D> same = state;
    Record<D> asked = record;
    counted.covered += 1;
    if (!Policy<D>::judge(same, offer, asked)) counted.refused += 1;
    return true;
  }
};

template <template <int> class Policy, int D>
struct Played : Policy<D> {
  static Watched<Policy, D> lead(const typename Policy<D>::State& state, Rows<D> rows, bool is_apt) {
    const bool is_known = std::is_same_v<Policy<D>, Clucb<D>>;
    return {is_known ? Floor::known : Floor::unknown, state, rows, is_apt};
  }
};

struct World {
  int dim, rounds;
  double noise;
  bool is_moving;     // another baseline in every round
  double fall = 0.0;  // by which all rewards fall in the middle, though the baseline's are still said to be as before
};

constexpr int ACTIONS = 60;

// Plays a world, and leaves in `counted` what the gate would have said.
template <template <int> class Policy, int D>
double learner_rounds(const World& world, LinearSettings s) {
  using P = Played<Policy, D>;
  const int d = world.dim;
  std::vector<double> rows(static_cast<std::size_t>(ACTIONS * d)), theta(static_cast<std::size_t>(d)), means;
  fill_normals({3, 1, 0, 0}, rows.data(), ACTIONS * d);
  fill_normals({3, 2, 0, 0}, theta.data(), d);
  for (double& entry : rows) entry = std::fabs(entry);
  for (double& entry : theta) entry = std::fabs(entry) / d;
  for (int i = 0; i < ACTIONS; ++i) {
    const double* row = rows.data() + static_cast<std::ptrdiff_t>(i) * d;
    means.push_back(dot(row, theta.data(), d));
    s.feature_bound = larger(std::sqrt(square_length(row, d)), s.feature_bound);
  }
  s.theta_bound = std::sqrt(square_length(theta.data(), d));
  s.noise = world.noise;
  const auto count = static_cast<std::size_t>(world.rounds);
  std::vector<double> draws(count);
  fill_normals({3, 0, 0, 0}, draws.data(), world.rounds);
  for (std::size_t t = count / 2; t < count; ++t) draws[t] -= world.fall / world.noise;
  std::vector<std::int64_t> baselines(count), delays(count);
  for (std::size_t t = 0; t < count; ++t) baselines[t] = world.is_moving ? static_cast<int>(t * 7 % ACTIONS) : 5;
  Player<P> player{typename P::State(d, s), typename P::Record(d), {}};
  player.state.catalogue.emplace().assign({rows.data(), ACTIONS, d}, player.state.scoring());
  const Block block{world.rounds,
                    ACTIONS,
                    d,
                    true,
                    true,
                    rows.data(),
                    means.data(),
                    draws.data(),
                    baselines.data(),
                    delays.data(),
                    false,
                    false,
                    Rewards::gaussian,
                    world.noise};
  Tally tally({});
  counted = {};
  player.play(block, tally, {nullptr, 0, nullptr}, nullptr, Solo{});
  return player.state.ledger.learner_rounds;
}

template <template <int> class Policy, int D>
void test_what_is_covered_passes(const World& world) {
  for (const double alpha : {0.05, 0.3, 0.9}) {
    for (const double ridge : {0.3, 20.0}) {
      for (const Radius radius : {Radius::paper, Radius::logdet, Radius::amm, Radius::residual}) {
        const double played =
            learner_rounds<Policy, D>(world, {.delta = 0.001, .ridge = ridge, .alpha = alpha, .radius = radius});
        check(counted.refused == 0, "the gate passes what a lead covers");
        check(alpha < 0.3 || counted.covered > 0.5 * played, "a lead covers most of the learner's rounds");
      }
    }
  }
}

// Rewards that fall use it up: before the gate refuses, it must be asked again.
template <template <int> class Policy>
void test_a_lead_ends_before_the_gate_refuses() {
  for (const double fall : {10.0, 20.0, 30.0}) {
    const double played =
        learner_rounds<Policy, 4>({4, 4000, 0.1, false, fall}, {.delta = 0.001, .ridge = 0.3, .alpha = 0.3});
    check(counted.refused == 0, "the gate passes what a lead covers while rewards fall");
    check(counted.covered > 0 && played < 3900.0, "the lead was used, and the gate did refuse");
  }
}

template <template <int> class Policy>
void test_other_sets_are_asked_about() {
  LinearSettings s{.delta = 0.001, .ridge = 0.3, .alpha = 0.9};
  s.radius = Radius::dual;
  learner_rounds<Policy, 4>({4, 500, 0.1, false}, s);
  check(counted.covered == 0, "the dual set is chosen anew in every round");
  s.radius = Radius::paper;
  s.exploration = 0.5;
  learner_rounds<Policy, 4>({4, 500, 0.1, false}, s);
  check(counted.covered == 0, "a bound that is not the set's says nothing of the proposal's width");
}

}  // namespace

int main() {
  test_what_is_covered_passes<Clucb, 4>({4, 4000, 0.1, false});
  test_what_is_covered_passes<Clucb, 4>({4, 4000, 0.1, true});
  test_what_is_covered_passes<Clucb, any>({3, 2000, 0.1, true});
  test_what_is_covered_passes<Clucb2, 4>({4, 4000, 0.1, false});
  test_what_is_covered_passes<Clucb2, any>({3, 2000, 0.1, false});
  test_a_lead_ends_before_the_gate_refuses<Clucb>();
  test_a_lead_ends_before_the_gate_refuses<Clucb2>();
  test_other_sets_are_asked_about<Clucb>();
  test_other_sets_are_asked_about<Clucb2>();
  return failures;
}
