// In the place of the core's `declared_apart.hpp`: where vectors are dealt nobody declares it (`is_ordinary` in
// `surefoot.simulation.gpu_programs`), and no round looks for it in memory.
#pragma once

namespace surefoot {

inline constexpr bool MAY_EXPLORE = false;
inline constexpr bool MAY_MISFIT = false;

}  // namespace surefoot
