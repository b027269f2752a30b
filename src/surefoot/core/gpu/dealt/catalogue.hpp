// In the place of the core's `catalogue.hpp`: the same scores, lists and answers, with the work shared otherwise.
//
// The lanes of a team have the rows of their run's list, in shared memory. What concerns all rows of a run, the 32
// lanes of the warp do together (`search_rows.hpp`). Rows that are not listed follow when they are asked next.
#pragma once
#include <cmath>

#include "scores.hpp"
#include "search_rows.hpp"
#include "short_list.hpp"

namespace surefoot {

inline constexpr int LIST_FROM = 48, LIST_EVERY = 16;  // as in the core

template <int D>
struct Catalogue {
  static_assert(D == 4);
  using Change = typename Ridge<D>::Change;
  using Two = gpu::Two;
  Common<double> values;
  int dim = 0;
  Columns<D> columns;  // two numbers of a row together, for 32 SLABS rows

  enum class Owed { step = 1, all = 2 };  // what rows without a list have missed

  // Beside what lies on the board.
  struct Now {
    int listed = 0;
    Owed owed = Owed::all;
    double travel = 0.0;
    Change change{1.0, 0.0};
    Proposal answer{-1, 0.0};  // until something is learned, it stays
  };
  const Now& now() const { return now_; }
  void go_on(const Now& then) { now_ = then; }

  int actions() const { return columns.actions; }

  // Where rows and scores lie is told to the board: it is asked for in few rounds.
  void find_room() const {
    gpu::Search& search = gpu::board().search;
    const int team = lane() / TEAM;
    search.rows[team] = reinterpret_cast<const Two*>(columns.values.data());
    search.scores[team] = static_cast<Two*>(gpu::take_room<gpu::Room::team>(sizeof(Two) * 32 * gpu::SLABS));
  }

  void begin(const Ridge<D>&) const {
    Two* const scores = gpu::board().search.scores[lane() / TEAM];
    for (int i = 0; i < 32 * gpu::SLABS; ++i) scores[i] = {NO_SCORE, 0.0};
  }

  template <class Team>
  __forceinline__ Change learn(Ridge<D>& ridge, View<D> x, double reward, const Team& team) {
    now_.change = ridge.absorb(x, reward, team);
    const auto count = static_cast<int>(ridge.count);
    now_.answer.action = -1;
    now_.owed = Owed::step;
    if (count % REFRESH_EVERY == 0 || (count & (count - 1)) == 0) {
      now_.listed = 0;
      now_.owed = Owed::all;
    }
    const double moved = std::fabs(now_.change.error) * now_.change.width();
    if (now_.listed != 0) now_.travel += moved;
    return now_.change;
  }

  // All lanes of the warp come here.
  template <class Team>
  __forceinline__ Proposal propose(const LinearSettings& s, Ridge<D>& ridge, double beta, const Team& team) {
    const bool is_asked = now_.answer.action < 0 && now_.listed != 0;
    if (__any_sync(~0U, is_asked)) {
      const Proposal found = best(beta, ridge.step, is_asked, team);
      if (is_asked) now_.answer = found;
    }
    __syncwarp();
    const unsigned due = __ballot_sync(~0U, now_.answer.action < 0) & FIRSTS;
    if (due != 0) {
      tell(s, ridge, beta);
      __syncwarp();
      gpu::search(due, actions());
      if (now_.answer.action < 0) hear();
    }
    return now_.answer;
  }

 private:
  static constexpr unsigned FIRSTS = 0x11111111U;
  static constexpr int ALWAYS = 3;  // rows of a list that a lane looks at side by side, also where there are fewer
  static_assert(TEAM == 4);

  Now now_;

  static int lane() { return static_cast<int>(threadIdx.x % 32); }

  // The best row of the list, whose rows follow if it is asked; -1 where one that is not on it might be better. All
  // lanes of the warp come here: those that nobody asks keep what they have.
  template <class Team>
  __forceinline__ Proposal best(double beta, const Vector<D>& step, bool is_asked, const Team& team) {
    gpu::Lists& lists = gpu::board().lasting.lists;
    const std::array<double, 4> steps = gpu::board().spread(step.own(), ~0U);
    const gpu::Follower follow{steps[0], steps[1], steps[2], steps[3], now_.change.gain, now_.change.error};
    // All places that may hold a row, and all roots: what depends on other lanes or numbers would wait for them.
    Largest found{0, -INFINITE};
    const auto take_in = [&](int i, const Two& score) {
      if (is_asked) lists.score[i][lane()] = score;
      found.take_in({i * TEAM + team.lane, gpu::upper_of(score, beta)});
    };
    const auto moved = [&](int i) {
      return follow(lists.x01[i][lane()], lists.x23[i][lane()], lists.score[i][lane()]);
    };
    Two score[ALWAYS];
#pragma unroll
    for (int i = 0; i < ALWAYS; ++i) score[i] = moved(i);
#pragma unroll
    for (int i = 0; i < ALWAYS; ++i) take_in(i, score[i]);
    for (int i = ALWAYS; i * TEAM < actions() / LIST_SHARE; ++i) take_in(i, moved(i));
#pragma unroll
    for (int apart = 1; apart < TEAM; apart *= 2) {
      found.take_in({__shfl_xor_sync(~0U, found.place, apart), __shfl_xor_sync(~0U, found.value, apart)});
    }
    // Beyond the reach a row that is not listed may have overtaken.
    const int run = lane() / TEAM;
    const bool is_best = beta + now_.travel <= lists.reach[run] && found.value > lists.bar[run];
    return {is_best ? lists.names[found.place][run] : -1, found.value};
  }

  // Tells the warp what it needs to search among the rows of this run.
  __forceinline__ void tell(const LinearSettings& s, const Ridge<D>& ridge, double beta) const {
    using namespace gpu;
    Search& search = board().search;
    const int team = lane() / TEAM, own = own_place();
#pragma unroll
    for (int i = 0; i < D; ++i) {
      if (own <= i) search.given[row_of(i) + 1 + own][team] = ridge.whitener.own(i);
    }
    search.given[row_of(own)][team] = ridge.theta.own();
    search.given[STEP + own][team] = ridge.step.own();
    search.given[GAIN][team] = now_.change.gain;
    search.given[ERROR][team] = now_.change.error;
    search.given[FACTOR][team] = factor_of(s, ridge, beta);
    search.given[BETA][team] = beta;
    const bool has_list = now_.listed != 0;
    const bool wants_list =
        (static_cast<int>(ridge.count) % LIST_EVERY == 0 || has_list) && ridge.count > 0.0 && actions() >= LIST_FROM;
    search.told[team] = (has_list || now_.owed == Owed::all ? SCORE : 0) | (wants_list ? NEW_LIST : 0) |
                        (ridge.count == 0.0 ? BALL : 0);
  }

  // What the search found.
  __forceinline__ void hear() {
    const gpu::Search& search = gpu::board().search;
    const int team = lane() / TEAM;
    now_.answer = {search.place[team], search.value[team]};
    now_.listed = search.listed[team];
    if (now_.listed > 0) now_.travel = 0.0;
  }
};

}  // namespace surefoot
