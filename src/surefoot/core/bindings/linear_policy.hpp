// A policy over features as Python sees it, written once over the concept. Each dimension is compiled in a file of its
// own, because together they take twice as long and leave less room for inlining.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/bound_policy.hpp"
#include "bindings/played_block.hpp"
#include "rebook.hpp"
#include "registry.hpp"
#include "replay.hpp"

namespace surefoot {

// At least one row, and of the policy's dimension.
template <int D>
Rows<D> some_rows_of(const MatrixIn& array, int dim) {
  if (array.shape(0) == 0) throw nb::value_error("there must be at least one row");
  return rows_of<D>(array, dim);
}

template <int D>
Catalogue<D>& catalogue_of(LinearState<D>& state) {
  if (!state.catalogue) throw nb::value_error("there is no catalogue");
  return *state.catalogue;
}

template <int D>
bool is_catalogue_of(const LinearState<D>& state, Rows<D> rows) {
  return state.catalogue && state.catalogue->actions() == rows.count;
}

// A row's number, or -1 where it is larger than any.
inline int row_of(nb::int_ given) {
  int row = -1;
  return nb::try_cast(given, row, false) ? row : -1;
}

template <class P>
void bind_linear_policy(nb::module_& module) {
  constexpr int D = P::Dim;
  using B = Bound<P>;
  const std::string name = std::string(P::name) + (D == any ? "N" : std::to_string(D));
  nb::class_<B> type(module, name.c_str());
  type.def(nb::init<int, const LinearSettings&>(), nb::arg("dim"), nb::arg("settings"));
  type.def_prop_ro(
      "settings", [](B& b) -> LinearSettings& { return b.state().settings; }, nb::rv_policy::reference_internal);
  type.def_prop_ro("ridge", [](B& b) -> Ridge<D>& { return b.state().ridge; }, nb::rv_policy::reference_internal);
  type.def_prop_ro("ledger", [](B& b) -> Ledger<D>& { return b.state().ledger; }, nb::rv_policy::reference_internal);
  type.def_prop_ro("memory", [](B& b) -> Memory<D>& { return b.state().memory; }, nb::rv_policy::reference_internal);
  type.def_prop_ro(
      "last_optimism", [](B& b) { return b.player.record.optimism; }, "The UCB of the row that was proposed last.");
  type.def_prop_ro("radius", [](B& b) { return b.state().radius(); });
  type.def_prop_ro("optimism", [](B& b) { return b.state().likelihood ? b.state().optimism() : b.state().radius(); });
  type.def_prop_ro("scoring", [](B& b) -> Ridge<D>& { return b.state().scoring(); }, nb::rv_policy::reference_internal);
  type.def(
      "declare_bounds", [](B& b) { b.state().declare_bounds(); },
      "Begins the likelihood set of bounded rewards, or gives it the share of delta that the settings say now.");
  type.def(
      "likelihood",
      [](B& b) -> nb::object {
        if (!b.state().likelihood) return nb::none();
        const Likelihood<D>& set = *b.state().likelihood;
        const auto count = static_cast<std::size_t>(set.cells.count()), d = static_cast<std::size_t>(set.dim());
        std::vector<double> successes, failures;
        for (const Cell& cell : set.cells.all) {
          successes.push_back(cell.successes);
          failures.push_back(cell.failures);
        }
        return nb::make_tuple(array_of(set.cells.rows, {count, d}), copied(successes), copied(failures), set.allowed(),
                              set.low, set.scale, set.gone.constant.total(), total_of(set.gone.linear),
                              copied(set.gone.square), EPS * (set.gone.rows + 16.0) * set.gone.reach);
      },
      "The likelihood set: rows, successes, failures, allowed, low, scale, the parabolas' three parts, and by how much "
      "the last of them may be wrong; or None.");
  type.def("save_likelihood", [](B& b) {
    return b.state().likelihood ? copied(saved(*b.state().likelihood)) : copied(std::vector<double>());
  });
  type.def("load_likelihood", [](B& b, const VectorIn& given) {
    if (!b.state().likelihood) throw DamagedState("this policy uses no likelihood set");
    restore(*b.state().likelihood, numbers(given));
  });
  type.def(
      "decide",
      [](B& b, const MatrixIn& rows, bool is_catalogue, int baseline, double known, double low, double high,
         int order) {
        const auto& state = b.state();
        const auto given = some_rows_of<D>(rows, state.dim());
        if (baseline >= given.count || row_in(order) >= given.count) throw nb::value_error("there is no such row");
        if (is_catalogue && !is_catalogue_of(state, given)) {
          throw nb::value_error("these are not the rows of the catalogue");
        }
        return b.decided(given, is_catalogue, baseline, known, low, high, order);
      },
      nb::arg("rows"), nb::arg("is_catalogue"), nb::arg("baseline"), nb::arg("known"), nb::arg("low"), nb::arg("high"),
      nb::arg("order"),
      "One round: the proposal's row, whether it is played, the features of what is played as bytes, whether its "
      "reward will be learned, whether all was refuted, and the evidence; None, and nothing is changed, where a row "
      "breaks the bound D, which `first_bad_row` names.");
  type.def(
      "decide_given",
      [](B& b, nb::handle features, bool is_catalogue, nb::int_ baseline, double known, double low, double high,
         int order) -> std::optional<typename B::Conclusion> {
        const auto& state = b.state();
        const int row = row_of(baseline);
        const GivenRows rows(features);
        if (!rows.have(state.dim())) return std::nullopt;
        const auto given = rows.template rows<D>();
        if (row < 0 || row >= given.count || row_in(order) >= given.count) return std::nullopt;
        if (is_catalogue && !is_catalogue_of(state, given)) return std::nullopt;
        return b.decided(given, is_catalogue, row, known, low, high, order);
      },
      "The same for rows and a baseline as a caller gives them; None also where the rows are no array that can be read "
      "as it stands, or the baseline is none of them.");
  type.def(
      "judge",
      [](B& b, const MatrixIn& rows, int action, int baseline, double known, double low, double high) {
        auto& state = b.state();
        Offer<D> offer{.rows = some_rows_of<D>(rows, state.dim())};
        if (action < 0 || action >= offer.rows.count || baseline >= offer.rows.count)
          throw nb::value_error("there is no such row");
        offer.baseline = baseline;
        offer.known = known;
        offer.low = low;
        offer.high = high;
        Record<D> record(state.dim());
        record.action = action;
        record.beta = state.radius();
        record.is_learner = P::judge(state, offer, record);
        return b.evidence(std::move(record));
      },
      nb::arg("rows"), nb::arg("action"), nb::arg("baseline"), nb::arg("known") = 0.0, nb::arg("low") = 0.0,
      nb::arg("high") = INFINITE, "What the gate says of a row, which is not played.");
  type.def(
      "range",
      [](B& b, double radius, const VectorIn& q) {
        const Range range = b.state().range(radius, view_of<D>(q, b.state().dim()));
        return std::pair(range.mean, range.spread);
      },
      nb::arg("radius"), nb::arg("q"), "Mean and spread of <theta, q> over the set in use.");
  type.def("copy", [](const B& b) { return B(b); });
  type.def(
      "conclude",
      [](B& b, const VectorIn& chosen, const VectorIn& today, double optimism, double known, double low, double high,
         int order) {
        auto& state = b.state();
        const int d = state.dim();
        Record<D>& record = b.player.record;
        Offer<D> offer{.rows = {nullptr, 0, d}};
        offer.chosen = view_of<D>(chosen, d).data();
        offer.today = view_of<D>(today, d).data();
        offer.known = known;
        offer.low = low;
        offer.high = high;
        offer.order = order;
        record.action = -1;
        record.optimism = optimism;
        record.beta = state.radius();
        conclude<P>(state, offer, record);
        return b.concluded();
      },
      "The same for a proposal that a set without rows found.");
  type.def(
      "rebook",
      [](B& b, const VectorIn& decided, const VectorIn& displaced, bool was_learner, const VectorIn& played,
         const VectorIn& now_displaced, bool is_learner, double known, double low, double high) {
        const int d = b.state().dim();
        const Booking<D> before{view_of<D>(decided, d), view_of<D>(displaced, d), was_learner};
        const Booking<D> after{view_of<D>(played, d), view_of<D>(now_displaced, d), is_learner};
        const auto& likelihood = b.state().likelihood;
        if (likelihood && !likelihood->can_take_back(before.features, before.displaced, before.is_learner)) {
          throw nb::value_error("no round was booked like this");
        }
        if constexpr (requires { P::remembers_baseline; }) {
          rebook_remembered(b.state(), before, after, low, high);
        } else {
          rebook(b.state(), before, after, known);
        }
      },
      nb::arg("decided"), nb::arg("displaced"), nb::arg("was_learner"), nb::arg("played"), nb::arg("now_displaced"),
      nb::arg("is_learner"), nb::arg("known"), nb::arg("low"), nb::arg("high"),
      "Moves an earlier round in the ledger to what was really played.");
  type.def("teaches", [](B& b, bool is_learner) { return P::teaches(b.state(), is_learner); });
  type.def(
      "learn",
      [](B& b, nb::bytes features, double reward, bool is_learner) {
        const int d = b.state().dim();
        check_size(features.size(), d * static_cast<int>(sizeof(double)));
        const void* x = features.c_str();
        if (!is_aligned(x)) throw nb::value_error("the features of a round must be aligned");
        b.hand_over();
        b.player.learn({static_cast<const double*>(x), 0, is_learner, reward}, Solo{});
        b.kept = nullptr;
      },
      "Learns the reward of a decided round.");
  type.def(
      "enter",
      [](B& b, const MatrixIn& rows, const VectorIn& rewards) {
        const auto given_rows = rows_of<D>(rows, b.state().dim());
        check_size(rewards.size(), given_rows.count);
        b.let_go();
        b.state().catalogue.reset();  // its scores would be those of before
        for (int i = 0; i < given_rows.count; ++i) b.state().absorb(given_rows[i], rewards.data()[i], Solo{});
      },
      "Learns a history, before the first round.");
  type.def(
      "forget",
      [](B& b) {
        b.let_go();
        const LinearSettings settings = b.state().settings;
        b.player.state = typename P::State(b.state().dim(), settings);
      },
      "Begins anew, with the settings as they are.");
  type.def("begin_ledger", [](B& b) { b.state().begin_ledger(); }, "Begins an empty ledger beside what was learned.");
  type.def("assign_ridge", [](B& b, const Ridge<D>& ridge) {
    check_size(static_cast<std::size_t>(ridge.dim()), b.state().dim());
    b.let_go();
    b.state().ridge = ridge;
  });
  type.def(
      "adopt",
      [](B& b, const MatrixIn& rows) {
        Catalogue<D> catalogue;
        catalogue.assign(some_rows_of<D>(rows, b.state().dim()), b.state().scoring());
        b.state().catalogue = std::move(catalogue);
      },
      "Keeps the scores of these rows from round to round.");
  type.def(
      "catalogue_scores",
      [](B& b) {
        const auto& catalogue = catalogue_of(b.state());
        const auto& list = catalogue.list;
        const auto count = static_cast<std::size_t>(catalogue.actions());
        const Scores scores = catalogue.saved_scores();
        return std::tuple(array_of({scores.means.begin(), scores.means.begin() + catalogue.actions()}, {count}),
                          array_of({scores.squares.begin(), scores.squares.begin() + catalogue.actions()}, {count}),
                          list.rows, list.travel, list.reach, list.bar);
      },
      "Means, squares, the short list, and the bounds that hold while it does.");
  type.def_prop_ro(
      "catalogue_missed",
      [](B& b) {
        const auto& list = catalogue_of(b.state()).list;
        return list.empty() || list.is_stale() ? -1 : list.missed;
      },
      "Observations since the short list was made, if its other rows can still catch up; else -1.");
  type.def(
      "restore_scores",
      [](B& b, const VectorIn& means, const VectorIn& squares, std::vector<int> listed, double travel, double reach,
         double bar, int missed) {
        auto& catalogue = catalogue_of(b.state());
        check_size(means.size(), catalogue.actions());
        check_size(squares.size(), catalogue.actions());
        for (const int i : listed) {
          if (i < 0 || i >= catalogue.actions()) throw DamagedState("a short list names rows that are none");
        }
        std::copy_n(means.data(), means.size(), catalogue.scores.means.data());
        std::copy_n(squares.data(), squares.size(), catalogue.scores.squares.data());
        catalogue.list.restore(catalogue.rows(), catalogue.scores, std::move(listed), missed);
        catalogue.list.travel = travel;
        catalogue.list.reach = reach;
        catalogue.list.bar = bar;
        catalogue.asked_beta = -1.0;
      },
      nb::arg("means"), nb::arg("squares"), nb::arg("listed"), nb::arg("travel"), nb::arg("reach"), nb::arg("bar"),
      nb::arg("missed") = -1, "Scores as they were saved, with a short list and what its other rows have missed.");
  type.def(
      "scores",
      [](B& b, const MatrixIn& rows) {
        auto& state = b.state();
        FreshRows<D> fresh;
        fresh.score(state.scoring(), rows_of<D>(rows, state.dim()), Solo{});
        return std::pair(array_of({fresh.scores.means.begin(),
                                   fresh.scores.means.begin() + static_cast<std::ptrdiff_t>(rows.shape(0))},
                                  {rows.shape(0)}),
                         array_of({fresh.scores.squares.begin(),
                                   fresh.scores.squares.begin() + static_cast<std::ptrdiff_t>(rows.shape(0))},
                                  {rows.shape(0)}));
      },
      "Means and squares of rows that are new.");
  type.def(
      "propose",
      [](B& b, const MatrixIn& rows, double beta) -> std::optional<std::pair<int, double>> {
        auto& state = b.state();
        const Proposal best =
            state.fresh.propose(state.settings, state.scoring(), some_rows_of<D>(rows, state.dim()), beta, Solo{});
        if (best.action < 0) return std::nullopt;
        return std::pair(best.action, best.upper);
      },
      "The row with the largest UCB, and that; None where a row is not finite.");
  type.def(
      "pose",
      [](B& b, const VectorIn& proposal, const VectorIn& displaced) {
        auto& state = b.state();
        Record<D> record(state.dim());
        record.beta = state.radius();
        pose(state.ridge, state.ledger, view_of<D>(proposal, state.dim()), view_of<D>(displaced, state.dim()), record);
        return Evidence<D>(std::move(record), nullptr, 0);  // it rests on no set of its own
      },
      "The vectors of a question, for a gate that judges elsewhere.");
  if constexpr (requires { &P::weigh_up; }) {
    type.def("weigh_up", [](B& b, double played, double conserved, double displaced, Evidence<D>& evidence) {
      return P::weigh_up(b.state(), played, conserved, displaced, evidence.record);
    });
    type.def("book",
             [](B& b, const VectorIn& proposal, const VectorIn& displaced, bool is_learner, Evidence<D>& evidence) {
               const int d = b.state().dim();
               Offer<D> offer{.rows = {nullptr, 0, d}};
               offer.chosen = view_of<D>(proposal, d).data();
               offer.today = view_of<D>(displaced, d).data();
               evidence.record.is_learner = is_learner;
               P::book(b.state(), offer, evidence.record);
             });
  }
  type.def("play",
           [](B& b, const CubeIn& features, const MatrixIn& means, const CountsIn& baselines, const VectorIn& draws,
              const CountsIn& delays, bool has_delays, bool is_told, int rewards, double scale, Tally& tally,
              const CountsIn& checkpoints, MatrixOut kept, CountsOut trace, int lanes) {
             check_size(features.shape(2), b.state().dim());
             Block block = block_of(features, means, baselines, draws, delays, has_delays, is_told, rewards, scale);
             const auto& catalogue = b.state().catalogue;
             block.is_catalogue = catalogue.has_value();
             if (catalogue && !(block.is_fixed && catalogue->actions() == block.actions))
               throw nb::value_error("these are not the rows of the catalogue");
             return play(b.player, block, tally, checkpoints, kept, trace, lanes);
           });
  type.def("replay", [](B& b, int evaluator, const CubeIn& features, const CountsIn& baselines, double known,
                        bool is_told, const CountsIn& taken, const MatrixIn& rewards, const FlagsIn& usable,
                        CountsOut chosen, CountsOut fates, VectorOut margins, const FlagsIn& offered, int blocks) {
    // Whole rows of every action, or one context for the blocks of all.
    const auto count = features.shape(0), actions = blocks > 0 ? static_cast<std::size_t>(blocks) : features.shape(1);
    if (blocks > 0 && features.shape(1) != 1) throw nb::value_error("a round must have one context");
    check_size(blocks > 0 ? actions * features.shape(2) : features.shape(2), b.state().dim());
    if (baselines.size() != count || taken.size() != count || usable.size() != count || rewards.shape(0) != count ||
        chosen.size() != count || fates.size() != count || margins.size() != count) {
      throw nb::value_error("the arrays of a log must belong together");
    }
    if (evaluator < 0 || evaluator > static_cast<int>(Evaluator::full)) {
      throw nb::value_error("there is no such evaluator");
    }
    if (rewards.shape(1) < (static_cast<Evaluator>(evaluator) == Evaluator::full ? actions : 1)) {
      throw nb::value_error("a log must have the rewards that its evaluator reads");
    }
    if (offered.size() != 0 && offered.size() != count * actions) {
      throw nb::value_error("the arrays of a log must belong together");
    }
    const auto is_row = [&](std::size_t t, std::int64_t row) {
      if (row < 0 || std::cmp_greater_equal(row, actions)) return false;
      return offered.size() == 0 || offered.data()[t * actions + static_cast<std::size_t>(row)];
    };
    for (std::size_t t = 0; t < count; ++t) {
      if (usable.data()[t] && !(is_row(t, baselines.data()[t]) && is_row(t, taken.data()[t]))) {
        throw nb::value_error("there is no such row");
      }
    }
    const LoggedRows log{static_cast<int>(count),
                         static_cast<int>(actions),
                         b.state().dim(),
                         static_cast<int>(rewards.shape(1)),
                         features.data(),
                         rewards.data(),
                         baselines.data(),
                         taken.data(),
                         usable.data(),
                         known,
                         is_told,
                         offered.size() == 0 ? nullptr : offered.data(),
                         blocks > 0 ? static_cast<int>(features.shape(2)) : 0};
    const nb::gil_scoped_release unlocked;
    replay(b.player, static_cast<Evaluator>(evaluator), log, {chosen.data(), fates.data(), margins.data()});
  });
}

// Every policy of the registry in one dimension.
template <int D>
void bind_linear_policies(nb::module_& module) {
  bind_evidence<D>(module);
  each_linear_policy([&]<template <int> class P>() { bind_linear_policy<P<D>>(module); });
}

}  // namespace surefoot
