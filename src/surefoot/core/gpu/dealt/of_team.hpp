// In the place of `of_team.hpp`: what a team has one of lies in the memory that its warp shares.
#pragma once
#include "board.hpp"

namespace surefoot {

// The radii of a run: there is one such array.
template <class A>
class OfTeam {
 public:
  static_assert(sizeof(A) == sizeof(gpu::Board::radii[0]));

  double operator[](std::size_t i) const { return own()[i]; }
  double& operator[](std::size_t i) { return own()[i]; }

 private:
  static double* own() { return gpu::board().radii[threadIdx.x % 32 / TEAM]; }
};

}  // namespace surefoot
