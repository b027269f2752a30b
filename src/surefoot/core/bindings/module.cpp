// The extension module: every room of the core adds its own part.
#include <nanobind/nanobind.h>

#include "bindings/rooms.hpp"

NB_MODULE(SUREFOOT_MODULE, module) {
  // What still lives when the interpreter ends is no concern of whoever called us.
  nanobind::set_leak_warnings(false);
  module.doc() = "The mathematics of surefoot, compiled.";
  surefoot::bind_numbers(module);
  surefoot::bind_linear(module);
  surefoot::bind_policies(module);
  surefoot::bind_guard(module);
  surefoot::bind_drift(module);
  surefoot::bind_proofs(module);
}
