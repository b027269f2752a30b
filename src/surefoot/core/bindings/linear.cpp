// Ridge, ledger, memory and the search, with names.
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
#include "bindings/rooms.hpp"
#include "dual.hpp"
#include "ledger.hpp"
#include "memory.hpp"
#include "radius.hpp"
#include "scores.hpp"
#include "search.hpp"

namespace surefoot {
namespace {

std::string named(const char* name, int dim) { return std::string(name) + (dim == any ? "N" : std::to_string(dim)); }

template <class State>
void bind_archive(nb::class_<State>& type) {
  type.def("save", [](State& state) { return copied(saved(state)); }, "All numbers, in the order of saved states.");
  type.def("load", [](State& state, const VectorIn& saved) { restore(state, numbers(saved)); }, nb::arg("saved"));
  type.def("copy", [](const State& state) { return State(state); });
  type.def(
      "assign",
      [](State& state, const State& other) {
        check_size(static_cast<std::size_t>(other.dim()), state.dim());
        state = other;
      },
      nb::arg("other"));
}

template <int D>
void bind_ridge(nb::module_& module) {
  using R = Ridge<D>;
  nb::class_<R> type(module, named("Ridge", D).c_str(), "Everything the observations say of theta.");
  type.def(nb::init<int, double>(), nb::arg("dim"), nb::arg("ridge"));
  bind_archive(type);
  type.def_prop_ro("dim", &R::dim);
  type.def_prop_ro("count", [](const R& r) { return static_cast<long long>(r.count); });
  type.def_prop_ro("log_det", &R::log_det);
  type.def_prop_ro("theta", [](const R& r) { return copied(r.theta); }, nb::rv_policy::move);
  type.def_prop_ro("whitener", [](const R& r) { return copied(r.whitener); }, nb::rv_policy::move);
  type.def_prop_ro("step", [](const R& r) { return copied(r.step); }, nb::rv_policy::move);
  type.def_prop_ro(
      "gram",
      [](const R& r) {
        R copy = r;
        return copied(copy.whole_gram());
      },
      nb::rv_policy::move);
  type.def_prop_ro("moment", [](const R& r) { return total_of(r.moment); }, nb::rv_policy::move);
  type.def_ro("ridge", &R::ridge);
  type.def_rw("drift", &R::drift);
  type.def_rw("fresh_drift", &R::fresh_drift);
  type.def_ro("condition", &R::condition);
  type.def_ro("energy", &R::energy);
  type.def_ro("surprises", &R::surprises);
  type.def_prop_ro("waiting", [](const R& r) { return r.gram.waiting; });
  type.def_prop_rw(
      "favourite", [](const R& r) { return r.favourite; }, [](R& r, int row) { r.favourite = row < 0 ? 0 : row; });
  type.def_rw("age", &R::age);
  type.def(
      "absorb",
      [](R& r, const VectorIn& x, double reward) {
        const auto change = r.absorb(view_of<D>(x, r.dim()), reward);
        return std::pair(change.gain, change.error);
      },
      nb::arg("x"), nb::arg("reward"),
      "Takes in one observation: for any q, <theta, q> grows by error <step, q>, and "
      "||q||^2 in V^-1 falls by gain <step, q>^2; returns (gain, error).");
  type.def("refresh", [](R& r) { return r.refresh(); });
  type.def("predict",
           [](const R& r, const VectorIn& x) { return dot(r.theta.data(), view_of<D>(x, r.dim()).data(), r.dim()); });
  type.def("width", [](const R& r, const VectorIn& q) { return r.width(view_of<D>(q, r.dim())); });
  type.def("is_sound", &R::is_sound, nb::arg("ridge"));
  type.def("radius", [](const R& r, const LinearSettings& s) { return radius_of(s, r); });
  type.def("guarded_radius", [](const R& r, double beta) { return guarded_radius(r, beta); });
  type.def(
      "choose_dual",
      [](R& r, const LinearSettings& s, const VectorIn& q, const std::vector<double>& shares) {
        Ellipsoid<D> chosen(r.dim());
        const double radius = choose_dual(s, r, view_of<D>(q, r.dim()), chosen, shares);
        auto set = std::tuple(radius, copied(chosen.center), copied(chosen.whitener));
        return radius < 0.0 ? std::nullopt : std::optional(std::move(set));
      },
      nb::arg("settings"), nb::arg("q"), nb::arg("shares") = std::vector<double>(std::begin(SHARES), std::end(SHARES)),
      "The dual set that bounds <theta, q> best: radius, center, whitener; None where the data contradict it.");
  type.def(
      "learn_rows",
      [](R& r, const CubeIn& features, const CountsIn& actions, const VectorIn& rewards, const MatrixOut& predicted) {
        const int d = r.dim(), count = static_cast<int>(features.shape(1));
        check_size(features.shape(2), d);
        if (actions.size() != features.shape(0) || rewards.size() != features.shape(0) ||
            predicted.shape(0) != features.shape(0) || predicted.shape(1) != features.shape(1)) {
          throw nb::value_error("the arrays of a log must belong together");
        }
        check_rows(actions, count);
        r.looks_closely = false;  // nobody asks a model of rewards how small `surprises` can be shown to be
        for (std::size_t t = 0; t < features.shape(0); ++t) {
          const double* rows = features.data() + t * features.shape(1) * features.shape(2);
          for (int a = 0; a < count; ++a)
            predicted.data()[t * predicted.shape(1) + static_cast<std::size_t>(a)] =
                dot(r.theta.data(), rows + static_cast<std::ptrdiff_t>(a) * d, d);
          r.absorb(view<D>(rows + actions.data()[t] * d, d), rewards.data()[t]);
        }
      },
      "Predicts every action's reward from the rows before it, then learns the row: no prediction has seen its "
      "reward.");
}

template <int D>
void bind_ledger(nb::module_& module) {
  using L = Ledger<D>;
  nb::class_<L> type(module, named("Ledger", D).c_str(), "What has been played.");
  type.def(nb::init<int>(), nb::arg("dim"));
  bind_archive(type);
  type.def_prop_ro("learner_rounds", [](const L& l) { return static_cast<long long>(l.learner_rounds); });
  type.def_prop_ro("baseline_rounds", [](const L& l) { return static_cast<long long>(l.baseline_rounds); });
  type.def_prop_ro("conserved_reward", [](const L& l) { return l.conserved_reward.total(); });
  type.def_prop_ro("displaced_reward", [](const L& l) { return l.displaced_reward.total(); });
  type.def_prop_ro("played", [](const L& l) { return total_of(l.played); }, nb::rv_policy::move);
  type.def_prop_ro("displaced", [](const L& l) { return total_of(l.displaced); }, nb::rv_policy::move);
  type.def_prop_ro("conserved", [](const L& l) { return total_of(l.conserved); }, nb::rv_policy::move);
  type.def("book_learner", [](L& l, const VectorIn& played, const VectorIn& displaced, double known) {
    const int d = l.played.value.size();
    l.book_learner(view_of<D>(played, d), view_of<D>(displaced, d), known);
  });
  type.def("book_baseline", [](L& l, const VectorIn& conserved, double known) {
    l.book_baseline(view_of<D>(conserved, l.played.value.size()), known);
  });
}

template <int D>
void bind_memory(nb::module_& module) {
  using M = Memory<D>;
  nb::class_<M> type(module, named("Memory", D).c_str(), "What a policy remembers beside ridge and ledger.");
  type.def(nb::init<int>(), nb::arg("dim"));
  bind_archive(type);
  type.def_ro("low", &M::low);
  type.def_ro("high", &M::high);
  type.def_rw("refuted", &M::refuted);
  type.def_rw("debt", &M::debt);
  type.def_rw("rounds_before", &M::rounds_before);
  type.def_ro("moved", &M::moved);
  type.def_ro("proved", &M::proved);
  type.def_ro("proved_round", &M::proved_round);
  type.def_prop_ro("proved_question", [](const M& m) { return copied(m.proved_question); }, nb::rv_policy::move);
  type.def_ro("earned_rounds", &M::earned_rounds);
  type.def_prop_ro("kept_low", [](const M& m) { return m.kept_low.total(); });
  type.def_prop_ro("kept_high", [](const M& m) { return m.kept_high.total(); });
  type.def_prop_ro("owed_low", [](const M& m) { return m.owed_low.total(); });
  type.def_prop_ro("owed_high", [](const M& m) { return m.owed_high.total(); });
}

template <class E>
void bind_choice(nb::class_<LinearSettings>& type, const char* name, E LinearSettings::* member) {
  type.def_prop_rw(
      name, [member](const LinearSettings& s) { return static_cast<int>(s.*member); },
      [member](LinearSettings& s, int code) {
        if (code < 0 || code > static_cast<int>(E::last)) throw nb::value_error("there is no such choice");
        s.*member = static_cast<E>(code);
      });
}

void bind_settings(const nb::module_& module) {
  nb::class_<LinearSettings> type(module, "LinearSettings", "What a linear policy was told.");
  type.def(nb::init<>());
  type.def("copy", [](const LinearSettings& s) { return s; });
  type.def(
      "raw", [](const LinearSettings& s) { return nb::bytes(reinterpret_cast<const char*>(&s), sizeof s); },
      "Its bytes, which a GPU reads as the same struct.");
  type.def_rw("noise", &LinearSettings::noise);
  type.def_rw("delta", &LinearSettings::delta);
  type.def_rw("ridge", &LinearSettings::ridge);
  type.def_rw("theta_bound", &LinearSettings::theta_bound);
  type.def_rw("feature_bound", &LinearSettings::feature_bound);
  type.def_rw("alpha", &LinearSettings::alpha);
  type.def_rw("reward_floor", &LinearSettings::reward_floor);
  type.def_rw("misfit", &LinearSettings::misfit);
  type.def_rw("range_low", &LinearSettings::range_low);
  type.def_rw("range_high", &LinearSettings::range_high);
  type.def_rw("sum_delta", &LinearSettings::sum_delta);
  type.def_rw("reward_low", &LinearSettings::reward_low);
  type.def_rw("reward_high", &LinearSettings::reward_high);
  type.def_rw("likelihood_delta", &LinearSettings::likelihood_delta);
  type.def_rw("amount", &LinearSettings::amount);
  type.def_rw("watchful", &LinearSettings::watchful);
  type.def_rw("exploration", &LinearSettings::exploration);
  bind_choice(type, "radius", &LinearSettings::radius);
  bind_choice(type, "constraint", &LinearSettings::constraint);
  bind_choice(type, "gate", &LinearSettings::gate);
  bind_choice(type, "optimism", &LinearSettings::optimism);
}

// A fact in a split, as Python sees it: (kind, level, weight, normal).
using PlainFact = std::tuple<int, double, double, Array>;

// The search over one ellipsoid, the ball of radius `bound`, actions with means in [low, high] and linear facts.
std::tuple<double, double, bool, std::vector<PlainFact>, Array> search_for(
    const VectorIn& center, const MatrixIn& whitener, double radius, double bound, const VectorIn& q,
    const MatrixIn& rows, double low, double high, const MatrixIn& normals, const VectorIn& levels,
    const std::vector<std::tuple<int, double, double, VectorIn>>& start, int room, double target, int budget) {
  const int d = static_cast<int>(center.size());
  check_size(q.size(), d);
  check_size(whitener.shape(0), d);
  check_size(whitener.shape(1), d);
  check_size(normals.shape(1), d);
  check_size(normals.shape(0), static_cast<int>(levels.size()));
  if (d < 1 || room < 1) throw nb::value_error("a search needs a dimension, and room for a fact");
  Ellipsoid<any> set(d);
  std::copy_n(center.data(), d, set.center.data());
  for (int i = 0; i < d; ++i) std::copy_n(whitener.data() + static_cast<std::ptrdiff_t>(i) * d, d, set.whitener.row(i));
  const Region<any> region{set.center, set.whitener, radius, bound};
  Given<any> facts(static_cast<int>(levels.size()), d);
  std::copy_n(normals.data(), normals.size(), facts.normals.data());
  std::copy_n(levels.data(), levels.size(), facts.levels.data());
  Facts<any> work(d, room);
  for (const auto& [kind, level, weight, normal] : start) {
    check_size(normal.size(), d);
    if (work.count == room) break;
    Fact<any>& fact = work[work.count++];
    fact.kind = kind;
    fact.level = level;
    fact.weight = weight;
    std::copy_n(normal.data(), d, fact.normal.data());
  }
  Whitened space(d, room);
  const Sources<any> from{rows_of<any>(rows, d), low, high, facts};
  const Found found = search(region, q.data(), from, work, target, budget, space);
  std::vector<PlainFact> split;
  split.reserve(static_cast<std::size_t>(work.count));
  for (int k = 0; k < work.count; ++k)
    split.emplace_back(work[k].kind, work[k].level, work[k].weight, copied(work[k].normal));
  return {found.value, found.error, found.status == Status::refuted, std::move(split), copied(space.theta)};
}

// The first round with a row that is longer than the bound or not finite.
template <int D>
std::optional<std::int64_t> first_long(const CubeIn& features, double bound) {
  const auto size = features.shape(1) * features.shape(2);
  for (std::size_t t = 0; t < features.shape(0); ++t) {
    const Rows<D> rows{features.data() + t * size, static_cast<int>(features.shape(1)),
                       static_cast<int>(features.shape(2))};
    if (first_bad_row(rows, bound) >= 0) return static_cast<std::int64_t>(t);
  }
  return std::nullopt;
}

}  // namespace

void bind_linear(nb::module_& module) {
  bind_settings(module);
  in_each_dimension([&]<int D>() {
    bind_ridge<D>(module);
    bind_ledger<D>(module);
    bind_memory<D>(module);
  });
  module.def("search", &search_for, nb::arg("center"), nb::arg("whitener"), nb::arg("radius"), nb::arg("bound"),
             nb::arg("q"), nb::arg("rows"), nb::arg("low"), nb::arg("high"), nb::arg("normals"), nb::arg("levels"),
             nb::arg("start"), nb::arg("room"), nb::arg("target"), nb::arg("budget"));
  module.def(
      "first_bad_row",
      [](const MatrixIn& rows, double bound) -> std::optional<int> {
        const int bad = first_bad_row(rows_of<any>(rows, static_cast<int>(rows.shape(1))), bound);
        return bad < 0 ? std::nullopt : std::optional(bad);
      },
      nb::arg("rows"), nb::arg("bound"), "The first row that is longer than the bound or not finite.");
  module.def(
      "first_long",
      [](const CubeIn& features, double bound) {
        return features.shape(2) == 4 ? first_long<4>(features, bound) : first_long<any>(features, bound);
      },
      nb::arg("features"), nb::arg("bound"), "The first round with a row that is longer than the bound or not finite.");
  module.def("ball_spread",
             [](double bound, const VectorIn& q) { return ball_spread(bound, q.data(), static_cast<int>(q.size())); });
  module.def("careful_range", [](const VectorIn& center, const MatrixIn& whitener, double radius, const VectorIn& q) {
    const int d = static_cast<int>(q.size());
    check_size(center.size(), d);
    check_size(whitener.size(), d * d);
    const Range range = careful_range(center.data(), whitener.data(), radius, q.data(), d);
    return std::pair(range.mean, range.spread);
  });
  module.def("paper_radius",
             [](double observations, int dim, const LinearSettings& s) { return paper_radius(observations, dim, s); });
  module.def("two_sum", [](double x, double y) {
    const auto r = two_sum(x, y);
    return std::pair(r.value, r.lost);
  });
  module.def("two_product", [](double x, double y) {
    const auto r = two_product(x, y);
    return std::pair(r.value, r.lost);
  });
  nb::list words;
  for (const auto text : FACT_WORDS) words.append(nb::str(text.data(), text.size()));
  module.attr("FACT_WORDS") = nb::tuple(words);
  module.attr("SHARES") = nb::tuple(nb::cast(std::vector<double>(std::begin(SHARES), std::end(SHARES))));
  module.attr("GIVEN") = static_cast<int>(given);
  module.attr("TANGENT") = static_cast<int>(tangent);
  module.attr("OTHER") = static_cast<int>(other);
  module.attr("LIKELIHOOD") = static_cast<int>(likelihood);
  const nb::exception<DamagedState> damaged(module, "DamagedState", PyExc_ValueError);
}

}  // namespace surefoot
