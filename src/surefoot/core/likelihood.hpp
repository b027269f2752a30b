// The likelihood-ratio set for rewards in [low, high] with linear means: no noise scale, no bound on theta.
//
// With y and the means e = <theta, x> in units of the bounds, and forecasts p made before their rewards,
// prod p^y (1 - p)^(1 - y) / (e^y (1 - e)^(1 - y)) is a supermartingale at the truth, for any y in [0, 1]. So, for all
// rounds at once with probability 1 - delta,
//
//     loss(theta) = sum -y ln e - (1 - y) ln(1 - e)  <=  spent + ln(1/delta),   spent = sum -y ln p - (1 - y) ln(1 -
//     p),
//
// a convex set (Emmenegger et al. 2023; Lee et al. 2024). Its tangent at any point is a linear fact, and at the right
// point (`likelihood_dual.hpp`) one that proves as much of a question as the whole set.
//
// The loss is kept per distinct row, exactly, as long as there is room. Beyond that rows leave for a sum of parabolas
// that lie below it: those that never brought a reward first, of which next to nothing is lost, then the oldest.
#pragma once
#include <cmath>
#include <optional>

#include "cells.hpp"
#include "facts.hpp"
#include "forecast.hpp"
#include "ridge.hpp"
#include "settings.hpp"

namespace surefoot {

inline constexpr double EDGE = 1e-6;  // below it -ln x is continued by a parabola

struct Curve {
  double value, slope, bend;
};

// Slope and bend of -ln x, below EDGE those of its second-order polynomial there; they need no logarithm.
inline Curve bent_log(double x) {
  if (x >= EDGE) return {0.0, -1.0 / x, 1.0 / (x * x)};
  const double bend = 1.0 / (EDGE * EDGE);
  return {0.0, -1.0 / EDGE + bend * (x - EDGE), bend};
}

// The same with the value: never above -ln x, and finite everywhere.
inline Curve minus_log(double x) {
  Curve at = bent_log(x);
  const double beyond = x - EDGE;
  at.value = x >= EDGE ? -log_of(x) : -log_of(EDGE) - beyond / EDGE + 0.5 * at.bend * beyond * beyond;
  return at;
}

// The loss of a mean e in units of the bounds.
inline Curve loss_curve(double successes, double failures, double e) {
  Curve sum{0.0, 0.0, 0.0};
  if (successes > 0.0) {
    const Curve hit = minus_log(e);
    sum = {successes * hit.value, successes * hit.slope, successes * hit.bend};
  }
  if (failures > 0.0) {
    const Curve miss = minus_log(1.0 - e);
    sum = {sum.value + failures * miss.value, sum.slope - failures * miss.slope, sum.bend + failures * miss.bend};
  }
  return sum;
}

// Parabolas below the losses of rows that have left: constant + <linear, theta> + theta^T square theta.
template <int D>
struct Parabola {
  double rows = 0.0;               // how many they are
  double size = 0.0, reach = 0.0;  // what the constant is made of; bends times squared lengths of rows, for rounding
  Sum constant;
  SumVector<D> linear;
  Matrix<D> square;

  explicit Parabola(int dim) : linear(dim), square(dim) {}

  // value + slope u + bend u^2 with u = scale <theta, x> + rest.
  void add(View<D> x, double scale, double rest, const Curve& at) {
    const int d = linear.value.size();
    constant.add((at.value + at.slope * rest) + at.bend * rest * rest);
    size += std::fabs(at.value) + std::fabs(at.slope * rest) + at.bend * rest * rest;
    const double weight = (at.slope + 2.0 * at.bend * rest) * scale, bend = at.bend * scale * scale;
    reach += bend * square_length(x.data(), d);
    for (int i = 0; i < d; ++i) {
      const double entry = x[static_cast<std::size_t>(i)];
      if (entry == 0.0) continue;
      linear.add(i, weight * entry);
      add_scaled(square.row(i), bend * entry, x.data(), d);
    }
    rows += 1.0;
  }

  template <class Visit>
  void each(Visit visit) {
    visit(rows);
    visit(size);
    visit(reach);
    visit(constant);
    visit(linear);
    visit(square);
  }
};

// The linear minorant of the loss at a point: loss(theta) >= height - <normal, theta>.
template <int D>
struct Tangent {
  bool is_set = false;
  double size = 0.0, reach = 0.0;  // what the height is made of, and the lengths of the normal's terms, for rounding
  Sum height;
  Vector<D> point;
  SumVector<D> normal;

