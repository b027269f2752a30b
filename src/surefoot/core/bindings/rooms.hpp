#pragma once
#include <nanobind/nanobind.h>

namespace surefoot {

void bind_numbers(nanobind::module_& module);

}  // namespace surefoot
