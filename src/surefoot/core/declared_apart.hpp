// What few simulations declare: on a GPU a program may be compiled without it, and `gpu/dealt/declared_apart.hpp`
// stands in its place.
#pragma once

namespace surefoot {

inline constexpr bool MAY_EXPLORE = true;  // proposals by another width than the set's
inline constexpr bool MAY_MISFIT = true;   // means that lie beside <theta, features>

}  // namespace surefoot
