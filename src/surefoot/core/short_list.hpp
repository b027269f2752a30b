// The rows of a catalogue that might become best while theta moves a little.
//
// Where theta moves by e_s V_s^-1 x_s, the mean of row i moves by at most |e_s| ||x_s||_{V_s^-1} times its width, and
// its width never grows. So with all widths taken at one moment,
//
//     UCB_i  <=  mean_i + (beta + travel) width_i,      travel = sum of |e_s| ||x_s||_{V_s^-1} since then,
//
// and rows for which this stays below `bar` for every travel up to `reach` - beta are out of the contest until a bound
// breaks. The steps that they miss are kept: to take them later costs less than to score all rows again, unless there
// are many.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "scores.hpp"

namespace surefoot {

inline constexpr int LIST_SHARE = 8;                          // it may hold at most this part of the actions
inline constexpr double TRAVEL_ROOM = 0.15, FALL_ROOM = 0.1;  // how far theta may move and the best UCB fall meanwhile,
                                                              // in widths times beta
inline constexpr double LEAST_ROOM = 1.0 / 64.0;              // the share of that below which a list would not last
inline constexpr double GUARD = 1e-6;                         // relative rounding errors stay far below
inline constexpr int ROOM_FROM = 32;                          // dimensions from which a list that leaves less room pays
inline constexpr int LIST_LASTS = 8;                          // observations, for another one to be made at once

template <int D>
struct ShortList {
  using Change = typename Ridge<D>::Change;
  Common<int> rows;
  double travel = 0.0, reach = 0.0, bar = 0.0;
  int missed = 0;  // observations since the list was made

  bool empty() const { return rows.empty(); }
  void clear() { rows.clear(); }
  // Whether more was missed than is kept.
  bool is_stale() const { return missed > most_kept_; }

  // Whether it held long enough for another one to pay at once; where scoring is cheap, it always does.
  bool has_lasted(int dim) const { return dim < ROOM_FROM || missed >= LIST_LASTS; }

  // The rows on the list follow an observation; the others will, or are scored again.
  template <class Team>
  [[gnu::always_inline]] void learn(const Vector<D>& step, const Change& change, const Team& team) {
    follow(columns_, step.data(), change, scores_, team);
    travel += std::fabs(change.error) * change.width();
    if (is_stale()) return;
    missed += 1;
    if (is_stale()) return;
    steps_.insert(steps_.end(), step.data(), step.data() + step.size());
    changes_.push_back(change);
  }

  // Lets the scores of all rows take the steps that they have missed; if those are lost, of the rows on the list alone.
  template <class Team>
  void catch_up(const Columns<D>& columns, Scores& scores, const Team& team) const {
    if (!is_stale()) {
      follow_all(columns, steps_, changes_, scores, team);
      return;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      scores.means[static_cast<std::size_t>(rows[i])] = scores_.means[i];
      scores.squares[static_cast<std::size_t>(rows[i])] = scores_.squares[i];
    }
  }

  // The best row of the list; -1 where one that is not on it might be better.
  template <class Team>
  [[gnu::always_inline]] Proposal best(double beta, const Team& team) {
    // Beyond the reach a row that is not listed may have overtaken.
    if (!(beta + travel <= reach)) return {-1, bar};
    double upper = scores_.means[favourite_] + beta * std::sqrt(scores_.squares[favourite_]);
    if (!is_unrivalled(scores_, columns_.actions, upper, beta, team)) {
      const Proposal found = highest(scores_, columns_.actions, beta, team);
      favourite_ = static_cast<std::size_t>(found.action);
      upper = found.upper;
    }
    return upper > bar ? Proposal{rows[favourite_], upper} : Proposal{-1, bar};
  }

  // Lists the rows that might become best, given the scores of all rows and the best of them. If there are too many,
  // the list leaves less room; if that would break at once, there is none.
  template <class Team>
  void make(Rows<D> all, const Scores& scores, double beta, Proposal best, const Team& team) {
    double room = 1.0;
    if (!enlist(all.count, scores, beta, best, room, team)) {
      if (all.dim() < ROOM_FROM) return;
      room = room_of(all.count, scores, beta, best);
      if (room < LEAST_ROOM || !enlist(all.count, scores, beta, best, room, team)) return;
    }
    start(all, scores);
  }

  // A list as it was saved; `missed_` of an older one is not known, and so too many.
  void restore(Rows<D> all, const Scores& scores, Common<int> listed, int missed_) {
    rows = std::move(listed);
    start(all, scores);
    missed = missed_ < 0 || missed_ > most_kept_ ? most_kept_ + 1 : missed_;
  }

 private:
  Columns<D> columns_;  // of the rows on the list
  Scores scores_;
  std::size_t favourite_ = 0;  // the place of the row that was best last
  std::vector<double> steps_;  // V^-1 x of what the others miss
  std::vector<Change> changes_;
  std::vector<double> rooms_;
  int most_kept_ = 0;  // where more are missed, scoring again is quicker

  // Fills the list with the rows that may reach the bar within a share of the rooms; false where there are too many.
  template <class Team>
  bool enlist(int actions, const Scores& scores, double beta, Proposal best, double room, const Team& team) {
    const double farthest = (1.0 + room * TRAVEL_ROOM) * beta;
    const double width = std::sqrt(scores.squares[static_cast<std::size_t>(best.action)]);
    const double lowest = best.upper - room * FALL_ROOM * beta * width;
    const bool is_short = team.pick(actions, actions / LIST_SHARE, rows, [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      const double mean = scores.means[at], spread = farthest * std::sqrt(scores.squares[at]);
      return mean + spread + GUARD * (std::fabs(mean) + spread) >= lowest;
    });
    if (!is_short) return false;
    reach = farthest;
    bar = lowest;
    return true;
  }

  // The largest share of the rooms that few enough rows reach into.
  double room_of(int actions, const Scores& scores, double beta, Proposal best) {
    const double width = std::sqrt(scores.squares[static_cast<std::size_t>(best.action)]);
    rooms_.resize(static_cast<std::size_t>(actions));
    for (std::size_t i = 0; i < rooms_.size(); ++i) {
      const double own = std::sqrt(scores.squares[i]);
      rooms_[i] = (best.upper - (scores.means[i] + beta * own)) / (beta * (TRAVEL_ROOM * own + FALL_ROOM * width));
    }
    const auto last = rooms_.begin() + actions / LIST_SHARE;
    std::nth_element(rooms_.begin(), last, rooms_.end());
    return 0.99 * *last;  // without the row itself, whatever is rounded
  }

  void start(Rows<D> all, const Scores& scores) {
    const int d = all.dim();
    std::vector<double> values;
    values.reserve(rows.size() * static_cast<std::size_t>(d));
    for (const int i : rows) values.insert(values.end(), all[i].begin(), all[i].end());
    columns_.assign({values.data(), static_cast<int>(rows.size()), d});
    scores_.resize(static_cast<int>(rows.size()));
    favourite_ = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      scores_.means[i] = scores.means[static_cast<std::size_t>(rows[i])];
      scores_.squares[i] = scores.squares[static_cast<std::size_t>(rows[i])];
    }
    steps_.clear();
    changes_.clear();
    travel = 0.0;
    missed = 0;
    // In the paper's dimension scoring again costs nothing.
    most_kept_ = D == 4 ? 0 : d / 2;
  }
};

}  // namespace surefoot
