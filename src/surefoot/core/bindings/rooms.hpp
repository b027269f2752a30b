#pragma once
#include <nanobind/nanobind.h>

namespace surefoot {

void bind_linear(nanobind::module_& module);
void bind_numbers(nanobind::module_& module);
void bind_policies(nanobind::module_& module);
void bind_policies_in_4(nanobind::module_& module);
void bind_policies_in_any(nanobind::module_& module);
void bind_guard(nanobind::module_& module);
void bind_drift(const nanobind::module_& module);
void bind_proofs(nanobind::module_& module);

}  // namespace surefoot
