// Many runs of one guard at once, round by round, with rewards that may come late.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "guard.hpp"

namespace surefoot {

// What a guard is told: the promise of each metric, how fast to go, and the largest share.
struct GuardSettings {
  std::vector<MetricSettings> metrics;
  Ramp ramp;
  double largest_share;
};

// One round of every run, kept until its rewards are due.
struct RoundOfRuns {
  std::vector<double> shares, rewards;
  std::vector<std::uint8_t> is_learner;
  std::vector<Booked> booked;
};

struct GuardRuns {
  GuardSettings settings;
  std::size_t runs;
  std::vector<Bank> banks;          // by run, then by metric
  std::vector<RoundOfRuns> rounds;  // a ring: the place of a round is free again once its rewards have entered
  std::size_t round = 0;

  GuardRuns(GuardSettings given, std::size_t runs_, std::size_t delay) : settings(std::move(given)), runs(runs_) {
    for (std::size_t run = 0; run < runs; ++run) {
      for (const MetricSettings& metric : settings.metrics) banks.push_back(new_bank(metric));
    }
    const std::size_t all = banks.size();
    rounds.assign(delay + 1, {std::vector<double>(runs), std::vector<double>(all), std::vector<std::uint8_t>(runs),
                              std::vector<Booked>(all)});
  }

  std::size_t metrics() const { return settings.metrics.size(); }
  std::span<Bank> banks_of(std::size_t run) { return std::span(banks).subspan(run * metrics(), metrics()); }

  // The share of every run in the next round.
  void share(std::span<double> shares) {
    for (std::size_t run = 0; run < runs; ++run) {
      shares[run] = share_of(settings.metrics, banks_of(run), settings.ramp, settings.largest_share);
    }
  }

  // Book a round of every run, and take in the one whose rewards have waited for `delay` rounds.
  void step(std::span<const double> shares, std::span<const bool> is_learner, std::span<const double> rewards) {
    RoundOfRuns& now = rounds[round % rounds.size()];
    now.shares.assign(shares.begin(), shares.end());
    now.is_learner.assign(is_learner.begin(), is_learner.end());
    now.rewards.assign(rewards.begin(), rewards.end());
    for (std::size_t run = 0; run < runs; ++run) {
      plan_round(settings.metrics, banks_of(run), shares[run], {},
                 std::span(now.booked).subspan(run * metrics(), metrics()));
      charge_round(settings.metrics, banks_of(run), shares[run], is_learner[run]);
    }
    round += 1;
    if (round >= rounds.size()) enter(rounds[round % rounds.size()]);
  }

  void enter(const RoundOfRuns& due) {
    for (std::size_t run = 0; run < runs; ++run) {
      const std::size_t first = run * metrics();
      enter_round(settings.metrics, banks_of(run), due.shares[run], std::span(due.booked).subspan(first, metrics()),
                  due.is_learner[run] != 0, std::span(due.rewards).subspan(first, metrics()), false);
    }
  }
};

}  // namespace surefoot
