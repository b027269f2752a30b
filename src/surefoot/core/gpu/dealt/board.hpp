// What the lanes of a warp tell each other by shared memory.
#pragma once
#include <array>
#include <cstddef>

#include "arena.hpp"

namespace surefoot::gpu {

struct alignas(16) Two {
  double a, b;
};

inline constexpr int LISTED = 16;        // the most rows of a list
inline constexpr int SLABS = 4;          // of 32 rows each: the most that a program has
inline constexpr int TEAMS = 32 / TEAM;  // of a warp
inline constexpr int GIVEN = 22;
inline constexpr int RADII = 32;  // of the next observations of a run

// The rows of short lists, dealt to the lanes of their teams.
struct Lists {
  Two x01[LISTED / TEAM][32], x23[LISTED / TEAM][32], score[LISTED / TEAM][32];
  double reach[TEAMS], bar[TEAMS];  // as in `short_list.hpp`
  unsigned char names[LISTED][TEAMS];
};

// All that lasts from round to round.
struct Lasting {
  double gram[8][32];  // each lane's column of V, and its carry
  Lists lists;
};

// What a run tells the warp that is to search among all its rows, and what it is told.
struct Search {
  double given[GIVEN][TEAMS];
  const Two* rows[TEAMS];
  Two* scores[TEAMS];
  int told[TEAMS];
  int place[TEAMS], listed[TEAMS];
  double value[TEAMS];
};

struct Board {
  static constexpr int APART = 20;  // numbers from one team's square to the next, so that they lie in different banks
  union {
    struct {
      double square[TEAMS * APART];
      double four[32];
    };
    Two scores[32 * SLABS];  // of the run that is searched, when nobody needs the others
  };
  Lasting lasting;
  Search search;
  double radii[TEAMS][RADII];

  // The numbers of all lanes of the team.
  __forceinline__ std::array<double, 4> spread(double own, unsigned team) {
    const int lane = static_cast<int>(threadIdx.x % 32), first = lane & 28;
    __syncwarp(team);
    four[lane] = own;
    __syncwarp(team);
    const Two left = *reinterpret_cast<const Two*>(four + first);
    const Two right = *reinterpret_cast<const Two*>(four + first + 2);
    return {left.a, left.b, right.a, right.b};
  }

  // Rows as columns.
  template <class Square>
  __forceinline__ Square turned(const Square& x, unsigned team) {
    const int lane = static_cast<int>(threadIdx.x % 32), place = lane % 4;
    double* const own = square + lane / 4 * APART;
    __syncwarp(team);
    own[place] = x.a.own;
    own[4 + place] = x.b.own;
    own[8 + place] = x.c.own;
    own[12 + place] = x.e.own;
    __syncwarp(team);
    const Two left = *reinterpret_cast<const Two*>(own + 4 * place);
    const Two right = *reinterpret_cast<const Two*>(own + 4 * place + 2);
    Square made;
    made.a.own = left.a;
    made.b.own = left.b;
    made.c.own = right.a;
    made.e.own = right.b;
    return made;
  }
};

inline constexpr std::size_t ARENAS = sizeof(Arena) * ROOMS * BLOCK;
static_assert(ARENAS + sizeof(Board) == SHARED_BYTES && BLOCK == 32);  // as the host takes it, for one warp

// Behind the arenas.
__forceinline__ Board& board() {
  extern __shared__ char all_shared[];
  return *reinterpret_cast<Board*>(all_shared + ARENAS);
}

}  // namespace surefoot::gpu
