// A team on a GPU: W lanes of a warp. What is not shared out every lane computes for itself, with the same bits.
#pragma once
#include "team.hpp"

namespace surefoot::gpu {

template <int W>
struct WarpTeam {
  using Number = double;
  int lane;
  unsigned mask;  // the lanes of the warp that belong to it

  static WarpTeam here() {
    const int lane = static_cast<int>(threadIdx.x % W), first = static_cast<int>(threadIdx.x % 32) - lane;
    return {lane, (W == 32 ? ~0U : (1U << W) - 1U) << first};
  }

  // Waits for the others, and sees what they have written.
  void meet() const { __syncwarp(mask); }

  // Nobody begins before the others have read what they need, and nobody goes on before all have written.
  template <class Work>
  void each(int places, Work work) const {
    meet();
    for (int at = lane; at < places; at += W) work(at);
    meet();
  }

  template <class Value>
  Largest largest(int places, double*, Value value) const {
    Largest found{places, -INFINITE};
    for (int at = lane; at < places; at += W) found.take_in({at, value.template operator()<double>(at)});
    for (int apart = W / 2; apart > 0; apart /= 2) {
      found.take_in({__shfl_xor_sync(mask, found.place, apart, W), __shfl_xor_sync(mask, found.value, apart, W)});
    }
    return found;
  }

  template <class Test>
  bool pick(int places, int most, std::vector<int>& picked, Test test) const {
    picked.clear();
    for (int first = 0; first < places; first += W) {
      const bool passes = first + lane < places && test(first + lane);
      unsigned votes = __ballot_sync(mask, passes) & mask;
      for (; votes != 0; votes &= votes - 1) {
        if (static_cast<int>(picked.size()) == most) {
          picked.clear();
          return false;
        }
        picked.push_back(first + (__ffs(static_cast<int>(votes)) - 1) % W);
      }
    }
    return true;
  }

  int total(int counted) const {
    for (int apart = W / 2; apart > 0; apart /= 2) counted += __shfl_xor_sync(mask, counted, apart, W);
    return counted;
  }
};

}  // namespace surefoot::gpu
