// A catalogue: rows that stay the same from round to round, whose scores are kept up to date instead of computed again.
//
// In the long run few rows can still be best. Only those, the short list, follow each observation; the others wait
// until a bound of the list breaks. Then all are caught up, and a new list is made. Without a list all rows follow.
#pragma once
#include <cmath>
#include <vector>

#include "scores.hpp"
#include "short_list.hpp"

namespace surefoot {

inline constexpr int LIST_FROM = 48;   // actions from which a short list pays
inline constexpr int LIST_EVERY = 16;  // observations between two attempts to make one

template <int D>
struct Catalogue {
  Common<double> values;
  int dim = 0;
  Columns<D> columns;
  Scores scores;  // while there is a list, as of when it was made
  ShortList<D> list;
  // Until something is learned, the same question has the same answer.
  double asked_beta = -1.0;
  Proposal answer{0, 0.0};

  Rows<D> rows() const { return {values.data(), columns.actions, dim}; }
  int actions() const { return columns.actions; }

  void assign(Rows<D> rows, const Ridge<D>& ridge) {
    copy(rows);
    begin(ridge);
  }

  void copy(Rows<D> rows) {
    values.assign(rows.first, rows.first + static_cast<std::ptrdiff_t>(rows.count) * rows.dim());
    dim = rows.dim();
    columns.assign(rows);
  }

  // Scores of the rows that were copied.
  void begin(const Ridge<D>& ridge) {
    scores.resize(actions());
    score(ridge, Solo{});
  }

  template <class Team>
  void score(const Ridge<D>& ridge, const Team& team) {
    list.clear();
    asked_beta = -1.0;
    if constexpr (D == any) {
      if (!ridge.blocks.is_one()) return score_by_blocks(ridge, rows(), scores);
    }
    score_all(ridge, columns, scores, team);
  }

  // The optimistic row, and its UCB.
  template <class Team>
  [[gnu::always_inline]] Proposal propose(const LinearSettings& s, Ridge<D>& ridge, double beta, const Team& team) {
    if (beta == asked_beta) return answer;
    answer = search(s, ridge, beta, team);
    asked_beta = beta;
    return answer;
  }

  // Learns one observation. Scores are computed again at the first one, where the ball becomes an ellipsoid, then
  // whenever the count has doubled, and in the long run every REFRESH_EVERY observations.
  template <class Team>
  [[gnu::always_inline]] auto learn(Ridge<D>& ridge, View<D> x, double reward, const Team& team) {
    const auto change = ridge.absorb(x, reward, team);
    const auto count = static_cast<long long>(ridge.count);
    asked_beta = -1.0;
    if (count % REFRESH_EVERY == 0 || (count & (count - 1)) == 0) {
      score(ridge, team);
    } else if (list.empty()) {
      follow(columns, ridge.step.data(), change, scores, team);
    } else {
      list.learn(ridge.step, change, team);
    }
    return change;
  }

  // The scores as they are saved: of all rows as of now, if the list has what it takes to catch up.
  Scores saved_scores() const {
    Scores caught_up = scores;
    if (!list.empty()) list.catch_up(columns, caught_up, Solo{});
    return caught_up;
  }

 private:
  template <class Team>
  [[gnu::always_inline]] Proposal search(const LinearSettings& s, Ridge<D>& ridge, double beta, const Team& team) {
    const Proposal listed = list.empty() ? Proposal{-1, 0.0} : list.best(beta, team);
    return listed.action >= 0 ? listed : search_all(s, ridge, beta, team);
  }

  // Among all rows, where no list is of use.
  template <class Team>
  [[gnu::noinline]] Proposal search_all(const LinearSettings& s, Ridge<D>& ridge, double beta, const Team& team) {
    bool is_due = static_cast<long long>(ridge.count) % LIST_EVERY == 0;
    if (!list.empty()) {
      is_due |= list.has_lasted(dim);
      if (list.is_stale()) {
        score(ridge, team);
      } else {
        list.catch_up(columns, scores, team);
        list.clear();
      }
    }
    const Proposal found = optimistic(s, ridge, scores, actions(), beta, team);
    if (is_due && ridge.count > 0.0 && actions() >= LIST_FROM) list.make(rows(), scores, beta, found, team);
    return found;
  }
};

}  // namespace surefoot
