#pragma once
#include <nanobind/nanobind.h>

#include "vector.hpp"

namespace surefoot {

void bind_linear(nanobind::module_& module);
void bind_numbers(nanobind::module_& module);
void bind_policies(nanobind::module_& module);
void bind_policies_in_4(nanobind::module_& module);
void bind_policies_in_any(nanobind::module_& module);
void bind_guard(nanobind::module_& module);
void bind_drift(const nanobind::module_& module);
void bind_proofs(nanobind::module_& module);

#ifdef SUREFOOT_QUICK
inline constexpr bool HAS_4 = false;
#else
inline constexpr bool HAS_4 = true;
#endif

// Binds in every dimension that is compiled: the paper's apart, where all loops are unrolled, and any.
template <class Bind>
void in_each_dimension(Bind bind) {
  if constexpr (HAS_4) bind.template operator()<4>();
  bind.template operator()<any>();
}

}  // namespace surefoot
