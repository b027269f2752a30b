// The guard: its settings, banks and lifts by name, its step, and many runs of it.
#include "guard.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bindings/rooms.hpp"
#include "bindings/saved.hpp"
#include "guard_runs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace surefoot {
namespace {

// The numbers of structs, one after the other.
template <Saved Struct>
nb::bytes bytes_of(const std::vector<Struct>& structs) {
  return nb::bytes(structs.data(), structs.size() * sizeof(Struct));
}

// Raises ValueError if they are not so many.
template <Saved Struct>
std::vector<Struct> read_bytes(const char* saved, std::size_t size, std::size_t count, const char* what) {
  if (size % sizeof(double) != 0) throw nb::value_error((std::string(what) + " must hold whole numbers").c_str());
  check_size(size / sizeof(double), count * NumbersOf<Struct>().size(), what);
  std::vector<Struct> structs(count);
  std::memcpy(structs.data(), saved, count * sizeof(Struct));
  return structs;
}

// A round as it is kept until its rewards come: its share, then of each metric what it is settled by.
struct Record {
  double share;
  std::vector<Booked> booked;

  Record(const nb::bytes& kept, std::size_t metrics) {
    const std::size_t first = std::min(kept.size(), sizeof(double));
    booked = read_bytes<Booked>(kept.c_str() + first, kept.size() - first, metrics, "What a round is settled by");
    if (first == sizeof(double)) std::memcpy(&share, kept.c_str(), first);
  }
};

// The settings, banks and lifts of one guard.
struct GuardBooks {
  GuardSettings settings;
  std::vector<Bank> banks;
  std::vector<Lift> lifts;

  explicit GuardBooks(const GuardSettings& given) : settings(given), lifts(given.metrics.size()) {
    for (const MetricSettings& metric : settings.metrics) banks.push_back(new_bank(metric));
  }

  double share() const { return share_of(settings.metrics, banks, settings.ramp, settings.largest_share); }

  nb::bytes plan(double share, const std::optional<std::vector<double>>& predicted) const {
    if (predicted) check_size(predicted->size(), banks.size(), "Predictions");
    std::vector<double> numbers(1 + banks.size() * NumbersOf<Booked>().size());
    std::vector<Booked> booked(banks.size());
    plan_round(settings.metrics, banks, share, predicted ? std::span<const double>(*predicted) : std::span<double>(),
               booked);
    numbers[0] = share;
    std::memcpy(&numbers[1], booked.data(), booked.size() * sizeof(Booked));
    return nb::bytes(numbers.data(), numbers.size() * sizeof(double));
  }

  nb::bytes charge(double share, bool is_learner) {
    nb::bytes before = bytes_of(banks);
    charge_round(settings.metrics, banks, share, is_learner);
    return before;
  }

  void enter(const nb::bytes& kept, bool is_learner, const std::vector<double>& rewards, bool is_late) {
    const Record record(kept, banks.size());
    check_size(rewards.size(), banks.size(), "Rewards");
    enter_lifts(settings.metrics, lifts, record.share, record.booked, is_learner, rewards, is_late);
    enter_round(settings.metrics, banks, record.share, record.booked, is_learner, rewards, is_late);
  }

