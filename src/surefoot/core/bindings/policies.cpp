// What all policies share, and those over plain arms.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/played_block.hpp"
#include "bindings/rooms.hpp"
#include "registry.hpp"

namespace surefoot {
namespace {

template <class P>
void bind_arm_policy(nb::module_& module) {
  using B = Player<P>;
  nb::class_<B> type(module, std::string(P::name).c_str());
  type.def(
      "__init__",
      [](B* b, int arms, double noise, double alpha, double delta, std::optional<double> known,
         const std::vector<double>& bounds) {
        if (arms < 1) throw nb::value_error("there must be at least one arm");
        const bool is_bounded = !bounds.empty();
        if (is_bounded && !(bounds.size() == 2 && bounds[0] < bounds[1])) {
          throw nb::value_error("bounds must be a low and a high number");
        }
        new (b)
            B{ArmState(arms, {.noise = noise, .alpha = alpha, .delta = delta, .known = known.value_or(-1.0)}), {}, {}};
        if (is_bounded) b->state.likelihood.emplace(arms, bounds[0], bounds[1], delta);
      },
      nb::arg("arms"), nb::arg("noise"), nb::arg("alpha"), nb::arg("delta"), nb::arg("known").none(),
      nb::arg("bounds") = std::vector<double>());
  // The arms first, as they were saved before there was a likelihood set.
  type.def("save", [](B& b) {
    std::vector<double> all = saved(b.state);
    const auto count = static_cast<std::size_t>(b.state.count());
    all.resize(4 * count);
    return array_of(std::move(all), {4, count});
  });
  type.def("save_likelihood",
           [](B& b) { return copied(b.state.likelihood ? saved(*b.state.likelihood) : std::vector<double>()); });
  type.def("load", [](B& b, const VectorIn& saved) { restore(b.state, numbers(saved)); });
  type.def(
      "decide",
      [](B& b, int baseline, double round, int order) {
        const ArmOffer offer{.baseline = baseline, .round = round, .order = order};
        const bool needs_baseline = P::needs_baseline || (order < 0 && order != FREE);
        if (baseline >= b.state.count() || order >= b.state.count() || (needs_baseline && baseline < 0)) {
          throw nb::value_error("there is no such arm");
        }
        decide<P>(b.state, offer, b.record, Solo{});
        const auto& r = b.record;
        return std::tuple(r.action, r.is_learner, r.guaranteed, r.required, r.optimism);
      },
      nb::arg("baseline"), nb::arg("round"), nb::arg("order"),
      "Proposal, whether it is played, guaranteed, required, optimism.");
  type.def_prop_ro(
      "intervals", [](B& b) { return std::pair(copied(b.record.lower), copied(b.record.upper)); }, nb::rv_policy::move);
  type.def_prop_ro(
      "split",
      [](B& b) {
        const ArmSplit& split = b.record.split;
        return std::tuple(split.weight, split.level, copied(split.normal), copied(split.point));
      },
      nb::rv_policy::move, "Of the last question: weight, level, normal and point of a tangent; weight 0 for none.");
  type.def_prop_ro(
      "likelihood",
      [](B& b) {
        std::vector<double> successes, failures;
        if (!b.state.likelihood) throw nb::value_error("its rewards are not bounded");
        for (const ArmRewards& own : b.state.likelihood->arms) {
          successes.push_back(own.successes);
          failures.push_back(own.failures);
        }
        return std::tuple(copied(successes), copied(failures), b.state.likelihood->allowed());
      },
      nb::rv_policy::move,
      "Rewards of each arm in units of their bounds, what they fell short of 1, and the loss that is allowed.");
  type.def("learn", [](B& b, int arm, double reward) {
    if (arm < 0 || arm >= b.state.count()) throw nb::value_error("there is no such arm");
    b.learn({nullptr, arm, true, reward}, Solo{});
  });
  type.def(
      "play", [](B& b, const CubeIn& features, const MatrixIn& means, const CountsIn& baselines, const VectorIn& draws,
                 const CountsIn& delays, bool has_delays, bool is_told, int rewards, double scale, Tally& tally,
                 const CountsIn& checkpoints, MatrixOut kept, CountsOut trace, int lanes) {
        const Block block = block_of(features, means, baselines, draws, delays, has_delays, is_told, rewards, scale);
        check_size(features.shape(1), b.state.count());
        return play(b, block, tally, checkpoints, kept, trace, lanes);
      });
}

}  // namespace

void bind_policies(nb::module_& module) {
  nb::class_<Tally>(module, "Tally", "What is counted along a run.")
      .def(nb::init<std::vector<double>>(), nb::arg("watched"))
      .def_ro("round", &Tally::round)
      .def_prop_ro("size", &Tally::size)
      .def("count", &Tally::count, nb::arg("mean"), nb::arg("best"), nb::arg("owed"), nb::arg("is_learner"))
      .def("row", [](const Tally& t) {
        std::vector<double> row(static_cast<std::size_t>(t.size()));
        t.write(row.data());
        return copied(row);
      });
  if constexpr (HAS_4) bind_policies_in_4(module);
  bind_policies_in_any(module);
  each_arm_policy([&]<class P>() { bind_arm_policy<P>(module); });
  module.attr("FREE") = FREE;
  module.attr("HOLD") = HOLD;
  module.attr("ALARMED") = ALARMED;
  module.attr("HELD_OUT") = HELD_OUT;
  module.attr("TRY") = TRY;
  module.attr("TOO_HIGH") = TOO_HIGH;
  module.def("reward_of", [](int kind, double scale, double mean, double draw) {
    return reward_of(static_cast<Rewards>(kind), scale, mean, draw);
  });
}

}  // namespace surefoot
