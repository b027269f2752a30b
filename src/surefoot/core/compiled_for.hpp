// What a program is compiled for: on a CPU for everything that can be declared. A GPU's is compiled for one kind of
// simulation, and `gpu/compiled_for.hpp` stands in its place: what is known then costs no registers and no branches.
#pragma once
#include <optional>

#include "radius_kind.hpp"

namespace surefoot {

inline constexpr bool SETTINGS_CHANGE = true;  // while a policy plays

template <class A>
using Declared = A;

using DeclaredRadius = Radius;

// A set that only bounded rewards have, and rows that only a fixed world has.
template <class A>
using WithBoundedRewards = std::optional<A>;
template <class A>
using WithFixedRows = std::optional<A>;

}  // namespace surefoot