  std::vector<std::pair<double, double>> intervals() const {
    std::vector<std::pair<double, double>> found;
    for (std::size_t i = 0; i < lifts.size(); ++i) {
      const Interval interval = interval_of(lifts[i], settings.metrics[i].low);
      found.emplace_back(interval.low, interval.high);
    }
    return found;
  }
};

// Raises ValueError for a ramp that there is not.
GuardSettings settings_of(const std::vector<MetricSettings>& metrics, const std::string& ramp, double largest_share) {
  static const std::map<std::string, Ramp> ramps{
      {"earn", Ramp::earn}, {"save", Ramp::save}, {"free", Ramp::free}, {"gate", Ramp::gate}};
  const auto found = ramps.find(ramp);
  if (found == ramps.end()) throw nb::value_error(("There is no ramp " + ramp).c_str());
  return {metrics, found->second, largest_share};
}

Array held_by_runs(const GuardRuns& all) {
  std::vector<double> held;
  held.reserve(all.banks.size());
  for (std::size_t i = 0; i < all.banks.size(); ++i) {
    held.push_back(all.settings.metrics[i % all.metrics()].is_played ? all.banks[i].played : all.banks[i].carried);
  }
  return array_of(std::move(held), {all.runs, all.metrics()});
}

void share_runs(GuardRuns& all, const VectorOut& shares) {
  check_size(shares.size(), all.runs, "Shares");
  const nb::gil_scoped_release released;
  all.share({shares.data(), shares.size()});
}

void step_runs(GuardRuns& all, const VectorIn& shares, const FlagsIn& is_learner, const MatrixIn& rewards) {
  check_size(shares.size(), all.runs, "Shares");
  check_size(is_learner.size(), all.runs, "Sides");
  check_size(rewards.size(), all.banks.size(), "Rewards");
  const nb::gil_scoped_release released;
  all.step({shares.data(), shares.size()}, {is_learner.data(), is_learner.size()}, {rewards.data(), rewards.size()});
}

void bind_bank(nb::module_& module) {
  module.attr("RATE_GRID") = nb::tuple(nb::cast(std::vector<double>(RATE_GRID.begin(), RATE_GRID.end())));
  nb::class_<MetricSettings>(module, "MetricSettings", "What is promised of one metric, in units of its highest.")
      .def(nb::init<double, double, double, double, double, double, bool, double>(), nb::kw_only(), "sign"_a, "alpha"_a,
           "low"_a, "most_baseline"_a, "event"_a, "reserve"_a, "is_played"_a, "coin_event"_a)
      .def_rw("sign", &MetricSettings::sign)
      .def_rw("alpha", &MetricSettings::alpha)
      .def_rw("low", &MetricSettings::low)
      .def_rw("most_baseline", &MetricSettings::most_baseline)
      .def_rw("event", &MetricSettings::event)
      .def_rw("reserve", &MetricSettings::reserve)
      .def_rw("is_played", &MetricSettings::is_played)
      .def_rw("coin_event", &MetricSettings::coin_event);
  nb::class_<SideEstimate>(module, "SideEstimate", "What is estimated of one side's rewards.")
      .def_rw("count", &SideEstimate::count)
      .def_rw("mean", &SideEstimate::mean)
      .def_rw("spread", &SideEstimate::spread)
      .def_rw("rewards", &SideEstimate::rewards)
      .def_rw("overall", &SideEstimate::overall);
  nb::class_<Bank>(module, "Bank", "What is proved of the slack of one metric.")
      .def(nb::init<>(), "A bank of zeros, to be loaded.")
      .def_static("new", &new_bank, "settings"_a, "A bank with nothing in it but the reserve.")
      .def_rw("bound", &Bank::bound)
      .def_rw("carried", &Bank::carried)
      .def_rw("owed", &Bank::owed)
      .def_rw("entered", &Bank::entered)
      .def_rw("coins", &Bank::coins)
      .def_rw("played", &Bank::played)
      .def_rw("learner", &Bank::learner)
      .def_rw("baseline", &Bank::baseline)
      .def_prop_ro("wealth",
                   [](const Bank& bank) { return std::vector<double>(bank.wealth.begin(), bank.wealth.end()); })
      .def("save", &save<Bank>, "Its numbers.")
      .def("load", &load<Bank>, "saved"_a, "Take back what `save` gave; ValueError if that is of another size.");
  module.def(
      "read_banks",
      [](const nb::bytes& saved) {
        const std::size_t count = saved.size() / sizeof(Bank);
        return read_bytes<Bank>(saved.c_str(), saved.size(), count, "Banks");
      },
      "saved"_a, "The banks of a snapshot; ValueError if it is of another size.");
  module.def("available", &available, "settings"_a, "bank"_a, "What may be spent.");
  module.def("allowed", &allowed, "settings"_a, "bank"_a, "The largest share that is proved to be safe.");
  module.def("free_share", &free_share, "settings"_a, "budget"_a, "The largest share that costs at most the budget.");
  module.def("coin_luck", &coin_luck, "settings"_a, "variance"_a, "How far coins may have fallen against us.");
}

}  // namespace

