// Functions of single numbers, and draws.
#include <nanobind/stl/array.h>

#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "elementary.hpp"
#include "philox.hpp"

using namespace nanobind::literals;

namespace surefoot {
namespace {

template <class Fill>
Array drawn(int count, Fill fill) {
  std::vector<double> values(static_cast<std::size_t>(count));
  {
    const nb::gil_scoped_release unlocked;
    fill(values.data());
  }
  return array_of(std::move(values), {static_cast<std::size_t>(count)});
}

}  // namespace

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
  module.def(
      "uniforms",
      [](std::uint64_t seed, std::uint64_t first, int count) {
        return drawn(count, [&](double* out) {
          for (int i = 0; i < count; ++i) out[i] = uniform_at({seed, 0, 0, first + static_cast<std::uint64_t>(i)});
        });
      },
      "seed"_a, "first"_a, "count"_a, "Uniform draws of consecutive rounds.");
  module.def(
      "normals",
      [](std::uint64_t seed, std::uint64_t first, int count) {
        return drawn(count, [&](double* out) { fill_normals({seed, 0, 0, first}, out, count); });
      },
      "seed"_a, "first"_a, "count"_a, "Normal draws of consecutive rounds.");
  module.attr("SOURCES") = SUREFOOT_SOURCES;
}

}  // namespace surefoot
