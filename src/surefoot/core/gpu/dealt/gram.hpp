// In the place of the core's `gram.hpp`: V, of which each of four lanes has a column. Rows that wait are added up as
// they come, which is what the core does with them in the end.
#pragma once
#include "blocks.hpp"
#include "exact.hpp"
#include "factor.hpp"
#include "vector.hpp"

namespace surefoot {

inline constexpr int RECENT = 16;

template <int D>
struct Gram {
  static_assert(D == 4);
  int waiting = 0;

  Gram(int, double ridge) {
    for (int i = 0; i < D; ++i) {
      sum(i) = own_place() == i ? ridge : 0.0;
      carry(i) = 0.0;
    }
  }

  double at(int i, int j) const { return of_lane(sum(i) + carry(i), j); }

  template <class Team>
  __forceinline__ void add(View<D> x, const Blocks<D>& blocks, const Team& team) {
    const double own = x[own_place()];
#pragma unroll
    for (int i = 0; i < D; ++i) waits_[i] += x[i] * own;
    waiting += 1;
    if (waiting == RECENT) fold(blocks, team);
  }

  template <class Team>
  void fold(const Blocks<D>&, const Team&) {
#pragma unroll
    for (int i = 0; i < D; ++i) {
      const auto [value, lost] = two_sum(sum(i), waits_[i]);
      sum(i) = value;
      carry(i) += lost;
      waits_[i] = 0.0;
    }
    waiting = 0;
  }

 private:
  double waits_[D] = {};

  // On the board: they are looked at in one round of sixteen.
  static double& sum(int i) { return gpu::board().lasting.gram[i][threadIdx.x % 32]; }
  static double& carry(int i) { return gpu::board().lasting.gram[D + i][threadIdx.x % 32]; }
};

}  // namespace surefoot
