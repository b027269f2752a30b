// A catalogue: rows that stay the same from round to round, whose scores are kept up to date instead of computed again.
//
// In the long run few rows can still be best. Where theta moves by e_s V_s^-1 x_s, the mean of row i moves by at most
// |e_s| ||x_s||_{V_s^-1} times its width, and its width never grows. So with all widths taken at one moment,
//
//     UCB_i  <=  mean_i + (beta + travel) width_i,      travel = sum of |e_s| ||x_s||_{V_s^-1} since then,
//
// and rows for which this stays below `bar` for every travel up to `reach` - beta are out of the contest until a bound
// breaks. Only the others, the short list, follow each observation. Then all are scored again and a new list is made.
// Without a list all rows follow.
#pragma once
#include <cmath>
#include <vector>

#include "scores.hpp"

namespace surefoot {

inline constexpr int LIST_FROM = 48;                          // actions from which a short list pays
inline constexpr int LIST_SHARE = 8;                          // it may hold at most this part of them
inline constexpr int LIST_EVERY = 16;                         // observations between two attempts to make one
inline constexpr double TRAVEL_ROOM = 0.15, FALL_ROOM = 0.1;  // how far theta may move and the best UCB fall meanwhile,
                                                              // in widths times beta
inline constexpr double GUARD = 1e-6;                         // relative rounding errors stay far below

template <int D>
struct Catalogue {
  std::vector<double> values;
  int dim = 0;
  Columns<D> columns;
  Scores scores;
  std::vector<int> listed;
  double travel = 0.0, reach = 0.0, bar = 0.0;
  // Until something is learned, the same question has the same answer.
  double asked_beta = -1.0;
  Proposal answer{0, 0.0};

  Rows<D> rows() const { return {values.data(), columns.actions, dim}; }
  int actions() const { return columns.actions; }

  void assign(Rows<D> given, const Ridge<D>& ridge) {
    values.assign(given.first, given.first + static_cast<std::ptrdiff_t>(given.count) * given.dim());
    dim = given.dim();
    columns.assign(given);
    scores.resize(given.count);
    score(ridge, Solo{});
  }

  template <class Team>
  void score(const Ridge<D>& ridge, const Team& team) {
    listed.clear();
    asked_beta = -1.0;
    score_all(ridge, columns, scores, team);
  }

  // The optimistic row, and its UCB.
  template <class Team>
  Proposal propose(const LinearSettings& s, Ridge<D>& ridge, double beta, const Team& team) {
    if (beta == asked_beta) return answer;
    answer = search(s, ridge, beta, team);
    asked_beta = beta;
    return answer;
  }

  // Learns one observation. Scores are computed again at the first one, where the ball becomes an ellipsoid, then
  // whenever the count has doubled, and in the long run every REFRESH_EVERY observations.
  template <class Team>
  void learn(Ridge<D>& ridge, View<D> x, double reward, const Team& team) {
    const auto change = ridge.absorb(x, reward);
    const auto count = static_cast<long long>(ridge.count);
    asked_beta = -1.0;
    if (count % REFRESH_EVERY == 0 || (count & (count - 1)) == 0) {
      score(ridge, team);
    } else if (listed.empty()) {
      team.each(columns.places, [&](int at) { follow<typename Team::Number>(ridge, change, at); });
    } else {
      // Rows off the list fall behind; `search` scores all again before it looks at them.
      for (const int i : listed) follow<double>(ridge, change, i);
      // 1 / gain - 1 is the leverage; rounding alone could take it below 0.
      travel += std::fabs(change.error) * std::sqrt(1.0 / change.gain - 1.0 + 4.0 * EPS);
    }
  }

 private:
  template <class Team>
  Proposal search(const LinearSettings& s, Ridge<D>& ridge, double beta, const Team& team) {
    bool is_due = static_cast<long long>(ridge.count) % LIST_EVERY == 0;
    if (!listed.empty()) {
      const Proposal found = best_listed(beta);
      if (found.action >= 0) return found;
      score(ridge, team);
      is_due = true;
    }
    const Proposal found = optimistic(s, ridge, scores, actions(), beta, team);
    if (is_due && ridge.count > 0.0 && actions() >= LIST_FROM) make_list(beta, found);
    return found;
  }

  // The best row of the short list; -1 where one that is not on it might be better.
  Proposal best_listed(double beta) const {
    Proposal best{-1, bar};
    // Beyond the reach a row that is not listed may have overtaken: -1 asks for all scores again.
    if (!(beta + travel <= reach)) return best;
    for (const int i : listed) {
      const auto at = static_cast<std::size_t>(i);
      const double upper = scores.means[at] + beta * std::sqrt(scores.squares[at]);
      if (upper > best.upper) best = {i, upper};
    }
    return best;
  }

  // Lists the rows that might become best while theta moves a little; if there are too many, none.
  void make_list(double beta, Proposal best) {
    const double farthest = (1.0 + TRAVEL_ROOM) * beta;
    const double lowest =
        best.upper - FALL_ROOM * beta * std::sqrt(scores.squares[static_cast<std::size_t>(best.action)]);
    listed.clear();
    for (int i = 0; i < actions(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double mean = scores.means[at], spread = farthest * std::sqrt(scores.squares[at]);
      if (!(mean + spread + GUARD * (std::fabs(mean) + spread) >= lowest)) continue;
      if (static_cast<int>(listed.size()) == actions() / LIST_SHARE) {
        listed.clear();
        return;
      }
      listed.push_back(i);
    }
    travel = 0.0;
    reach = farthest;
    bar = lowest;
  }

  // The scores at one place after an observation x, by <V^-1 x, phi>.
  template <class Number>
  void follow(const Ridge<D>& ridge, const typename Ridge<D>::Change& change, int at) {
    const double* first = columns.column(0) + at;
    Number along = take<Number>(first) * ridge.step[0];
    for (int j = 1; j < ridge.dim(); ++j) {
      along += take<Number>(first + static_cast<std::ptrdiff_t>(j) * columns.places) * ridge.step[j];
    }
    double *mean = scores.means.data() + at, *square = scores.squares.data() + at;
    put(mean, take<Number>(mean) + change.error * along);
    put(square, larger(Number{} + 0.0, take<Number>(square) - change.gain * along * along));
  }
};

}  // namespace surefoot
