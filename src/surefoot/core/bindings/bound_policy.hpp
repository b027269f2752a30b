// A policy that Python holds, and what is kept of its decisions.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "engine.hpp"
#include "linear_state.hpp"

namespace surefoot {

// Sets and records that nobody needs any more: large ones are costly to come by.
template <int D>
struct Spares {
  static constexpr std::size_t MOST = 4;
  std::vector<Ellipsoid<D>> sets;
  std::vector<Record<D>> records;

  void keep(Ellipsoid<D>&& set) {
    if (D == any && sets.size() < MOST) sets.push_back(std::move(set));
  }
  void keep(Record<D>&& record) {
    if (D == any && records.size() < MOST) records.push_back(std::move(record));
  }
  // With the numbers of their last use.
  Ellipsoid<D> set(int dim) { return one_of(sets, dim); }
  Record<D> record(int dim) { return one_of(records, dim); }

 private:
  template <class Spare>
  static Spare one_of(std::vector<Spare>& spares, int dim) {
    if (spares.empty()) return Spare(dim);
    Spare found = std::move(spares.back());
    spares.pop_back();
    return found;
  }
};

// The set that decisions rest on: the live one until something is learned, then what it was.
template <int D>
struct FrozenSet {
  const Ridge<D>* live;
  std::optional<Ellipsoid<D>> own;
  std::shared_ptr<Spares<D>> spares;

  FrozenSet(const Ridge<D>* live_, std::optional<Ellipsoid<D>> own_, std::shared_ptr<Spares<D>> spares_ = nullptr)
      : live(live_), own(std::move(own_)), spares(std::move(spares_)) {}
  FrozenSet(const FrozenSet&) = delete;
  ~FrozenSet() {
    if (own && spares) spares->keep(std::move(*own));
  }

  const Vector<D>& center() const { return own ? own->center : live->theta; }
  const Matrix<D>& whitener() const { return own ? own->whitener : live->whitener; }
};

// What is kept of a decision: the gate's record, and the set that it rested on, shared until something is learned.
template <int D>
struct Evidence {
  Record<D> record;
  std::shared_ptr<FrozenSet<D>> set;
  long long observations;
  std::shared_ptr<Spares<D>> spares;

  Evidence(Record<D>&& record_, std::shared_ptr<FrozenSet<D>> set_, long long observations_,
           std::shared_ptr<Spares<D>> spares_ = nullptr)
      : record(std::move(record_)), set(std::move(set_)), observations(observations_), spares(std::move(spares_)) {}
  Evidence(Evidence&&) = default;
  ~Evidence() {
    if (spares) spares->keep(std::move(record));
  }

  const FrozenSet<D>& known() const {
    if (!set) throw nb::value_error("this decision rests on no ellipsoid");
    return *set;
  }
};

template <int D>
nb::bytes bytes_of(const Vector<D>& x) {
  return nb::bytes(reinterpret_cast<const char*>(x.data()), static_cast<std::size_t>(x.size()) * sizeof(double));
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
        facts.reserve(e.record.split.size());
        for (const auto& fact : e.record.split)
          facts.emplace_back(fact.kind, fact.level, fact.weight, copied(fact.normal));
        return facts;
      },
      nb::rv_policy::move, "Facts that carry a part of the question: (kind, level, weight, normal).");
  type.def_prop_ro(
      "points",
      [](const E& e) {
        std::vector<Array> points;
        points.reserve(e.record.points.size());
        for (const auto& point : e.record.points) points.push_back(copied(point));
        return points;
      },
      nb::rv_policy::move, "Where tangents of the likelihood set touch it, in the order of the split.");
}

template <class P>
struct Bound {
  static constexpr int D = P::Dim;
  Player<P> player;
  std::shared_ptr<FrozenSet<D>> frozen;
  std::shared_ptr<FrozenSet<D>> kept;  // until the observation has read it
  std::shared_ptr<Spares<D>> spares = std::make_shared<Spares<D>>();

  Bound(int dim, const LinearSettings& settings)
      : player{typename P::State(dim, settings), typename P::Record(dim), {}} {}
  // Whoever looks at the other one's set goes on doing so.
  Bound(const Bound& other) : player(other.player) {}
  ~Bound() { let_go(); }

  typename P::State& state() { return player.state; }

  // The set as it stands; the dual one is chosen anew for every question.
  std::shared_ptr<FrozenSet<D>> freeze() {
    auto& s = state();
    if (s.is_ball()) return nullptr;
    if (s.settings.radius == Radius::dual) return std::make_shared<FrozenSet<D>>(nullptr, s.memory.set);
    if (!frozen) frozen = std::make_shared<FrozenSet<D>>(&s.ridge, std::nullopt, spares);
    return frozen;
  }

  // Before the live set changes: whoever still looks at it keeps it as it was.
  void let_go() {
    if (frozen && frozen.use_count() > 1) {
      const auto& ridge = state().ridge;
      frozen->own.emplace(spares->set(ridge.dim()));
      frozen->own->center = ridge.theta;
      frozen->own->whitener = ridge.whitener;
    }
    frozen = nullptr;
  }

  // The same before an observation, which writes M anew in any case: the old one is handed over, not copied.
  void hand_over() {
    if constexpr (D == any) {
      if (frozen && frozen.use_count() > 1) {
        auto& ridge = state().ridge;
        frozen->own.emplace(spares->set(ridge.dim()));
        frozen->own->center = ridge.theta;
        std::swap(frozen->own->whitener, ridge.whitener);
        ridge.handed_over = &frozen->own->whitener;
        kept = std::move(frozen);
        return;
      }
    }
    let_go();
  }

  // Made where Python keeps it, because to move one takes as long as to fill it.
  nb::object evidence(Record<D>&& record) {
    const long long observations = state().is_ball() ? 0 : static_cast<long long>(state().ridge.count);
    nb::object made = nb::inst_alloc(nb::type<Evidence<D>>());
    new (nb::inst_ptr<Evidence<D>>(made)) Evidence<D>(std::move(record), freeze(), observations, spares);
    nb::inst_mark_ready(made);
    return made;
  }

  // What Python needs of every round at once: each further question would cost a call.
  using Conclusion = std::tuple<int, bool, nb::bytes, bool, bool, nb::object>;

  // One round over rows; none, and nothing is booked, where one of them breaks the bound D.
  std::optional<Conclusion> decided(Rows<D> rows, bool is_catalogue, int baseline, double known, double low,
                                    double high, int order) {
    Offer<D> offer{.rows = rows};
    offer.is_catalogue = is_catalogue;
    offer.baseline = baseline;
    offer.known = known;
    offer.low = low;
    offer.high = high;
    offer.order = order;
    decide<P>(state(), offer, player.record, Solo{});
    if (player.record.action < 0) return std::nullopt;
    return concluded();
  }

  // The record is handed over: the next round writes all of its own.
  Conclusion concluded() {
    Record<D> record = std::exchange(player.record, spares->record(state().dim()));
    return {record.action,
            record.is_learner,
            bytes_of(record.features),
            P::teaches(state(), record.is_learner),
            state().memory.refuted > 0.0,
            evidence(std::move(record))};
  }
};

}  // namespace surefoot
