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

  int total(int counted) const {
    for (int apart = W / 2; apart > 0; apart /= 2) counted += __shfl_xor_sync(mask, counted, apart, W);
    return counted;
  }
};

}  // namespace surefoot::gpu
