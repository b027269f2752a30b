// In the place of `slices.hpp`: a lane's part of a run between two slices of its rounds. What has no meaning between
// two rounds is not kept: it would take registers in all of them.
#pragma once
#include "board.hpp"
#include "engine.hpp"

namespace surefoot::gpu {

// Copies what lasts of a ridge state from one to another.
template <int D>
void copy_lasting(const Ridge<D>& from, Ridge<D>& to) {
  to.count = from.count;
  to.age = from.age;
  to.fresh_log_det = from.fresh_log_det;
  to.growth = from.growth;
  to.drift = from.drift;
  to.fresh_drift = from.fresh_drift;
  to.condition = from.condition;
  to.energy = from.energy;
  to.favourite = from.favourite;
  to.theta = from.theta;
  to.whitener = from.whitener;
  to.step = from.step;
  to.moment = from.moment;
  to.gram.copy(from.gram);
}

template <class P>
class Kept {
 public:
  Kept(const typename P::State& state, const Tally& tally)
      : ridge_(P::Dim, state.ridge.ridge), ledger_(state.ledger), tally_(tally), behind_(arena_of(Room::own).next) {
    for (int i = 0; i < PARTS; ++i) place(i) = {0.0, 0.0};  // lest another block's be kept
    __syncwarp();
  }

  void keep(typename P::State& state, const Tally& tally) {
    copy_lasting(state.ridge, ridge_);
    ledger_ = state.ledger;
    catalogue_ = state.catalogue->now();
    tally_ = tally;
    __syncwarp();
    for (int i = 0; i < PARTS; ++i) board_[i] = place(i);
  }

  void restore(typename P::State& state, Tally& tally) const {
    copy_lasting(ridge_, state.ridge);
    state.ledger = ledger_;
    state.catalogue->go_on(catalogue_);
    tally = tally_;
    arena_of(Room::own).next = behind_;
    for (int i = 0; i < PARTS; ++i) place(i) = board_[i];
    __syncwarp();
  }

 private:
  static constexpr int PARTS = sizeof(Board) / sizeof(Two) / 32;
  static_assert(PARTS * 32 * sizeof(Two) == sizeof(Board));

  Ridge<P::Dim> ridge_;
  Ledger<P::Dim> ledger_;
  typename Catalogue<P::Dim>::Now catalogue_;
  Tally tally_;
  char* behind_;  // where room is free behind what it took itself
  Two board_[PARTS];

  static Two& place(int i) { return reinterpret_cast<Two*>(&board())[32 * i + static_cast<int>(threadIdx.x % 32)]; }
};

}  // namespace surefoot::gpu
