// Room for what the lanes of a team share. On a GPU, where lanes are threads with memory of their own,
// `gpu/common.hpp` stands in its place.
#pragma once
#include <vector>

namespace surefoot {

template <class A>
using Common = std::vector<A>;

// One for a team, whose lanes write the same into it.
template <class A>
using OfTeam = A;

}  // namespace surefoot
