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
    each_part(*this, [](auto& there, auto&) { there = {}; });  // lest another block's be kept
    __syncwarp();
  }

  void keep(typename P::State& state, const Tally& tally) {
    copy_lasting(state.ridge, ridge_);
    ledger_ = state.ledger;
    catalogue_ = state.catalogue->now();
    tally_ = tally;
    __syncwarp();
    each_part(*this, [](auto& there, auto& own) { own = there; });
  }

  void restore(typename P::State& state, Tally& tally) const {
    copy_lasting(ridge_, state.ridge);
    state.ledger = ledger_;
    state.catalogue->go_on(catalogue_);
    tally = tally_;
    arena_of(Room::own).next = behind_;
    each_part(*this, [](auto& there, const auto& own) { there = own; });
    __syncwarp();
  }

 private:
  // Of the board a lane keeps every 32nd pair of numbers, and as many names.
  static constexpr int NAMES = sizeof(Board::names), PAIRS = (sizeof(Board) - NAMES) / sizeof(Two);

  Ridge<P::Dim> ridge_;
  Ledger<P::Dim> ledger_;
  typename Catalogue<P::Dim>::Now catalogue_;
  Tally tally_;
  char* behind_;  // where room is free behind what it took itself
  Two pairs_[(PAIRS + 31) / 32];
  unsigned char names_[NAMES / 32];

  // Calls `use(there, own)` for every part of the board that is this lane's, and where it is kept.
  template <class Self, class Use>
  static void each_part(Self& kept, Use use) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    Two* const pairs = reinterpret_cast<Two*>(&board());
    for (int i = 0; 32 * i + lane < PAIRS; ++i) use(pairs[32 * i + lane], kept.pairs_[i]);
    for (int i = 0; i < NAMES / 32; ++i) use(board().names[0][32 * i + lane], kept.names_[i]);
  }
};

}  // namespace surefoot::gpu
