// Who shares the work of one run: one lane on a CPU, which takes eight actions at a time; several lanes on a GPU.
//
// Work over actions is written once, for one number or for eight side by side, and never adds up over actions. So the
// bits are the same for every team.
#pragma once
#include "sums.hpp"

namespace surefoot {

inline constexpr double NO_SCORE = -1e280;  // the mean of a place that holds no action

// Places for so many actions: whole groups of eight.
inline int padded(int actions) { return (actions + WIDE - 1) / WIDE * WIDE; }

// One lane. `work(at, sample)` is called with the first of eight places.
struct Solo {
  using Number = Lanes;
  template <class Work>
  void each(int places, Work work) const {
    for (int at = 0; at < places; at += WIDE) work(at);
  }
  // What all lanes have counted.
  int total(int counted) const { return counted; }
};

// So many lanes, played one after the other: what a GPU does at once. Lane l takes the places l, l + lanes, ...
struct Emulated {
  using Number = double;
  int lanes;
  template <class Work>
  void each(int places, Work work) const {
    for (int lane = 0; lane < lanes; ++lane) {
      for (int at = lane; at < places; at += lanes) work(at);
    }
  }
  int total(int counted) const { return counted; }
};

}  // namespace surefoot
