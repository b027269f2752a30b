// Runs are played in one piece; where vectors are dealt, `dealt/slices.hpp` stands in its place.
#pragma once
#include "engine.hpp"

namespace surefoot::gpu {

template <class P>
struct Kept {
  Kept(const typename P::State&, const Tally&) {}
  void keep(typename P::State&, const Tally&) {}
  void restore(typename P::State&, Tally&) const {}
};

}  // namespace surefoot::gpu
