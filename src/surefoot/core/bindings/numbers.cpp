// Functions of single numbers, and draws.
#include <nanobind/stl/array.h>

#include "bindings/rooms.hpp"
#include "elementary.hpp"
#include "philox.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace surefoot {

void bind_numbers(nb::module_& module) {
  module.def("log", &log_of, "x"_a, "ln x.");
  module.def("log1p", &log1p_of, "x"_a, "ln(1 + x).");
  module.def("exp", &exp_of, "x"_a, "e^x.");
  module.def("expm1", &expm1_of, "x"_a, "e^x - 1.");
  module.def("normal_quantile", &normal_quantile, "p"_a, "z with P(Z <= z) = p for a normal Z.");
  module.def("philox", &philox, "counter"_a, "key"_a, "Philox 4x32-10.");
  module.def(
      "uniform_at",
      [](std::uint64_t seed, std::uint32_t stream, std::uint32_t run, std::uint64_t round) {
        return uniform_at({seed, stream, run, round});
      },
      "seed"_a, "stream"_a, "run"_a, "round_"_a, "Uniform in [0, 1), a function of its place.");
  module.def(
      "normal_at",
      [](std::uint64_t seed, std::uint32_t stream, std::uint32_t run, std::uint64_t round) {
        return normal_at({seed, stream, run, round});
      },
      "seed"_a, "stream"_a, "run"_a, "round_"_a, "Normal with mean 0 and variance 1, a function of its place.");
}

}  // namespace surefoot
