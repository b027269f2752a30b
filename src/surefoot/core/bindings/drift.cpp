// The watch's bets.
#include "drift.hpp"

#include <nanobind/stl/vector.h>

#include "bindings/rooms.hpp"
#include "bindings/saved.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace surefoot {

void bind_drift(const nb::module_& module) {
  module.attr("SHIFTS") = nb::tuple(nb::cast(std::vector<double>(SHIFTS.begin(), SHIFTS.end())));
  module.attr("HORIZON") = HORIZON;

  nb::class_<Bets>(module, "Bets", "The bets of a watch.")
      .def(nb::init<>())
      .def(
          "bet", [](Bets& bets, bool is_learner, double error, double round) { bet(bets, is_learner, error, round); },
          "is_learner"_a, "error"_a, "round_"_a, "Take in the error of one prediction, in units of the noise.")
      .def("log_evidence", &log_evidence, "surprises"_a, "noise"_a, "ridge"_a, "theta_bound"_a,
           "The logarithm of the evidence against one theta.")
      .def("seen_by_best", &seen_by_best, "noise"_a, "What the wealthiest bettor has seen.")
      .def("save", &save<Bets>, "Its numbers.")
      .def("load", &load<Bets>, "saved"_a, "Take back what `save` gave; ValueError if that is of another size.");

  nb::class_<Drift>(module, "Drift", "What a bettor has seen.")
      .def_ro("is_learner", &Drift::is_learner)
      .def_prop_ro("since", [](const Drift& drift) { return static_cast<long long>(drift.since); })
      .def_prop_ro("rounds", [](const Drift& drift) { return static_cast<long long>(drift.rounds); })
      .def_ro("shift", &Drift::shift);
}

}  // namespace surefoot
