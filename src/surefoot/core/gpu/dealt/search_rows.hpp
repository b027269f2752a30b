// A search among all rows of a run, by the 32 lanes of a warp together: for one run after the other that is in need of
// it, rows follow an observation or are scored again, the best is found, and a new list is made.
//
// It is rare, so loops that nobody waits for are not unrolled: instructions of all rounds should find room in a
// multiprocessor's cache. It is no function of its own, since what a call may change cannot lie in registers.
#pragma once
#include <cmath>

#include "board.hpp"
#include "quotient.hpp"
#include "short_list.hpp"

namespace surefoot::gpu {

inline constexpr int DIMENSION = 4;
// Of what a run tells: theta and M row by row, then
inline constexpr int STEP = 14, GAIN = 18, ERROR = 19, FACTOR = 20, BETA = 21;
constexpr int row_of(int i) { return i + i * (i + 1) / 2; }
// and what is to be done.
inline constexpr int SCORE = 1, NEW_LIST = 2, BALL = 4;

// What lies in a device's memory and is not read again soon: beside a round's own numbers it has no place in the cache.
__forceinline__ Two from_afar(const Two* there) {
#ifdef __CUDA_ARCH__
  const double2 found = __ldcg(reinterpret_cast<const double2*>(there));
  return {found.x, found.y};
#else
  return *there;
#endif
}
__forceinline__ void to_afar(Two* there, const Two& given) {
#ifdef __CUDA_ARCH__
  __stcg(reinterpret_cast<double2*>(there), double2{given.a, given.b});
#else
  *there = given;
#endif
}

// A row's score after an observation.
struct Follower {
  double s0, s1, s2, s3, gain, error;

  __forceinline__ Two operator()(const Two& x01, const Two& x23, const Two& score) const {
    double along = x01.a * s0;
    along += x01.b * s1;
    along += x23.a * s2;
    along += x23.b * s3;
    return {score.a + error * along, larger(0.0, score.b - gain * along * along)};
  }
};

__forceinline__ double upper_of(const Two& score, double beta) { return score.a + beta * root(score.b); }

// Mean and square of a row, in the order of the core's sums.
struct Scorer {
  double given[row_of(DIMENSION)];
  bool is_ball;

  __forceinline__ Two operator()(const Two& x01, const Two& x23) const {
    const double x[DIMENSION] = {x01.a, x01.b, x23.a, x23.b};
    double mean = 0.0, square = 0.0;
#pragma unroll
    for (int i = 0; i < DIMENSION; ++i) {
      mean += given[row_of(i)] * x[i];
      double entry = 0.0;
#pragma unroll
      for (int j = 0; j <= i; ++j) entry += given[row_of(i) + 1 + j] * x[j];
      if (is_ball) entry = x[i];
      square += entry * entry;
    }
    return {is_ball ? 0.0 : mean, square};
  }
};

// One run's search.
struct SearchOf {
  int owner, rows, told;
  const Two* all;  // the first two numbers of every row, then the others

  static int lane() { return static_cast<int>(threadIdx.x % 32); }
  double given(int i) const { return board().search.given[i][owner]; }
  Two first_of(int i) const { return from_afar(all + i); }
  Two last_of(int i) const { return from_afar(all + 32 * SLABS + i); }

  // The rows' scores as of now, also where they are kept.
  __forceinline__ void score(Two (&score)[SLABS]) const {
    Two* const kept = board().search.scores[owner] + lane();
    Two x01[SLABS], x23[SLABS];
#pragma unroll
    for (int k = 0; k < SLABS; ++k) {
      x01[k] = first_of(lane() + 32 * k);
      x23[k] = last_of(lane() + 32 * k);
      score[k] = from_afar(kept + 32 * k);
    }
    if ((told & SCORE) != 0) {
      Scorer scored;
#pragma unroll
      for (int i = 0; i < row_of(DIMENSION); ++i) scored.given[i] = given(i);
      scored.is_ball = (told & BALL) != 0;
#pragma unroll
      for (int k = 0; k < SLABS; ++k) {
        score[k] = scored(x01[k], x23[k]);
        if (lane() + 32 * k >= rows) score[k].a = NO_SCORE;
      }
    } else {
      const Follower follow{given(STEP), given(STEP + 1), given(STEP + 2), given(STEP + 3), given(GAIN), given(ERROR)};
#pragma unroll
      for (int k = 0; k < SLABS; ++k) score[k] = follow(x01[k], x23[k], score[k]);
    }
#pragma unroll
    for (int k = 0; k < SLABS; ++k) to_afar(kept + 32 * k, score[k]);
  }

