// In the place of the core's `catalogue.hpp`: the same scores, lists and answers, with the work shared otherwise.
//
// The lanes of a team have the rows of their run's list, in shared memory. What concerns all rows of a run, the 32
// lanes of the warp do together, for one run after the other that is in need of it: rows follow an observation or are
// scored again, the best is found, and a new list is made. Rows that are not listed follow when they are asked next.
#pragma once
#include <cmath>

#include "scores.hpp"
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

  // Beside the rows of lists, which lie on the board.
  struct Now {
    Two* scores = nullptr;  // mean and square of every row
    int listed = 0, favourite = 0;
    Owed owed = Owed::all;
    double travel = 0.0, reach = 0.0, bar = 0.0;
    Change change{1.0, 0.0};
    double asked_beta = -1.0;
    Proposal answer{0, 0.0};
  };
  const Now& now() const { return now_; }
  void go_on(const Now& then) { now_ = then; }

  int actions() const { return columns.actions; }

  void begin(const Ridge<D>&) {
    now_.scores = static_cast<Two*>(gpu::take_room<gpu::Room::team>(sizeof(Two) * 32 * gpu::SLABS));
    for (int i = 0; i < 32 * gpu::SLABS; ++i) now_.scores[i] = {NO_SCORE, 0.0};
  }

  template <class Team>
  __forceinline__ Change learn(Ridge<D>& ridge, View<D> x, double reward, const Team& team) {
    now_.change = ridge.absorb(x, reward, team);
    const auto count = static_cast<int>(ridge.count);
    now_.asked_beta = -1.0;
    now_.owed = Owed::step;
    if (count % REFRESH_EVERY == 0 || (count & (count - 1)) == 0) {
      now_.listed = 0;
      now_.owed = Owed::all;
    }
    if (now_.listed != 0) now_.travel += std::fabs(now_.change.error) * now_.change.width();
    return now_.change;
  }

  // All lanes of the warp come here.
  template <class Team>
  __forceinline__ Proposal propose(const LinearSettings& s, Ridge<D>& ridge, double beta, const Team& team) {
    if (beta != now_.asked_beta) now_.answer = now_.listed == 0 ? Proposal{-1, 0.0} : best(beta, ridge.step, team);
    now_.asked_beta = beta;
    __syncwarp();
    const unsigned due = __ballot_sync(~0U, now_.answer.action < 0) & FIRSTS;
    if (due != 0) search_all(s, ridge, beta, due);
    return now_.answer;
  }

 private:
  static constexpr unsigned FIRSTS = 0x11111111U;
  static_assert(TEAM == 4);
  // Of what a run tells the warp: theta and M row by row, then
  static constexpr int STEP = 14, GAIN = 18, ERROR = 19, FACTOR = 20, BETA = 21;
  static constexpr int row_of(int i) { return i + i * (i + 1) / 2; }

  Now now_;

  static int lane() { return static_cast<int>(threadIdx.x % 32); }

  // A row's score after an observation.
  struct Follower {
    double s0, s1, s2, s3;
    Change change;

    __forceinline__ Two operator()(const Two& x01, const Two& x23, const Two& score) const {
      double along = x01.a * s0;
      along += x01.b * s1;
      along += x23.a * s2;
      along += x23.b * s3;
      return {score.a + change.error * along, larger(0.0, score.b - change.gain * along * along)};
    }
  };

  // Which rows may be above a bound: no root is taken, and rounding lets one more in at most.
  struct Rival {
    double upper, square, size;

    __forceinline__ Rival(double upper_, double beta)
        : upper(upper_), square(beta * beta * (1.0 + 1e-12)), size(std::fabs(upper_)) {}
    __forceinline__ bool operator()(const Two& score) const {
      const double gap = larger(0.0, (upper - score.a) - 4.0 * EPS * (size + std::fabs(score.a)));
      return square * score.b >= gap * gap;
    }
  };

  static __forceinline__ double upper_of(const Two& score, double beta) { return score.a + beta * std::sqrt(score.b); }

  // The best row of the list, whose rows follow; -1 where one that is not on it might be better.
  template <class Team>
  __forceinline__ Proposal best(double beta, const Vector<D>& step, const Team& team) {
    gpu::Board& board = gpu::board();
    const int first = lane() - team.lane;
    const std::array<double, 4> steps = spread(take<Quad>(step.data()));
    const Follower follow{steps[0], steps[1], steps[2], steps[3], now_.change};
    const auto moved = [&](int i, int column) {
      return follow(board.x01[i][column], board.x23[i][column], board.score[i][column]);
    };
    const Two ahead = moved(now_.favourite / TEAM, first + now_.favourite % TEAM);
    team.meet();
    double upper = upper_of(ahead, beta);
    const Rival is_rival(upper, beta);
    unsigned rivals = 0;
    for (int i = 0; i * TEAM < now_.listed; ++i) {
      const Two score = moved(i, lane());
      board.score[i][lane()] = score;
      if (is_rival(score)) rivals |= 1U << i * TEAM;
    }
    rivals <<= team.lane;
    for (int apart = TEAM / 2; apart > 0; apart /= 2) rivals |= __shfl_xor_sync(team.mask, rivals, apart);
    team.meet();
    // Beyond the reach a row that is not listed may have overtaken.
    if (!(beta + now_.travel <= now_.reach)) return {-1, now_.bar};
    const unsigned itself = 1U << now_.favourite;
    if (rivals != itself) {
      if ((rivals & itself) == 0) rivals = (1U << now_.listed) - 1U;
      rivals &= ~itself;
      Largest found{now_.favourite, upper};
      for (; rivals != 0; rivals &= rivals - 1) {
        const int i = __ffs(static_cast<int>(rivals)) - 1;
        found.take_in({i, upper_of(board.score[i / TEAM][first + i % TEAM], beta)});
      }
      now_.favourite = found.place;
      upper = found.value;
    }
    return upper > now_.bar ? Proposal{board.names[now_.favourite][lane() / TEAM], upper} : Proposal{-1, now_.bar};
  }

  // Tells the warp what it needs to score the rows of this run.
  __forceinline__ void tell(const LinearSettings& s, const Ridge<D>& ridge, double beta) const {
    gpu::Board& board = gpu::board();
    const int team = lane() / TEAM, own = own_place();
#pragma unroll
    for (int i = 0; i < D; ++i) {
      if (own <= i) board.given[row_of(i) + 1 + own][team] = ridge.whitener.own(i);
    }
    board.given[row_of(own)][team] = ridge.theta.own();
    board.given[STEP + own][team] = ridge.step.own();
    board.given[GAIN][team] = now_.change.gain;
    board.given[ERROR][team] = now_.change.error;
    board.given[FACTOR][team] = factor_of(s, ridge, beta);
    board.given[BETA][team] = beta;
  }

  // Mean and square of a row, in the order of the core's sums.
  template <class Given>
  static __forceinline__ Two scored(const Two& x01, const Two& x23, bool is_ball, Given given) {
    const double x[D] = {x01.a, x01.b, x23.a, x23.b};
    double mean = 0.0, square = 0.0;
#pragma unroll
    for (int i = 0; i < D; ++i) {
      mean += given(row_of(i)) * x[i];
      double entry = 0.0;
#pragma unroll
      for (int j = 0; j <= i; ++j) entry += given(row_of(i) + 1 + j) * x[j];
      if (is_ball) entry = x[i];
      square += entry * entry;
    }
    return {is_ball ? 0.0 : mean, square};
  }

  // Among all rows, for the runs that are due.
  __device__ void search_all(const LinearSettings& s, Ridge<D>& ridge, double beta, unsigned due) {
    constexpr int SLABS = gpu::SLABS, NEW_LIST = 4, BALL = 8, HINT = 4;
    gpu::Board& board = gpu::board();
    const bool has_list = now_.listed != 0;
    const bool wants_list =
        (static_cast<int>(ridge.count) % LIST_EVERY == 0 || has_list) && ridge.count > 0.0 && actions() >= LIST_FROM;
    const int flags = static_cast<int>(has_list ? Owed::all : now_.owed) | (wants_list ? NEW_LIST : 0) |
                      (ridge.count == 0.0 ? BALL : 0) | ridge.favourite << HINT;
    tell(s, ridge, beta);
    const auto own_rows = reinterpret_cast<unsigned long long>(columns.values.data());
    const auto own_scores = reinterpret_cast<unsigned long long>(now_.scores);
    const int rows = actions();
    __syncwarp();
    for (; due != 0; due &= due - 1) {
      const int first = __ffs(static_cast<int>(due)) - 1, owner = first / TEAM;
      const int told = __shfl_sync(~0U, flags, first);
      const auto x = reinterpret_cast<const Two*>(__shfl_sync(~0U, own_rows, first)) + lane();
      const auto kept = reinterpret_cast<Two*>(__shfl_sync(~0U, own_scores, first)) + lane();
      const auto given = [&](int i) { return board.given[i][owner]; };
      Two x01[SLABS], x23[SLABS], score[SLABS];
#pragma unroll
      for (int k = 0; k < SLABS; ++k) {
        x01[k] = x[32 * k];
        x23[k] = x[32 * (SLABS + k)];
        score[k] = kept[32 * k];
      }
      if ((told & static_cast<int>(Owed::all)) != 0) {
#pragma unroll
        for (int k = 0; k < SLABS; ++k) {
          score[k] = scored(x01[k], x23[k], (told & BALL) != 0, given);
          if (lane() + 32 * k >= rows) score[k].a = NO_SCORE;
        }
      } else {
        const Follower follow{
            given(STEP), given(STEP + 1), given(STEP + 2), given(STEP + 3), {given(GAIN), given(ERROR)}};
#pragma unroll
        for (int k = 0; k < SLABS; ++k) score[k] = follow(x01[k], x23[k], score[k]);
      }
#pragma unroll
      for (int k = 0; k < SLABS; ++k) kept[32 * k] = score[k];
      const Largest found = best_of_all(score, told >> HINT, given(FACTOR));
      int many = 0;
      double farthest = 0.0, lowest = 0.0;
      if ((told & NEW_LIST) != 0) {
        farthest = (1.0 + TRAVEL_ROOM) * given(BETA);
        lowest = found.value - FALL_ROOM * given(BETA) * std::sqrt(of_place(score, found.place).b);
        many = enlist(owner, x01, x23, score, farthest, lowest, rows / LIST_SHARE);
      }
      if (lane() / TEAM == owner) {
        now_.answer = {found.place, found.value};
        ridge.favourite = found.place;
        now_.listed = many;
        if (many > 0) {
          now_.reach = farthest;
          now_.bar = lowest;
          now_.favourite = 0;
          now_.travel = 0.0;
        }
      }
    }
    __syncwarp();
  }

  static __forceinline__ Two of_place(const Two (&score)[gpu::SLABS], int place) {
    Two own = score[0];
#pragma unroll
    for (int k = 1; k < gpu::SLABS; ++k) {
      if (place / 32 == k) own = score[k];
    }
    return {__shfl_sync(~0U, own.a, place % 32), __shfl_sync(~0U, own.b, place % 32)};
  }

  // The row with the largest UCB: where the last one has no rival, it still is.
  static __forceinline__ Largest best_of_all(const Two (&score)[gpu::SLABS], int hint, double factor) {
    Largest found{hint, upper_of(of_place(score, hint), factor)};
    const Rival is_rival(found.value, factor);
    unsigned rivals = 0;
#pragma unroll
    for (int k = 0; k < gpu::SLABS; ++k) {
      if (is_rival(score[k])) rivals |= 1U << k;
    }
    const unsigned itself = lane() == hint % 32 ? 1U << hint / 32 : 0U;
    if (!__any_sync(~0U, rivals != itself)) return found;
#pragma unroll
    for (int k = 0; k < gpu::SLABS; ++k) {
      if ((rivals >> k & 1U) != 0 && lane() + 32 * k != hint)
        found.take_in({lane() + 32 * k, upper_of(score[k], factor)});
    }
    for (int apart = 16; apart > 0; apart /= 2) {
      found.take_in({__shfl_xor_sync(~0U, found.place, apart), __shfl_xor_sync(~0U, found.value, apart)});
    }
    return found;
  }

  // Lists the rows of a run that might become best (`short_list.hpp`), and returns how many; none if they are too many.
  static __forceinline__ int enlist(int owner, const Two (&x01)[gpu::SLABS], const Two (&x23)[gpu::SLABS],
                                    const Two (&score)[gpu::SLABS], double farthest, double lowest, int most) {
    gpu::Board& board = gpu::board();
    unsigned picked[gpu::SLABS];
    int many = 0;
#pragma unroll
    for (int k = 0; k < gpu::SLABS; ++k) {
      const double spread = farthest * std::sqrt(score[k].b);
      picked[k] = __ballot_sync(~0U, score[k].a + spread + GUARD * (std::fabs(score[k].a) + spread) >= lowest);
      many += __popc(picked[k]);
    }
    if (many > most) return 0;
    int before = 0;
#pragma unroll
    for (int k = 0; k < gpu::SLABS; ++k) {
      if ((picked[k] >> lane() & 1U) != 0) {
        const int at = before + __popc(picked[k] & ((1U << lane()) - 1U));
        board.x01[at / TEAM][owner * TEAM + at % TEAM] = x01[k];
        board.x23[at / TEAM][owner * TEAM + at % TEAM] = x23[k];
        board.score[at / TEAM][owner * TEAM + at % TEAM] = score[k];
        board.names[at][owner] = static_cast<unsigned char>(lane() + 32 * k);
      }
      before += __popc(picked[k]);
    }
    if (many + lane() < gpu::LISTED) {
      const int at = many + lane();
      board.x01[at / TEAM][owner * TEAM + at % TEAM] = board.x23[at / TEAM][owner * TEAM + at % TEAM] = {0.0, 0.0};
      board.score[at / TEAM][owner * TEAM + at % TEAM] = {NO_SCORE, 0.0};
    }
    return many;
  }
};

}  // namespace surefoot
