// Policies over features in any dimension.
#include "bindings/linear_policy.hpp"
#include "bindings/rooms.hpp"

namespace surefoot {

void bind_policies_in_any(nanobind::module_& module) { bind_linear_policies<any>(module); }

}  // namespace surefoot
