// Forecasts of rewards in [0, 1], each made before its reward: what a likelihood set is measured by.
//
// Any forecasts are valid, as long as none knows its own reward; good ones make the set small. Three are mixed, by how
// well they did so far: the row's own rate, a linear one, and the rate of all rows. Rates start at the rate of all rows
// and not at 1/2, which would cost a row of rare rewards ln(1/rate)/2 more.
#pragma once
#include <array>

#include "elementary.hpp"
#include "sums.hpp"

namespace surefoot {

inline constexpr double HALF_REWARD = 0.5;      // what a rate is told in advance: half a reward  (Krichevsky, Trofimov)
inline constexpr double LINEAR_AFTER = 4.0;     // rewards before the linear forecast is worth trying
inline constexpr double LEAST_FORECAST = 1e-6;  // a forecast of 0 or 1 could lose everything at once

// Loss of a forecast: -ln of the probability that it gave to the reward.
inline double loss_of(double forecast, double reward) {
  const double hit = reward > 0.0 ? -reward * log_of(forecast) : 0.0;
  return hit + (reward < 1.0 ? -(1.0 - reward) * log_of(1.0 - forecast) : 0.0);
}

struct Forecaster {
  static constexpr int WAYS = 3;
  double rewards = 0.0, rounds = 0.0;  // of all rows
  std::array<double, WAYS> trust = {1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0};
  std::array<double, WAYS> said = {};  // the last forecasts

  double rate() const { return (rewards + HALF_REWARD) / (rounds + 1.0); }

  // Of a row that brought so many rewards in so many rounds, and for which a linear model says so much.
  double operator()(double own_rewards, double own_rounds, double linear) {
    const double all = rate(), highest = std::fmin(4.0 * all, 1.0 - 0.25 * (1.0 - all));
    said[0] = (own_rewards + HALF_REWARD) / (own_rounds + HALF_REWARD / all);
    said[1] = rewards < LINEAR_AFTER ? all : std::fmin(larger(linear, 0.25 * all), highest);
    said[2] = all;
    double mixed = 0.0;
    for (int i = 0; i < WAYS; ++i) {
      double& one = said[static_cast<std::size_t>(i)];
      one = std::fmin(larger(one, LEAST_FORECAST), 1.0 - LEAST_FORECAST);
      mixed += trust[static_cast<std::size_t>(i)] * one;
    }
    return mixed;
  }

  // Trusts those more that foresaw it; a little goes to all, so that one that was bad at first can come back.
  void learn(double reward) {
    double total = 0.0;
    for (std::size_t i = 0; i < trust.size(); ++i) {
      trust[i] *= exp_of(-loss_of(said[i], reward));
      total += trust[i];
    }
    const double shared = 1.0 / (rounds + 3.0);
    for (double& one : trust) one = (1.0 - shared) * one / total + shared / WAYS;
    count(reward);
  }

  // A reward that was not forecast tells of the rate of all rows.
  void count(double reward) {
    rewards += reward;
    rounds += 1.0;
  }

  template <class Visit>
  void each(Visit visit) {
    visit(rewards);
    visit(rounds);
    for (double& one : trust) visit(one);
  }
};

}  // namespace surefoot
