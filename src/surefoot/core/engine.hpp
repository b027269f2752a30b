// The loop of a simulation: one policy through a block of rounds of one realisation.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "policy.hpp"
#include "rewards.hpp"
#include "tally.hpp"

namespace surefoot {

inline constexpr int DRAWS_AHEAD = 16;  // rounds in which what lies far away has come

// Consecutive rounds of one realisation; fixed features and means have one entry for all rounds.
struct Block {
  int rounds, actions, dim;
  bool is_fixed;
  bool is_catalogue;  // the rows are those of the policy's catalogue
  const double *features, *means, *draws;
  const std::int64_t *baselines, *delays;
  bool has_delays;
  bool is_told;
  Rewards rewards;
  double scale;
  bool has_one_baseline = false;  // in all rounds

  const double* rows(int t) const { return features + (is_fixed ? 0 : static_cast<std::ptrdiff_t>(t) * actions * dim); }
  const double* means_of(int t) const { return means + (is_fixed ? 0 : static_cast<std::ptrdiff_t>(t) * actions); }
  double best(int t) const {
    const double* row = means_of(t);
    double most = row[0];
    for (int i = 1; i < actions; ++i) most = larger(row[i], most);
    return most;
  }
};

// Where counts are kept: rounds in ascending order, and a row for each.
struct Checkpoints {
  const std::int64_t* rounds;
  int count;
  double* kept;

  // The round of one of them; behind the last one, none.
  double round(int place) const { return place < count ? static_cast<double>(rounds[place]) : 0.0; }
};

// A reward that has not arrived.
struct Late {
  double due;
  int row;
  bool is_learner;
  double reward;
  std::vector<double> features;
};

// Whether a policy can tell that it is far ahead of its floor. Not on a GPU: of the teams of a warp, those that do not
// ask would wait for those that do.
template <class P, class Team>
inline constexpr bool LEADS = [] {
  if constexpr (requires { &P::lead; }) {
    return !std::is_same_v<typename Team::Number, double>;
  } else {
    return false;
  }
}();

// A policy that plays, and the rewards that it waits for.
template <Policy P>
struct Player {
  typename P::State state;
  typename P::Record record;
  std::deque<Late> late;

  // Not forced inline: with SafeLUCB's search in the loop itself NVIDIA's compiler spoils the loop's own variables.
  template <class Team>
  auto learn(const Lesson& lesson, const Team& team) {
    return P::learn(state, lesson, team);
  }

  // Learns in the order of the decisions, up to the first reward that has not arrived before this round.
  template <class Team>
  void learn_due(double round, const Team& team) {
    while (!late.empty() && late.front().due <= round) {
      const Late& next = late.front();
      learn({next.features.data(), next.row, next.is_learner, next.reward}, team);
      late.pop_front();
    }
  }

  // Plays a block of rounds; actions go to `trace` where there is room: the learner's row, or -1 - the baseline's.
  // Returns -1, or the first round with a row beyond its bound.
  template <class Team>
  std::int64_t play(const Block& block, Tally& tally, const Checkpoints& points, std::int64_t* trace,
                    const Team& team) {
    if (block.rounds <= 0) return -1;
    const bool is_late = block.has_delays || !late.empty();
    int place = 0;
    // A run comes block by block, and continues behind the checkpoints of earlier ones.
    while (place < points.count && static_cast<double>(points.rounds[place]) <= tally.round) ++place;
    double checkpoint = points.round(place);
    double best = block.best(0);
    auto baseline = static_cast<int>(block.baselines[0]);
    double owed = block.means_of(0)[baseline];
    auto lead = lead_in<Team>(block, is_late);  // NOLINT(misc-const-correctness): only none could be constant
    for (int t = 0; t < block.rounds; ++t) {
      const double round = tally.round + 1.0;
      if (!block.is_fixed) best = block.best(t);
      if (is_late) learn_due(round, team);
      const double *rows = block.rows(t), *means = block.means_of(t);
      const double draw = block.draws[t];
      fetch_ahead(block.draws + (t + DRAWS_AHEAD < block.rounds ? t + DRAWS_AHEAD : t));
      if (!(block.is_fixed && block.has_one_baseline)) {
        baseline = static_cast<int>(block.baselines[t]);
        owed = means[baseline];
      }
      const Situation now{
          rows,  block.actions,        block.dim, block.is_catalogue, baseline, owed, block.is_told, round, 0,
          t > 0, t + 1 == block.rounds};
      decide<P>(state, P::meet(state, now), record, team, lead);
      if (record.action < 0) return static_cast<std::int64_t>(round);
      const int row = record.is_learner ? record.action : baseline;
      const double* played = rows + static_cast<std::ptrdiff_t>(row) * block.dim;
      const double reward = reward_of(block.rewards, block.scale, means[row], draw);
      if (P::teaches(state, record.is_learner)) {
        if (is_late) {  // even an immediate reward waits for those decided before
          late.push_back({round + static_cast<double>(block.delays[t]),
                          row,
                          record.is_learner,
                          reward,
                          {played, played + block.dim}});
        } else if constexpr (LEADS<P, Team>) {
          lead.learn(learn({played, row, record.is_learner, reward}, team), reward);
        } else {
          learn({played, row, record.is_learner, reward}, team);
        }
      }
      tally.count(means[row], best, owed, record.is_learner);
      if (trace != nullptr) trace[t] = record.is_learner ? row : -1 - row;
      if (round == checkpoint) [[unlikely]] {
        tally.write(points.kept + static_cast<std::ptrdiff_t>(place) * tally.size());
        checkpoint = points.round(++place);
      }
    }
    return -1;
  }

 private:
  // How far it is ahead: not known yet, and never where rows change or rewards wait.
  template <class Team>
  auto lead_in(const Block& block, bool is_late) const {
    if constexpr (LEADS<P, Team>) {
      return P::lead(state, {block.features, block.actions, block.dim}, block.is_fixed && !is_late);
    } else {
      return NoLead{};
    }
  }
};

}  // namespace surefoot