void bind_guard(nb::module_& module) {
  bind_bank(module);
  nb::class_<GuardSettings>(module, "GuardSettings", "What a guard is told.")
      .def(nb::new_(&settings_of), "metrics"_a, nb::kw_only(), "ramp"_a, "largest_share"_a)
      .def_prop_rw(
          "metrics", [](const GuardSettings& settings) { return settings.metrics; },
          [](GuardSettings& settings, std::vector<MetricSettings> metrics) {
            check_size(metrics.size(), settings.metrics.size(), "Metrics");
            settings.metrics = std::move(metrics);
          },
          "A copy of what is promised of each metric.")
      .def_ro("largest_share", &GuardSettings::largest_share);
  nb::class_<GuardBooks>(module, "GuardBooks", "The banks and lifts of one guard.")
      .def(nb::init<const GuardSettings&>(), "settings"_a)
      .def_ro("settings", &GuardBooks::settings)
      .def_prop_ro(
          "banks", [](const GuardBooks& books) { return books.banks; }, "A copy of every bank.")
      .def_prop_ro(
          "snapshot", [](const GuardBooks& books) { return bytes_of(books.banks); },
          "Every bank, as `read_banks` takes them.")
      .def_prop_ro("lift_intervals", &GuardBooks::intervals, "Of each metric, in units of its highest.")
      .def("share", &GuardBooks::share, "The share of the next proposal.")
      .def("plan", &GuardBooks::plan, "share"_a, "predicted"_a = nb::none(),
           "What a round of this share will be settled by, from what is known now: before its coin.")
      .def("charge", &GuardBooks::charge, "share"_a, "is_learner"_a,
           "Charge a round at its worst; returns a snapshot of the banks before it.")
      .def(
          "lose",
          [](GuardBooks& books, double rounds) {
            for (std::size_t i = 0; i < books.banks.size(); ++i) {
              lose(books.settings.metrics[i], books.banks[i], rounds, books.settings.largest_share);
            }
          },
          "rounds"_a, "Pay for so many rounds of which nothing is left.")
      .def("enter", &GuardBooks::enter, "plan"_a, "is_learner"_a, "rewards"_a, "is_late"_a = false,
           "Take in the rewards of the next round in the order of decisions, or of a late one that entered without "
           "them; NaN is missing.")
      .def(
          "save", [](const GuardBooks& books) { return save_rows(books.banks); }, "The numbers of every bank.")
      .def(
          "load", [](GuardBooks& books, const MatrixIn& saved) { load_rows(books.banks, saved); }, "saved"_a,
          "Take back what `save` gave; ValueError if that is of another size.")
      .def(
          "save_lifts", [](const GuardBooks& books) { return save_rows(books.lifts); }, "The numbers of every lift.")
      .def(
          "load_lifts", [](GuardBooks& books, const MatrixIn& saved) { load_rows(books.lifts, saved); }, "saved"_a,
          "Take back what `save_lifts` gave; ValueError if that is of another size.");
  nb::class_<GuardRuns>(module, "GuardRuns", "Many runs of one guard.")
      .def(nb::init<const GuardSettings&, std::size_t, std::size_t>(), "settings"_a, nb::kw_only(), "runs"_a, "delay"_a)
      .def("held", &held_by_runs, "What every bank holds: of runs, then of metrics.")
      .def("share", &share_runs, "shares"_a, "Write the share of every run.")
      .def("step", &step_runs, "shares"_a, "is_learner"_a, "rewards"_a,
           "Book a round of every run, and take in the one whose rewards are due.");
}

}  // namespace surefoot
