// Who shares the work of one run: one lane on a CPU, which takes eight actions at a time; several lanes on a GPU.
//
// Work over actions is written once, for one number or for eight side by side, and never adds up over actions. So the
// bits are the same for every team.
#pragma once
#include "common.hpp"
#include "sums.hpp"

namespace surefoot {

inline constexpr double NO_SCORE = -1e280;  // the mean of a place that holds no action

// Places for so many actions: whole groups of eight.
inline int padded(int actions) { return (actions + WIDE - 1) / WIDE * WIDE; }

// The largest of several values, and the first place that has it; behind the last place where none is a number.
struct Largest {
  int place;
  double value;

  void take_in(const Largest& other) {
    if (other.value > value || (other.value == value && other.place < place)) *this = other;
  }
};

// One lane. `work(at, sample)` is called with the first of eight places.
struct Solo {
  using Number = Lanes;
  template <class Work>
  [[gnu::always_inline]] void each(int places, Work work) const {
    for (int at = 0; at < places; at += WIDE) work(at);
  }
  // The same for work that only reads.
  template <class Work>
  [[gnu::always_inline]] void look(int places, Work work) const {
    each(places, work);
  }
  // Whether work is due that may be done too early: runs that are played in step then do it together.
  bool is_due_for_any(bool is_due) const { return is_due; }
  // What all lanes have counted.
  int total(int counted) const { return counted; }
  // Over whole groups of eight; `room` holds as many numbers as there are places.
  template <class Value>
  [[gnu::always_inline]] Largest largest(int places, double* room, Value value) const {
    Register most = Register{} - INFINITE;
    for (int at = 0; at < places; at += WIDTH<Register>) {
      const Register there = value.template operator()<Register>(at);
      put(room + at, there);
      most = larger(there, most);
    }
    Largest found{0, most[0]};
    for (int k = 1; k < WIDTH<Register>; ++k) found.value = larger(most[k], found.value);
    while (found.place < places && room[found.place] != found.value) ++found.place;
    return found;
  }
  // The places that pass a test, in their order; none, and false, where more than so many do.
  template <class Test>
  bool pick(int places, int most, Common<int>& picked, Test test) const {
    picked.clear();
    int room = most;
    for (int at = 0; at < places; ++at) {
      if (!test(at)) continue;
      if (room-- == 0) {
        picked.clear();
        return false;
      }
      picked.push_back(at);
    }
    return true;
  }
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
  template <class Work>
  void each_several(int places, Work work) const {
    each(places, [&](int at) { work.template operator()<1>(at, lanes); });
  }
  template <class Work>
  void look(int places, Work work) const {
    each(places, work);
  }
  bool is_due_for_any(bool is_due) const { return is_due; }
  int total(int counted) const { return counted; }
  template <class Value>
  Largest largest(int places, double*, Value value) const {
    Largest found{places, -INFINITE};
    for (int lane = 0; lane < lanes; ++lane) {
      Largest own{places, -INFINITE};
      for (int at = lane; at < places; at += lanes) own.take_in({at, value.template operator()<double>(at)});
      found.take_in(own);
    }
    return found;
  }
  template <class Test>
  bool pick(int places, int most, Common<int>& picked, Test test) const {
    return Solo{}.pick(places, most, picked, test);
  }
};

}  // namespace surefoot
