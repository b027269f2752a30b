// Where to touch the likelihood set, so that the tangent there proves most of a question.
//
// The least <q, theta> over {loss <= allowed} lies where tau q + grad loss = 0 for some tau >= 0: the tangent there has
// a normal along q. Newton's method finds that point for a given tau (the loss is self-concordant), and tau grows until
// the loss is what is allowed. Means stay inside their bounds by a small barrier, which range facts replace afterwards.
// Any point is valid: how far to go is a matter of tightness alone.
#pragma once
#include <cmath>
#include <utility>

#include "factor.hpp"
#include "likelihood.hpp"

namespace surefoot {

inline constexpr double BARRIER = 1e-5;     // in units of the loss, for a side of a mean that no reward speaks of
inline constexpr int NEWTON_STEPS = 40;     // of one search at most
inline constexpr double NEAR_LOSS = 0.05;   // how near the loss must come to what is allowed, relative to its room
inline constexpr double NEAR_POINT = 1e-3;  // and a squared decrement to 0, relative to that room
inline constexpr double CLOSE = 0.25;       // a squared decrement that tells how far the least loss may be
inline constexpr double REFIT = 1.02;       // how much more must have been learned before the least loss is looked for

template <int D>
class DualSearch {
 public:
  Vector<D> point;

  // `offered` are rows beside the cells whose means lie within the bounds.
  DualSearch(Likelihood<D>& set, double bound, std::initializer_list<View<D>> offered)
      : point(set.fitted),
        set_(set),
        bound_(bound),
        gradient_(set.dim()),
        step_(set.dim()),
        hessian_(set.dim()),
        lower_(set.dim()),
        blocks_(set.model.blocks) {
    for (const View<D> row : offered) {
      if (set.cells.find(row) < 0 && set.booked.find(row) < 0) offered_.push_back(row);
    }
    for (int i = 0; i < set.booked.count(); ++i) {
      if (!set.booked[i].is_learned()) offered_.push_back(set.booked.row(i));
    }
    // What no row ties together the Hessian leaves apart.
    for (const View<D> row : offered_) blocks_.join(row);
    lower_.begin_rows([&](int i) { return blocks_.at(i).begin; });
    if (blocks_.is_one()) {
      weighted_.resize((static_cast<std::size_t>(set.cells.count()) + offered_.size()) *
                       static_cast<std::size_t>(set.dim()));
    }
  }

  // Moves `fitted` to the least loss, where much has been learned since; false if even that is more than is allowed: no
  // theta is left.
  bool fit() {
    const double learned = set_.forecaster.rounds;
    if (learned > REFIT * set_.fitted_at + 1.0) {
      const Vector<D> nothing(set_.dim());
      point = set_.fitted;
      const double left = descend(nothing, 0.0, 1e-6);
      set_.fitted = point;
      set_.fitted_at = learned;
      // What Newton's method has yet to gain is half the squared decrement, up to a little, and where that is small;
      // elsewhere it says nothing.
      const double loss = set_.loss(point);
      if (left < CLOSE && !(loss - larger(0.0, left) <= set_.allowed() * (1.0 + 1e-9) + 1e-6)) return false;
    }
    least_ = set_.loss(set_.fitted);
    return true;
  }

  // The bound of <q, theta> at the point found.
  double find(const Vector<D>& q) {
    const double room = set_.allowed() - least_;
    if (!(room > 0.0)) return -INFINITE;
    // From where the last question was touched: this one differs from it by a round or two.
    const bool is_warm = set_.tau > 0.0;
    point = is_warm ? set_.tangents[static_cast<std::size_t>(set_.newest)].point : set_.fitted;
    double tau = set_.tau;
    if (!is_warm) {
      measure(q, 0.0);
      if (!cholesky(hessian_, lower_)) return -INFINITE;
      tau = std::sqrt(2.0 * room) / larger(width(q), 1e-300);
    }
    double low = 0.0, high = INFINITE, best = -INFINITE;
    Vector<D> chosen = point;
    while (steps_ < NEWTON_STEPS) {
      const double left = larger(0.0, descend(q, tau, NEAR_POINT * room)), loss = set_.loss(point);
      const double value = dot(q.data(), point.data(), set_.dim()) + (loss - set_.allowed() - left) / tau;
      if (value > best) {
        best = value;
        chosen = point;
        loss_ = loss;
        set_.tau = tau;
      }
      const double reached = (loss - least_) / room;
      if (std::fabs(reached - 1.0) < NEAR_LOSS) break;
      (reached > 1.0 ? high : low) = tau;
      tau /= std::sqrt(larger(reached, 1e-3));
      if (!(low < tau && tau < high)) tau = high < INFINITE ? 0.5 * (low + high) : 2.0 * low;
    }
    point = std::move(chosen);
    return best;
  }

  // A point well inside the set at which the question that was not proved fails: half way between where it begins to
  // fail, on the way from the least loss to the point found, and that point.
  Vector<D> witness(const Vector<D>& q, double required) const {
    const double room = set_.allowed() - least_, over = loss_ - least_;
    const double most = over > room ? room / over : 1.0;  // the loss is convex
    const double start = dot(q.data(), set_.fitted.data(), set_.dim());
    const double end = dot(q.data(), point.data(), set_.dim());
    const double fails = end < start ? (start - required) / (start - end) : 0.0;
    const double share = fails < most ? 0.5 * (larger(0.0, fails) + most) : most;
    Vector<D> found = set_.fitted;
    for (int i = 0; i < set_.dim(); ++i) found[i] += share * (point[i] - found[i]);
    return found;
  }

