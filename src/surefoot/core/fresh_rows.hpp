// The optimistic choice among rows that are new in every round.
#pragma once
#include "scores.hpp"

namespace surefoot {

template <int D>
struct FreshRows {
  Columns<D> columns;
  Scores scores;

  template <class Team>
  Proposal propose(const LinearSettings& s, Ridge<D>& ridge, Rows<D> rows, double beta, const Team& team) {
    score(ridge, rows, team);
    return optimistic(s, ridge, scores, rows.count, beta, team);
  }

  template <class Team>
  void score(const Ridge<D>& ridge, Rows<D> rows, const Team& team) {
    columns.assign(rows);
    scores.resize(rows.count);
    score_all(ridge, columns, scores, team);
  }
};

}  // namespace surefoot
