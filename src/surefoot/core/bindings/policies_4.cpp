// Policies over features in the paper's dimension, for which every loop is unrolled.
#include "bindings/linear_policy.hpp"
#include "bindings/rooms.hpp"

namespace surefoot {

void bind_policies_in_4(nanobind::module_& module) { bind_linear_policies<4>(module); }

}  // namespace surefoot
