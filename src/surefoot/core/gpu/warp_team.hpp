// A team on a GPU: W lanes of a warp. What is not shared out every lane computes for itself, with the same bits.
#pragma once
#include "team.hpp"

namespace surefoot::gpu {

inline constexpr int SEVERAL =
    2;  // places that a lane works on side by side; more would take more instructions to keep

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

  // The same, several places side by side: while one waits for memory, the others do, too.
  template <class Work>
  void each_several(int places, Work work) const {
    meet();
    int at = lane;
    for (; at + (SEVERAL - 1) * W < places; at += SEVERAL * W) work.template operator()<SEVERAL>(at, W);
    for (; at < places; at += W) work.template operator()<1>(at, W);
    meet();
  }

  // Where nothing is written, nobody waits.
  template <class Work>
  void look(int places, Work work) const {
#pragma unroll SEVERAL
    for (int at = lane; at < places; at += W) work(at);
  }

  template <class Value>
  Largest largest(int places, double*, Value value) const {
    Largest found{places, -INFINITE};
#pragma unroll SEVERAL
    for (int at = lane; at < places; at += W) found.take_in({at, value.template operator()<double>(at)});
    for (int apart = W / 2; apart > 0; apart /= 2) {
      found.take_in({__shfl_xor_sync(mask, found.place, apart, W), __shfl_xor_sync(mask, found.value, apart, W)});
    }
    return found;
  }

  template <class Test>
  bool pick(int places, int most, Common<int>& picked, Test test) const {
    picked.clear();
    for (int first = 0; first < places; first += 32 * W) {
      unsigned own = 0;  // a bit for each of this lane's places
#pragma unroll SEVERAL
      for (int k = 0; k < 32; ++k) {
        const int at = first + k * W + lane;
        if (at < places && test(at)) own |= 1U << k;
      }
      if (static_cast<int>(picked.size()) + total(__popc(own)) > most) {
        picked.clear();
        return false;
      }
      unsigned of[W], left = 0;
#pragma unroll
      for (int l = 0; l < W; ++l) left |= of[l] = __shfl_sync(mask, own, l, W);
      for (; left != 0; left &= left - 1) {
        const int k = __ffs(static_cast<int>(left)) - 1;
#pragma unroll
        for (int l = 0; l < W; ++l) {
          if ((of[l] >> k & 1U) != 0) picked.push_back(first + k * W + l);
        }
      }
    }
    return true;
  }

  // All lanes of the warp come here, those of other teams too.
  bool is_due_for_any(bool is_due) const { return __any_sync(~0U, is_due); }

  int total(int counted) const {
    for (int apart = W / 2; apart > 0; apart /= 2) counted += __shfl_xor_sync(mask, counted, apart, W);
    return counted;
  }
};

}  // namespace surefoot::gpu
