// In the place of the core's `common.hpp`: vectors that lie at one address for all lanes of a team, and what lies
// beside the registers. A compiler keeps a state in registers only if no part of it is found by a number that it does
// not know.
#pragma once
#include <vector>

namespace surefoot {

using Zeros = std::vector<double>;

template <class A>
using Common = std::vector<A, true>;

}  // namespace surefoot

#include "of_team.hpp"
