// Every policy of the registry, written once over the concept.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/bound_policy.hpp"
#include "bindings/rooms.hpp"
#include "rebook.hpp"
#include "registry.hpp"
#include "replay.hpp"

namespace surefoot {
namespace {

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

bool is_aligned(const double* first) { return reinterpret_cast<std::uintptr_t>(first) % alignof(double) == 0; }

// A row's number, or -1 where it is larger than any.
int row_of(nb::int_ given) {
  int row = -1;
  return nb::try_cast(given, row, false) ? row : -1;
}

template <int D>
void bind_evidence(nb::module_& module) {
  using E = Evidence<D>;
  nb::class_<E> type(module, D == any ? "EvidenceN" : "Evidence4", "What is kept of a decision.");
  type.def_prop_ro("action", [](const E& e) { return e.record.action; });
  type.def_prop_ro("is_learner", [](const E& e) { return e.record.is_learner; });
  type.def_prop_rw(
      "guaranteed", [](const E& e) { return e.record.guaranteed; },
      [](E& e, double value) { e.record.guaranteed = value; });
  type.def_prop_ro("required", [](const E& e) { return e.record.required; });
  type.def_prop_rw(
      "optimism", [](const E& e) { return e.record.optimism; }, [](E& e, double value) { e.record.optimism = value; });
  type.def_prop_ro("beta", [](const E& e) { return e.record.beta; });
  type.def_prop_ro("radius", [](const E& e) { return e.record.radius; });
  type.def_prop_ro("kept", [](const E& e) { return e.record.kept; });
  type.def_prop_ro("owed", [](const E& e) { return e.record.owed; });
  type.def_prop_ro("played", [](const E& e) { return copied(e.record.played); }, nb::rv_policy::move);
  type.def_prop_ro("conserved", [](const E& e) { return copied(e.record.conserved); }, nb::rv_policy::move);
  type.def_prop_ro("displaced", [](const E& e) { return copied(e.record.displaced); }, nb::rv_policy::move);
  type.def_prop_ro("question", [](const E& e) { return copied(e.record.question); }, nb::rv_policy::move);
  type.def_prop_ro(
      "features", [](const E& e) { return bytes_of(e.record.features); }, "The features that were played, as bytes.");
  type.def_ro("observations", &E::observations);
  type.def_prop_ro("center", [](const E& e) { return copied(e.known().center()); }, nb::rv_policy::move);
  type.def_prop_ro("whitener", [](const E& e) { return copied(e.known().whitener()); }, nb::rv_policy::move);
  type.def_prop_ro(
      "split",
      [](const E& e) {
        std::vector<std::tuple<int, double, double, Array>> facts;
        for (const auto& fact : e.record.split)
          facts.emplace_back(fact.kind, fact.level, fact.weight, copied(fact.normal));
        return facts;
      },
      nb::rv_policy::move, "Facts that carry a part of the question: (kind, level, weight, normal).");
  type.def_prop_ro(
      "points",
      [](const E& e) {
        std::vector<Array> points;
        for (const auto& point : e.record.points) points.push_back(copied(point));
        return points;
      },
      nb::rv_policy::move, "Where tangents of the likelihood set touch it, in the order of the split.");
}

Block block_of(const CubeIn& features, const MatrixIn& means, const CountsIn& baselines, const VectorIn& draws,
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

// Plays a block; with `lanes` the actions are shared by so many, with the same bits.
template <class P>
std::int64_t play(Player<P>& player, const Block& block, Tally& tally, const CountsIn& checkpoints, MatrixOut& kept,
                  CountsOut& trace, int lanes) {
  if (kept.shape(0) < checkpoints.size() || kept.shape(1) != static_cast<std::size_t>(tally.size())) {
    throw nb::value_error("`kept` must have a row for each checkpoint and a column for each count");
  }
  if (lanes < 0 || lanes > MOST_LANES) throw nb::value_error("a team must have a lane, and not more than a GPU has");
  if (trace.size() != 0 && trace.size() < static_cast<std::size_t>(block.rounds))
    throw nb::value_error("`trace` is too short");
  const Checkpoints points{checkpoints.data(), static_cast<int>(checkpoints.size()), kept.data()};
  std::int64_t* actions = trace.size() == 0 ? nullptr : trace.data();
  const nb::gil_scoped_release unlocked;
  return lanes == 0 ? play_with(player, block, tally, points, actions, Solo{})
                    : play_with(player, block, tally, points, actions, Emulated{lanes});
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
                              copied(set.gone.square));
      },
      "The likelihood set: rows, successes, failures, allowed, low, scale, and the parabolas' three parts; or None.");
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
        auto& state = b.state();
        const auto given = some_rows_of<D>(rows, state.dim());
        if (baseline >= given.count || order >= given.count) throw nb::value_error("there is no such row");
        if (is_catalogue && !is_catalogue_of(state, given)) {
          throw nb::value_error("these are not the rows of the catalogue");
        }
        return b.decided(given, is_catalogue, baseline, known, low, high, order);
      },
      nb::arg("rows"), nb::arg("is_catalogue"), nb::arg("baseline"), nb::arg("known"), nb::arg("low"), nb::arg("high"),
      nb::arg("order"),
      "One round: the proposal's row (for row r that breaks the bound D, -1 - r), whether it is played, the features "
      "of what is played as bytes, whether its reward will be learned, whether all was refuted, and the evidence.");
  type.def(
      "decide_given",
      [](B& b, nb::handle features, bool is_catalogue, nb::int_ baseline, double known, double low, double high,
         int order) -> std::optional<typename B::Conclusion> {
        auto& state = b.state();
        MatrixIn rows;
        const int row = row_of(baseline);
        if (!nb::try_cast(features, rows, false) || !is_aligned(rows.data()) || rows.shape(0) == 0 ||
            rows.shape(1) != static_cast<std::size_t>(state.dim())) {
          return std::nullopt;
        }
        const auto given = rows_of<D>(rows, state.dim());
        if (row < 0 || row >= given.count || order >= given.count) return std::nullopt;
        if (is_catalogue && !is_catalogue_of(state, given)) return std::nullopt;
        return b.decided(given, is_catalogue, row, known, low, high, order);
      },
      "The same for rows and a baseline as a caller gives them; None, and nothing is changed, where the rows are no "
      "array that can be read as it stands, or the baseline is none of them.");
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
        return b.evidence(record);
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
        Vector<D> x(d);
        std::memcpy(x.data(), features.c_str(), features.size());
        b.hand_over();
        b.player.learn({x.data(), 0, is_learner, reward}, Solo{});
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
  type.def("propose", [](B& b, const MatrixIn& rows, double beta) {
    auto& state = b.state();
    const Proposal found =
        state.fresh.propose(state.settings, state.scoring(), some_rows_of<D>(rows, state.dim()), beta, Solo{});
    return std::pair(found.action, found.upper);
  });
  type.def(
      "pose",
      [](B& b, const VectorIn& proposal, const VectorIn& displaced) {
        auto& state = b.state();
        Record<D> record(state.dim());
        record.beta = state.radius();
        pose(state.ridge, state.ledger, view_of<D>(proposal, state.dim()), view_of<D>(displaced, state.dim()), record);
        return Evidence<D>{std::move(record), nullptr, 0};  // it rests on no set of its own
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
                        CountsOut chosen, CountsOut fates, VectorOut margins, const FlagsIn& offered) {
    const auto count = features.shape(0);
    check_size(features.shape(2), b.state().dim());
    if (baselines.size() != count || taken.size() != count || usable.size() != count || rewards.shape(0) != count ||
        chosen.size() != count || fates.size() != count || margins.size() != count) {
      throw nb::value_error("the arrays of a log must belong together");
    }
    if (evaluator < 0 || evaluator > static_cast<int>(Evaluator::full)) {
      throw nb::value_error("there is no such evaluator");
    }
    if (rewards.shape(1) < (static_cast<Evaluator>(evaluator) == Evaluator::full ? features.shape(1) : 1)) {
      throw nb::value_error("a log must have the rewards that its evaluator reads");
    }
    if (offered.size() != 0 && offered.size() != count * features.shape(1)) {
      throw nb::value_error("the arrays of a log must belong together");
    }
    const auto is_row = [&](std::size_t t, std::int64_t row) {
      if (row < 0 || static_cast<std::size_t>(row) >= features.shape(1)) return false;
      return offered.size() == 0 || offered.data()[t * features.shape(1) + static_cast<std::size_t>(row)];
    };
    for (std::size_t t = 0; t < count; ++t) {
      if (usable.data()[t] && !(is_row(t, baselines.data()[t]) && is_row(t, taken.data()[t]))) {
        throw nb::value_error("there is no such row");
      }
    }
    const LoggedRows log{static_cast<int>(count),
                         static_cast<int>(features.shape(1)),
                         static_cast<int>(features.shape(2)),
                         static_cast<int>(rewards.shape(1)),
                         features.data(),
                         rewards.data(),
                         baselines.data(),
                         taken.data(),
                         usable.data(),
                         known,
                         is_told,
                         offered.size() == 0 ? nullptr : offered.data()};
    const nb::gil_scoped_release unlocked;
    replay(b.player, static_cast<Evaluator>(evaluator), log, {chosen.data(), fates.data(), margins.data()});
  });
}

