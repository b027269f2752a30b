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
  if constexpr (!MAY_BE<Radius::paper>) to.fresh_log_det = from.fresh_log_det;  // which that radius is not made of
  to.growth = from.growth;
  to.drift = from.drift;
  to.fresh_drift = from.fresh_drift;
  to.condition = from.condition;
  to.energy = from.energy;
  to.theta = from.theta;
  to.whitener = from.whitener;
  to.step = from.step;
  to.moment = from.moment;
  to.gram = from.gram;
}

// The same for counts of the same alphas, number by number: what is copied as a whole does not lie in registers.
inline void copy_counts(const Tally& from, Tally& to) {
  static_cast<Counts&>(to) = from;
  for (std::size_t i = 0; i < from.violations.size(); ++i) to.violations[i] = from.violations[i];
}

template <class P>
class Kept {
 public:
  Kept(const typename P::State& state, const Tally& tally)
      : ridge_(P::Dim, state.ridge.ridge), ledger_(state.ledger), tally_(tally), behind_(arena_of(Room::own).next) {}

  void keep(typename P::State& state, const Tally& tally) {
    copy_lasting(state.ridge, ridge_);
    ledger_ = state.ledger;
    catalogue_ = state.catalogue->now();
    copy_counts(tally, tally_);
    keep_board();
  }

  void restore(typename P::State& state, Tally& tally) const {
    copy_lasting(ridge_, state.ridge);
    state.ledger = ledger_;
    state.catalogue->go_on(catalogue_);
    copy_counts(tally_, tally);
    arena_of(Room::own).next = behind_;
    __syncwarp();  // what was set up a moment ago lies there
    each_part(*this, [](auto& there, const auto& own) { there = own; });
    __syncwarp();
  }

 private:
  // Of what lasts on the board a lane keeps every 32nd pair of numbers, and as many names.
  static constexpr int NAMES = sizeof(Lists::names), PAIRS = (sizeof(Lasting) - NAMES) / sizeof(Two);

  Ridge<P::Dim> ridge_;
  Ledger<P::Dim> ledger_;
  typename Catalogue<P::Dim>::Now catalogue_;
  Tally tally_;
  char* behind_;  // where room is free behind what it took itself
  Two pairs_[(PAIRS + 31) / 32];
  unsigned char names_[NAMES / 32];

  void keep_board() {
    __syncwarp();
    each_part(*this, [](auto& there, auto& own) { own = there; });
  }

  // Calls `use(there, own)` for every part of it that is this lane's, and where it is kept.
  template <class Self, class Use>
  static void each_part(Self& kept, Use use) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    Two* const pairs = reinterpret_cast<Two*>(&board().lasting);
    for (int i = 0; 32 * i + lane < PAIRS; ++i) use(pairs[32 * i + lane], kept.pairs_[i]);
    for (int i = 0; i < NAMES / 32; ++i) use(board().lasting.lists.names[0][32 * i + lane], kept.names_[i]);
  }
};

}  // namespace surefoot::gpu
