// Eight places at a time, as many of them side by side as a register of this processor holds.
//
// Work over actions never adds up over them (`team.hpp`), so the bits are the same for any width.
#pragma once
#include <type_traits>

#include "sums.hpp"
#include "team.hpp"

namespace surefoot {

// Calls `work(number, at)` for each place or, where a team takes eight at once, for as many as a register holds.
template <class Team, class Work>
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
  team.each(places, some);
}

// How many actions pass `test(number, at)`, which only reads.
template <class Team, class Test>
[[gnu::always_inline]] inline int count_registers(const Team& team, int actions, Test test) {
  using Number = Team::Number;
  if constexpr (std::is_same_v<Number, double>) {
    int count = 0;
    team.look(padded(actions), [&](int at) { count += holding(test(Number{}, at)); });
    return team.total(count);
  } else if constexpr (WIDTH<Register> > WIDTH<Quad>) {
    int count = 0, at = 0;
    for (; at + WIDTH<Quad> < actions; at += WIDTH<Register>) count += holding(test(Register{}, at));
    return at < actions ? count + holding(test(Quad{}, at)) : count;  // the last few rows
  } else {
    auto passed = test(Register{}, 0);
    for (int at = WIDTH<Register>; at < actions; at += WIDTH<Register>) passed += test(Register{}, at);
    return holding(passed);
  }
}

}  // namespace surefoot