template <class P>
void bind_arm_policy(nb::module_& module) {
  using B = Player<P>;
  nb::class_<B> type(module, std::string(P::name).c_str());
  type.def(
      "__init__",
      [](B* b, int arms, double noise, double alpha, double delta, double known, const std::vector<double>& bounds) {
        if (arms < 1) throw nb::value_error("there must be at least one arm");
        const bool is_bounded = !bounds.empty();
        if (is_bounded && !(bounds.size() == 2 && bounds[0] < bounds[1])) {
          throw nb::value_error("bounds must be a low and a high number");
        }
        new (b) B{ArmState(arms, {.noise = noise, .alpha = alpha, .delta = delta, .known = known}), {}, {}};
        if (is_bounded) b->state.likelihood.emplace(arms, bounds[0], bounds[1], delta);
      },
      nb::arg("arms"), nb::arg("noise"), nb::arg("alpha"), nb::arg("delta"), nb::arg("known"),
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
  bind_evidence<4>(module);
  bind_evidence<any>(module);
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
  each_linear_policy([&]<template <int> class P>() {
    bind_linear_policy<P<4>>(module);
    bind_linear_policy<P<any>>(module);
  });
  each_arm_policy([&]<class P>() { bind_arm_policy<P>(module); });
  module.attr("FREE") = FREE;
  module.attr("HOLD") = HOLD;
  module.attr("ALARMED") = ALARMED;
  module.attr("HELD_OUT") = HELD_OUT;
  module.attr("TOO_HIGH") = TOO_HIGH;
  module.def("reward_of", [](int kind, double scale, double mean, double draw) {
    return reward_of(static_cast<Rewards>(kind), scale, mean, draw);
  });
}

}  // namespace surefoot