  explicit Tangent(int dim) : point(dim), normal(dim) {}

  template <class Visit>
  void each(Visit visit) {
    visit(is_set);
    visit(size);
    visit(reach);
    visit(height);
    visit(point);
    visit(normal);
  }
};

template <int D>
struct Likelihood {
  double low, high, scale;      // e = scale (<theta, x> - low)
  double highest;               // the largest e that a mean may have
  double log_delta = INFINITE;  // ln(1/delta)
  bool is_whole = true;         // every booked round stands in a cell
  Sum spent;                    // the loss of the forecasts
  Forecaster forecaster;
  Ridge<D> model;   // of rewards weighed by their variance: forecasts, and the optimism of proposals
  Cells<D> cells;   // rows whose rewards were learned
  Cells<D> booked;  // rows of the rounds that were played, as long as there is room for all of them
  Parabola<D> gone;
  Vector<D> fitted;        // near the least loss; where searches begin
  double fitted_at = 0.0;  // how much had been learned then
  double tau = 0.0;        // of the newest tangent (`likelihood_dual.hpp`); 0: none yet
  std::array<Tangent<D>, TANGENTS> tangents;
  int newest = 0;
  // A theta of the set at which the last question that was not proved fails: while it stays in the set and fails the
  // next question, too, no search for a point can help.
  Tangent<D> witness;

  Likelihood(int dim, const LinearSettings& s)
      : low(s.reward_low),
        high(s.reward_high),
        scale(1.0 / (s.reward_high - s.reward_low)),
        highest(s.range_high < s.reward_high ? (s.range_high - s.reward_low) * scale : 1.0),
        model(dim, model_ridge(dim, s)),
        cells(dim),
        booked(dim),
        gone(dim),
        fitted(dim),
        tangents{Tangent<D>(dim), Tangent<D>(dim)},
        witness(dim) {}

  int dim() const { return fitted.size(); }
  double unit(double reward) const { return scale * (reward - low); }
  double mean(const double* theta, View<D> x) const { return unit(dot(theta, x.data(), dim())); }
  double allowed() const { return spent.total() + log_delta; }

  // Whether a reward can be one.
  bool is_possible(double reward) const { return reward >= low && reward <= high; }

  // Learns a reward; returns what its row weighs in the linear model, which learns it next.
  [[gnu::noinline]] double learn(View<D> x, double reward) {
    const double y = unit(reward), foreseen = dot(model.theta.data(), x.data(), dim());
    int at = cells.find(x);
    const double successes = at < 0 ? 0.0 : cells[at].successes, failures = at < 0 ? 0.0 : cells[at].failures;
    const double forecast = forecaster(successes, successes + failures, unit(foreseen));
    // A rate of next to nothing would weigh a row as if it were known.
    const double variance = larger(forecast, forecaster.rate()) * (1.0 - forecast);
    spent.add(loss_of(forecast, y));
    forecaster.learn(y);
    if (at < 0) {
      if (cells.is_full()) make_room();
      at = cells.add(x);
    }
    cells[at].successes += y;
    cells[at].failures += 1.0 - y;
    if (const int known = is_whole ? booked.find(x) : -1; known >= 0) {
      booked[known].successes += y;
      booked[known].failures += 1.0 - y;
    }
    for (Tangent<D>& tangent : tangents) {
      if (tangent.is_set) touch(tangent, x, y, 1.0 - y);
    }
    if (witness.is_set) touch(witness, x, y, 1.0 - y);
    return scale * scale / variance;
  }

  // Books a round in its rows; once there is no room, rounds are no longer told apart.
  void book(View<D> proposal, View<D> displaced, bool is_learner) {
    if (!is_whole) return;
    for (const View<D> x : {proposal, displaced}) {
      if (booked.find(x) >= 0) continue;
      if (booked.is_full()) {
        is_whole = false;
        booked = Cells<D>(dim());
        return;
      }
      booked.add(x);
    }
    if (is_learner) {
      booked[booked.find(proposal)].played += 1.0;
      booked[booked.find(displaced)].displaced += 1.0;
    } else {
      booked[booked.find(displaced)].kept += 1.0;
    }
  }

  // Begins an empty ledger; what was learned of the rows stays.
  void begin_ledger() {
    for (Cell& cell : booked.all) cell.played = cell.kept = cell.displaced = 0.0;
  }

