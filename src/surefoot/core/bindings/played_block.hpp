// A block of rounds as Python gives it, and how a policy plays it.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/arrays.hpp"
#include "engine.hpp"

namespace surefoot {

inline Block block_of(const CubeIn& features, const MatrixIn& means, const CountsIn& baselines, const VectorIn& draws,
                      const CountsIn& delays, bool has_delays, bool is_told, int rewards, double scale) {
  const auto rounds = draws.size();
  const bool is_fixed = features.shape(0) == 1;
  if ((!is_fixed && features.shape(0) < rounds) || means.shape(0) != features.shape(0) ||
      means.shape(1) != features.shape(1) || baselines.size() != rounds || delays.size() != rounds) {
    throw nb::value_error("the arrays of a block must belong together");
  }
  if (features.shape(0) == 0 || features.shape(1) == 0) throw nb::value_error("there must be at least one row");
  check_rows(baselines, static_cast<int>(features.shape(1)));
  return {static_cast<int>(rounds),
          static_cast<int>(features.shape(1)),
          static_cast<int>(features.shape(2)),
          is_fixed,
          false,
          features.data(),
          means.data(),
          draws.data(),
          baselines.data(),
          delays.data(),
          has_delays,
          is_told,
          static_cast<Rewards>(rewards),
          scale};
}

inline constexpr int MOST_LANES = 1024;

// Not inlined into a binding, whose own variables would take the loop's registers, and a tenth of its speed.
template <class P, class Team>
[[gnu::noinline]] std::int64_t play_with(Player<P>& player, const Block& block, Tally& tally, const Checkpoints& points,
                                         std::int64_t* trace, const Team& team) {
  return player.play(block, tally, points, trace, team);
}

// Plays a block; with `lanes` the actions are shared by so many, with the same bits. Returns the first round with a row
// beyond its bound, if there is one.
template <class P>
std::optional<std::int64_t> play(Player<P>& player, const Block& block, Tally& tally, const CountsIn& checkpoints,
                                 MatrixOut& kept, CountsOut& trace, int lanes) {
  if (kept.shape(0) < checkpoints.size() || kept.shape(1) != static_cast<std::size_t>(tally.size())) {
    throw nb::value_error("`kept` must have a row for each checkpoint and a column for each count");
  }
  if (lanes < 0 || lanes > MOST_LANES) throw nb::value_error("a team must have a lane, and not more than a GPU has");
  if (trace.size() != 0 && trace.size() < static_cast<std::size_t>(block.rounds))
    throw nb::value_error("`trace` is too short");
  const Checkpoints points{checkpoints.data(), static_cast<int>(checkpoints.size()), kept.data()};
  std::int64_t* actions = trace.size() == 0 ? nullptr : trace.data();
  const nb::gil_scoped_release unlocked;
  const std::int64_t failed = lanes == 0 ? play_with(player, block, tally, points, actions, Solo{})
                                         : play_with(player, block, tally, points, actions, Emulated{lanes});
  return failed < 0 ? std::nullopt : std::optional(failed);
}

}  // namespace surefoot
