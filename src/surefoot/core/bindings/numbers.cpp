// Functions of single numbers, and draws.
#include "bindings/rooms.hpp"
#include "elementary.hpp"

namespace surefoot {

void bind_numbers(nanobind::module_& module) { module.def("log", &log_of, "The natural logarithm."); }

}  // namespace surefoot