  // Whether a round can have been booked like this; not known once rounds are no longer told apart.
  bool can_take_back(View<D> features, View<D> displaced, bool is_learner) const {
    if (!is_whole) return true;
    const int chosen = booked.find(features), today = booked.find(displaced);
    if (today < 0 || (is_learner && chosen < 0)) return false;
    return is_learner ? booked[chosen].played >= 1.0 && booked[today].displaced >= 1.0 : booked[today].kept >= 1.0;
  }

  // Undoes a booking, for a round that was not played as it was decided.
  void take_back(View<D> features, View<D> displaced, bool is_learner) {
    if (!is_whole) return;
    if (is_learner) {
      booked[booked.find(features)].played -= 1.0;
      booked[booked.find(displaced)].displaced -= 1.0;
    } else {
      booked[booked.find(displaced)].kept -= 1.0;
    }
  }

  // Keeps the tangent at a point.
  void touch_at(const Vector<D>& point) {
    newest = (newest + 1) % TANGENTS;
    Tangent<D>& tangent = tangents[static_cast<std::size_t>(newest)];
    tangent.point = point;
    lay(tangent);
  }

  // All rows that are told apart: those of the rounds, as long as there is room for them.
  const Cells<D>& met() const { return is_whole ? booked : cells; }

  void bear_witness(const Vector<D>& point) {
    witness.point = point;
    lay(witness);
  }

  // <theta, normal> >= level over the set, for every theta of length `bound` at most; the level is rounded down.
  double level(const Tangent<D>& tangent, double bound) const {
    const double most = allowed(), length = std::sqrt(square_length(tangent.point.data(), dim()));
    // A term costs a few roundings of its size; parabolas were added up plainly, one after the other.
    const double rounding = 32.0 * (tangent.size + most + tangent.reach * bound) +
                            (gone.rows + 16.0) * (gone.size + gone.reach * length * (length + bound));
    // Beyond that, forecasts that somebody makes anew must not come out better by their rounding.
    return tangent.height.total() - most - EPS * rounding - 1e-9 * (tangent.size + most);
  }

  double loss(const Vector<D>& theta) const {
    double sum = gone_at(theta).value;
    for (int i = 0; i < cells.count(); ++i) {
      sum += loss_curve(cells[i].successes, cells[i].failures, mean(theta.data(), cells.row(i))).value;
    }
    return sum;
  }

  void after_reading()
    requires(D == any)
  {
    model.after_reading();
  }

  template <class Visit>
  void each(Visit visit) {
    visit(is_whole);
    visit(spent);
    forecaster.each(visit);
    model.each(visit);
    cells.each(visit);
    booked.each(visit);
    gone.each(visit);
    visit(fitted);
    for (double* number : {&fitted_at, &tau}) visit(*number);
    for (Tangent<D>& tangent : tangents) tangent.each(visit);
    visit(newest);
    if (newest >= TANGENTS) damaged("it has no such tangent");
    witness.each(visit);
  }

  // Value of the parabolas, and what they add to a gradient.
  struct Gone {
    double value;
    Vector<D> gradient;
  };
  Gone gone_at(const Vector<D>& theta) const {
    Gone found{gone.constant.total(), Vector<D>(dim())};
    for (int i = 0; i < dim(); ++i) {
      const double along = gone.rows > 0.0 ? dot(gone.square.row(i), theta.data(), dim()) : 0.0;
      found.gradient[i] = gone.linear.total(i) + 2.0 * along;
      found.value += theta[i] * (gone.linear.total(i) + along);
    }
    return found;
  }

 private:
  // As the suitable ridge of a policy, in units of the variance; never so small that features drown it.
  static double model_ridge(int dim, const LinearSettings& s) {
    const double reach = s.feature_bound / (s.reward_high - s.reward_low);
    return larger(dim / (s.theta_bound * s.theta_bound), 1e-4 * reach * reach);
  }

  // Adds a row's loss to a tangent: loss(e) >= loss(e0) + slope (e - e0) for any e0.
  void touch(Tangent<D>& tangent, View<D> x, double successes, double failures) {
    const double e = mean(tangent.point.data(), x);
    const Curve at = loss_curve(successes, failures, e);
    // e = scale <theta, x> - scale low.
    const double offset = at.slope * (e + scale * low);
    tangent.height.add(at.value);
    tangent.height.add(-offset);
    tangent.size += std::fabs(at.value) + std::fabs(at.slope) * (std::fabs(e) + std::fabs(scale * low));
    tangent.reach += std::fabs(at.slope) * scale * std::sqrt(square_length(x.data(), dim()));
    const double weight = -at.slope * scale;
    side_by_side(dim(), [&]<class Number>(int i) { tangent.normal.add(i, weight * take<Number>(x.data() + i)); });
  }

