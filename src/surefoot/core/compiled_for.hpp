// What a program is compiled for: on a CPU for everything that can be declared. A GPU's is compiled for one kind of
// simulation, and `gpu/compiled_for.hpp` stands in its place: what is known then costs no registers and no branches.
#pragma once
#include <optional>

#include "radius_kind.hpp"

namespace surefoot {

// Whether the radius may be of this kind.
template <Radius>
inline constexpr bool MAY_BE = true;

inline constexpr bool SETTINGS_CHANGE = true;  // while a policy plays

inline constexpr bool COUNTS_SURPRISES = true;

template <class A>
using Declared = A;

using DeclaredRadius = Radius;

inline constexpr bool MAY_BE_BOUNDED = true;  // rewards
inline constexpr bool MAY_BE_FRESH = true;    // rows, in every round
// A set that only bounded rewards have, and rows that only a fixed world has.
template <class A>
using WithBoundedRewards = std::optional<A>;
template <class A>
using WithFixedRows = std::optional<A>;

}  // namespace surefoot
