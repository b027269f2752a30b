// Eight places at a time, as many of them side by side as a register of this processor holds.
//
// Work over actions never adds up over them (`team.hpp`), so the bits are the same for any width.
#pragma once
#include <type_traits>

#include "sums.hpp"
#include "team.hpp"

namespace surefoot {

// Calls `work(number, at)` for each place or, where a team takes eight at once, for as many as a register holds.
template <bool IsWriting = true, class Team, class Work>
[[gnu::always_inline]] inline void each_register(const Team& team, int places, int actions, Work work) {
  using Number = Team::Number;
  const auto some = [&](int at) __attribute__((always_inline)) {
    if constexpr (std::is_same_v<Number, double>) {
      work(Number{}, at);
    } else if (at + WIDTH<Quad> >= actions && WIDTH<Register> > WIDTH<Quad>) {
      work(Quad{}, at);  // the last few rows
    } else {
      for (int k = 0; k < WIDE; k += WIDTH<Register>) work(Register{}, at + k);
    }
  };
  if constexpr (IsWriting) {
    team.each(places, some);
  } else {
    team.look(places, some);
  }
}

}  // namespace surefoot
