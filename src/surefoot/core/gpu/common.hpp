// In the place of the core's `common.hpp`: vectors that lie at one address for all lanes of a team.
#pragma once
#include <vector>

namespace surefoot {

template <class A>
using Common = std::vector<A, true>;

}  // namespace surefoot