 private:
  Likelihood<D>& set_;
  double bound_;
  std::vector<View<D>> offered_;
  Vector<D> gradient_, step_;
  Matrix<D> hessian_, lower_;
  Blocks<D> blocks_;
  std::vector<double> weighted_;  // every row times its weight in the Hessian
  double least_ = 0.0, loss_ = 0.0;
  int steps_ = 0;

  template <class Take>
  void each_row(Take take) const {
    for (int i = 0; i < set_.cells.count(); ++i) {
      const Cell& cell = set_.cells[i];
      take(set_.cells.row(i), cell.successes > 0.0 ? cell.successes : BARRIER,
           cell.failures > 0.0 ? cell.failures : BARRIER);
    }
    for (const View<D> row : offered_) take(row, BARRIER, BARRIER);
  }

  // Gradient and Hessian of tau <q, theta> + loss at the point; the lower triangle alone.
  void measure(const Vector<D>& q, double tau) {
    const int d = set_.dim();
    const auto gone = set_.gone_at(point);
    const double pull = BARRIER / (bound_ * bound_);  // keeps directions that no row speaks of
    for (int i = 0; i < d; ++i) {
      gradient_[i] = tau * q[i] + gone.gradient[i] + pull * point[i];
      for (int j = lower_.from(i); j <= i; ++j) hessian_(i, j) = 2.0 * set_.gone.square(i, j);
      hessian_(i, i) += pull;
    }
    double* weighted = weighted_.data();
    each_row([&](View<D> x, double successes, double failures) {
      const double e = set_.mean(point.data(), x);
      const Curve hit = bent_log(e), miss = bent_log(1.0 - e);
      const double slope = (successes * hit.slope - failures * miss.slope) * set_.scale;
      const double bend = (successes * hit.bend + failures * miss.bend) * set_.scale * set_.scale;
      add_scaled(gradient_.data(), slope, x.data(), d);
      if (blocks_.is_one()) {
        for (const double entry : x) *weighted++ = bend * entry;
        return;
      }
      for (int i = 0; i < d; ++i) {
        const double entry = x[static_cast<std::size_t>(i)];
        const int from = lower_.from(i);
        if (entry != 0.0) add_scaled(hessian_.row(i) + from, bend * entry, x.data() + from, i + 1 - from);
      }
    });
    if (blocks_.is_one()) add_squares();
  }

  // Adds every row times itself to the Hessian, in tiles that stay in registers from row to row: each entry adds up in
  // the same order as row after row, in half the time.
  void add_squares() {
    const int d = set_.dim();
    side_by_side(d, [&]<class Number>(int j) {
      int i = j;
      for (; i + WIDE <= d; i += WIDE) add_tile<Number, WIDE>(i, j);
      for (; i + WIDE / 2 <= d; i += WIDE / 2) add_tile<Number, WIDE / 2>(i, j);
      for (; i < d; ++i) add_tile<Number, 1>(i, j);
    });
  }

  // A Number of columns from j on, of so many rows from i on.
  template <class Number, int Many>
  void add_tile(int i, int j) {
    Number sums[Many];
    for (int k = 0; k < Many; ++k) sums[k] = take<Number>(hessian_.row(i + k) + j);
    const double* weights = weighted_.data() + i;
    const auto add = [&](View<D> x) {
      const Number columns = take<Number>(x.data() + j);
      for (int k = 0; k < Many; ++k) sums[k] += weights[k] * columns;
      weights += set_.dim();
    };
    for (int row = 0; row < set_.cells.count(); ++row) add(set_.cells.row(row));
    for (const View<D> x : offered_) add(x);
    for (int k = 0; k < Many; ++k) put(hessian_.row(i + k) + j, sums[k]);
  }

  // step = Hessian^-1 gradient; its squared length in the norm of the Hessian.
  double newton_step() {
    const int d = set_.dim();
    double square = 0.0;
    for (int i = 0; i < d; ++i) {
      const int from = lower_.from(i);
      step_[i] = (gradient_[i] - dot(lower_.row(i) + from, step_.data() + from, i - from)) / lower_(i, i);
      square += step_[i] * step_[i];
    }
    for (int i = d - 1; i >= 0; --i) {
      step_[i] /= lower_(i, i);
      const int from = lower_.from(i);
      add_scaled(step_.data() + from, -step_[i], lower_.row(i) + from, i - from);
    }
    return square;
  }

  // How far along the step means stay inside their bounds; one that is outside may go anywhere.
  double longest_step() const {
    double longest = 1.0;
    each_row([&](View<D> x, double, double) {
      const double e = set_.mean(point.data(), x), change = set_.scale * dot(step_.data(), x.data(), set_.dim());
      const double room = change > 0.0 ? e : 1.0 - e;
      if (room > EDGE && longest * std::fabs(change) > 0.9 * room) longest = 0.9 * room / std::fabs(change);
    });
    return longest;
  }

  // Newton's method from the point on; the squared decrement where it ended.
  double descend(const Vector<D>& q, double tau, double near) {
    double square = INFINITE;
    for (int step = 0; step < NEWTON_STEPS; ++step) {
      measure(q, tau);
      steps_ += 1;
      if (!cholesky(hessian_, lower_)) return INFINITE;
      square = newton_step();
      const double length = longest_step();
      for (int i = 0; i < set_.dim(); ++i) point[i] -= length * step_[i];
      if (length == 1.0 && square < near) break;
    }
    return square;
  }

  // ||q|| in the inverse of the last Hessian.
  double width(const Vector<D>& q) {
    gradient_ = q;
    return std::sqrt(newton_step());
  }
};

}  // namespace surefoot
