// In the place of the core's `common.hpp`: vectors that lie at one address for all lanes of a team, and what lies
// beside the registers. A compiler keeps a state in registers only if no part of it is found by a number that it does
// not know.
#pragma once
#include <vector>

#include "arena.hpp"

namespace surefoot {

using Zeros = std::vector<double>;

template <class A>
using Common = std::vector<A, true>;

// What a team has one of, in a device's memory.
template <class A>
class OfTeam {
 public:
  template <class... Given>
  explicit OfTeam(Given... given) : there_(::new (gpu::take_room<gpu::Room::team>(sizeof(A))) A(given...)) {}
  OfTeam(const OfTeam&) = delete;
  OfTeam& operator=(const OfTeam&) = delete;

  operator const A&() const { return *there_; }
  auto size() const { return there_->size(); }
  auto data() const { return there_->data(); }
  auto row(int i) const { return there_->row(i); }
  double& operator[](std::size_t i) const { return there_->data()[i]; }
  double& operator()(int i, int j) const { return (*there_)(i, j); }
  void diagonal(double scale) const { there_->diagonal(scale); }

 private:
  A* there_;
};

}  // namespace surefoot