  // The tangent at its point, from the beginning.
  void lay(Tangent<D>& tangent) {
    tangent.is_set = true;
    tangent.size = tangent.reach = 0.0;
    tangent.height = {};
    tangent.normal = SumVector<D>(dim());
    for (int i = 0; i < cells.count(); ++i) {
      if (cells[i].is_learned()) touch(tangent, cells.row(i), cells[i].successes, cells[i].failures);
    }
    if (gone.rows == 0.0) return;
    const Gone at = gone_at(tangent.point);
    tangent.height.add(at.value);
    tangent.height.add(-dot(at.gradient.data(), tangent.point.data(), dim()));
    for (int i = 0; i < dim(); ++i) tangent.normal.add(i, -at.gradient[i]);
  }

  // Rows without a reward leave, and if that is not enough, the oldest quarter.
  void make_room() {
    const auto leave = [&](auto goes) {
      cells.thin([&](int i) {
        if (goes(i) && cells[i].is_learned()) retire(cells.row(i), cells[i]);
        return !goes(i);
      });
    };
    leave([&](int i) { return !(cells[i].successes > 0.0); });
    if (cells.count() > CELLS - CELLS / 4) leave([&](int i) { return i < CELLS / 4; });
    for (Tangent<D>& tangent : tangents) {
      if (tangent.is_set) lay(tangent);
    }
    if (witness.is_set) lay(witness);
  }

  // A parabola below the row's loss for every mean from 0 to `highest`, which touches it where the model sees the mean.
  void retire(View<D> x, const Cell& cell) {
    const double least = EDGE + 1e-3 * forecaster.rate();
    const double e = std::fmin(larger(mean(model.theta.data(), x), least), larger(0.9 * highest, least));
    const double rest = -(scale * low) - e;
    if (cell.failures > 0.0) {
      const Curve at = minus_log(1.0 - e);
      // From 0 on, -ln(1 - e) bends at least as it does at 0.
      gone.add(x, scale, rest, {cell.failures * at.value, -cell.failures * at.slope, 0.5 * cell.failures});
    }
    if (cell.successes > 0.0) {
      const Curve at = minus_log(e);
      const double room = highest - e, ratio = room / e;
      // (-ln x - tangent) / (x - e)^2 falls with x: its value at `highest` is the least.
      const double bend = room > 0.0 ? larger(0.0, ratio - log1p_of(ratio)) / (room * room) : 0.0;
      gone.add(x, scale, rest, {cell.successes * at.value, cell.successes * at.slope, cell.successes * bend});
    }
  }
};

// What a round changes of the set before its reward is learned, to be put back where the round does not count.
template <int D>
class DecidedLikelihood {
 public:
  void note(const Likelihood<D>& set) {
    is_whole_ = set.is_whole;
    rows_ = set.booked.count();
    fitted_ = set.fitted;
    fitted_at_ = set.fitted_at;
    tau_ = set.tau;
    tangents_ = set.tangents;
    newest_ = set.newest;
    witness_ = set.witness;
    booked_.reset();
    if (is_whole_ && rows_ + 2 > CELLS) booked_ = set.booked;  // there may be no room for this round
  }

  void put_back(Likelihood<D>& set, View<D> proposal, View<D> displaced, bool is_learner) const {
    if (booked_) {
      set.booked = *booked_;
    } else if (is_whole_) {
      set.take_back(proposal, displaced, is_learner);
      set.booked.keep_first(rows_);
    }
    set.is_whole = is_whole_;
    set.fitted = *fitted_;
    set.fitted_at = fitted_at_;
    set.tau = tau_;
    set.tangents = *tangents_;
    set.newest = newest_;
    set.witness = *witness_;
  }

 private:
  bool is_whole_ = true;
  int rows_ = 0, newest_ = 0;
  double fitted_at_ = 0.0, tau_ = 0.0;
  std::optional<Vector<D>> fitted_;
  std::optional<std::array<Tangent<D>, TANGENTS>> tangents_;
  std::optional<Tangent<D>> witness_;
  std::optional<Cells<D>> booked_;
};

}  // namespace surefoot
