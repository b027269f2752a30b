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

  Gram(int, double ridge) : kept_(static_cast<Column*>(gpu::take_room<gpu::Room::own>(sizeof(Column)))) {
    *kept_ = {};
    for (int i = 0; i < D; ++i) kept_->sum[i] = own_place() == i ? ridge : 0.0;
  }

  // With what lies in memory.
  void copy(const Gram& other) {
    waiting = other.waiting;
    for (int i = 0; i < D; ++i) waits_[i] = other.waits_[i];
    *kept_ = *other.kept_;
  }

  double at(int i, int j) const { return of_lane(kept_->sum[i] + kept_->carry[i], j); }

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
      const auto [value, lost] = two_sum(kept_->sum[i], waits_[i]);
      kept_->sum[i] = value;
      kept_->carry[i] += lost;
      waits_[i] = 0.0;
    }
    waiting = 0;
  }

 private:
  struct Column {
    double sum[D], carry[D];
  };
  Column* kept_;
  double waits_[D] = {};
};

}  // namespace surefoot