  // The row with the largest UCB.
  __forceinline__ Largest best(const Two (&score)[SLABS]) const {
    const double factor = given(FACTOR);
    Largest found{0, -INFINITE};
#pragma unroll
    for (int k = 0; k < SLABS; ++k) found.take_in({lane() + 32 * k, upper_of(score[k], factor)});
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
      found.take_in({__shfl_xor_sync(~0U, found.place, apart), __shfl_xor_sync(~0U, found.value, apart)});
    }
    return found;
  }

  // Lists the rows that might become best (`short_list.hpp`), and returns how many; none if they are too many.
  __forceinline__ int enlist(double farthest, double lowest) const {
    Lists& lists = board().lasting.lists;
    const Two* const scores = board().scores;
    unsigned picked = 0;
    int many = 0;
#pragma unroll 1
    for (int k = 0; k < SLABS; ++k) {
      const Two score = scores[lane() + 32 * k];
      const double spread = farthest * root(score.b);
      const bool is_listed = score.a + spread + GUARD * (std::fabs(score.a) + spread) >= lowest;
      many += __popc(__ballot_sync(~0U, is_listed));
      if (is_listed) picked |= 1U << k;
    }
    if (many > rows / LIST_SHARE) return 0;
    const auto put = [&](int at, const Two& x01, const Two& x23, const Two& score) {
      const int column = owner * TEAM + at % TEAM;
      lists.x01[at / TEAM][column] = x01;
      lists.x23[at / TEAM][column] = x23;
      lists.score[at / TEAM][column] = score;
    };
    int before = 0;
#pragma unroll 1
    for (int k = 0; k < SLABS; ++k) {
      const bool is_listed = (picked >> k & 1U) != 0;
      const unsigned together = __ballot_sync(~0U, is_listed);
      const int i = lane() + 32 * k;
      if (is_listed) {
        const int at = before + __popc(together & ((1U << lane()) - 1U));
        put(at, first_of(i), last_of(i), scores[i]);
        lists.names[at][owner] = static_cast<unsigned char>(i);
      }
      before += __popc(together);
    }
    if (many + lane() < LISTED) put(many + lane(), {0.0, 0.0}, {0.0, 0.0}, {NO_SCORE, 0.0});
    return many;
  }

  __forceinline__ void run() const {
    Search& search = board().search;
    Two scores[SLABS];
    score(scores);
    const Largest found = best(scores);
    int many = 0;
    double farthest = 0.0, lowest = 0.0;
    if ((told & NEW_LIST) != 0) {
#pragma unroll
      for (int k = 0; k < SLABS; ++k) board().scores[lane() + 32 * k] = scores[k];
      __syncwarp();
      farthest = (1.0 + TRAVEL_ROOM) * given(BETA);
      lowest = found.value - FALL_ROOM * given(BETA) * root(board().scores[found.place].b);
      many = enlist(farthest, lowest);
    }
    if (lane() == 0) {
      search.place[owner] = found.place;
      search.value[owner] = found.value;
      search.listed[owner] = many;
      if (many > 0) {
        board().lasting.lists.reach[owner] = farthest;
        board().lasting.lists.bar[owner] = lowest;
      }
    }
    __syncwarp();
  }
};

// Searches among all rows, for the runs of teams whose first lanes are due. All lanes of the warp come here.
__forceinline__ void search(unsigned due, int rows) {
  const Search& search = board().search;
  for (; due != 0; due &= due - 1) {
    const int owner = (__ffs(static_cast<int>(due)) - 1) / TEAM;
    SearchOf{owner, rows, search.told[owner], search.rows[owner]}.run();
  }
}

}  // namespace surefoot::gpu
