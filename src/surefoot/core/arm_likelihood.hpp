// The likelihood-ratio set of bounded rewards over plain arms, and the least of a question over it.
//
// With S_a rewards of arm a in units of their bounds, and F_a what they fell short of 1 (`likelihood.hpp`),
//
//     loss(e) = sum_a -S_a ln e_a - F_a ln(1 - e_a)  <=  spent + ln(1/delta).
//
// The least sum_a w_a e_a over that set is the largest value of a dual in one number, tau: given tau each arm has a
// minimum of its own, tau w e - S ln e - F ln(1 - e), at the root of a quadratic. Any tau gives a valid bound: by a
// tangent of the loss at these roots, and by the range of each mean for what the tangent leaves of the question.
#pragma once
#include <cmath>
#include <vector>

#include "likelihood.hpp"

namespace surefoot {

inline constexpr int DUAL_STEPS = 40;           // of one search at most
inline constexpr double NEAR_ALLOWED = 0.01;    // how near the loss must come to what is allowed, relative to its room
inline constexpr double PRIOR_REWARDS = 4.0;    // at the rate of all arms: where the cautious forecast begins
inline constexpr double OPTIMISM_SHARE = 0.25;  // of ln(1/delta): as wide as one direction of SafeLUCB's model

// Where pull e - S ln e - F ln(1 - e) is least over [0, 1].
inline double least_point(double successes, double failures, double pull) {
  const double linear = pull + successes + failures, lead = pull - (successes - failures);
  const double root = std::sqrt(lead * lead + 4.0 * successes * failures);
  if (linear < 0.0) return std::fmin((root - linear) / (-2.0 * pull), 1.0);
  // Nothing moves an arm without rewards that is not asked about.
  return linear + root > 0.0 ? std::fmin(2.0 * successes / (linear + root), 1.0) : 0.0;
}

struct ArmRewards {
  double successes = 0.0, failures = 0.0;
  bool is_known = false;  // its mean was declared: its rewards teach nothing but the rate of all arms

  double seen() const { return successes + failures; }
};

// The range of an arm's mean, known without data.
struct MeanRange {
  double least, most;

  double at_worst(double weight) const { return weight >= 0.0 ? weight * least : weight * most; }
};

// That <mu, question> >= value: by a tangent of the loss times its weight (0: none), and by ranges for what that
// leaves.
struct ArmSplit {
  double value = 0.0, weight = 0.0, level = 0.0;
  std::vector<double> normal, point;
};

struct ArmLikelihood {
  double low, high, scale;  // e = scale (mean - low)
  double log_delta;         // ln(1/delta)
  bool is_refuted = false;  // a reward lay beyond its bounds
  Sum spent;                // the loss of the forecasts
  Forecaster forecaster;
  double tau = 0.0;  // of the last search; 0: none yet
  std::vector<ArmRewards> arms;

  ArmLikelihood(int count, double low_, double high_, double delta)
      : low(low_),
        high(high_),
        scale(1.0 / (high_ - low_)),
        log_delta(log_of(1.0 / delta)),
        arms(static_cast<std::size_t>(count)) {}

  double unit(double mean) const { return scale * (mean - low); }
  double allowed() const { return spent.total() + log_delta; }
  double reach() const { return larger(std::fabs(low), std::fabs(high)); }

  void learn(int arm, double reward) {
    if (!(reward >= low && reward <= high)) {
      is_refuted = true;
      return;
    }
    ArmRewards& own = arms[static_cast<std::size_t>(arm)];
    const double y = unit(reward);
    if (own.is_known) return forecaster.count(y);
    const double cautious = (own.successes + PRIOR_REWARDS) / (own.seen() + PRIOR_REWARDS / forecaster.rate());
    spent.add(loss_of(forecaster(own.successes, own.seen(), cautious), y));
    forecaster.learn(y);
    own.successes += y;
    own.failures += 1.0 - y;
  }

  // What an arm is proposed by; nothing rests on it. kl(m, e) >= (e - m)^2 / (2 e (1 - m)) for e >= m.
  double optimistic(int arm) const {
    const ArmRewards& own = arms[static_cast<std::size_t>(arm)];
    if (!(own.seen() > 0.0)) return high;
    const double mean = own.successes / own.seen(), width = (1.0 - mean) * OPTIMISM_SHARE * log_delta / own.seen();
    return low + std::fmin(mean + width + std::sqrt(width * (width + 2.0 * mean)), 1.0) / scale;
  }

  // What is known without data.
  ArmSplit by_ranges(const std::vector<double>& w, const std::vector<MeanRange>& ranges) const {
    ArmSplit split;
    double size = 0.0;
    for (std::size_t a = 0; a < w.size(); ++a) {
      split.value += ranges[a].at_worst(w[a]);
      size += std::fabs(ranges[a].at_worst(w[a]));
    }
    split.value -= rounding() * size;  // sums of zeros are exact
    return split;
  }

  // The best bound of <mu, w> that the set and the ranges give.
  ArmSplit least(const std::vector<double>& w, const std::vector<MeanRange>& ranges) {
    ArmSplit plain = by_ranges(w, ranges);
    const double room = allowed() - loss_at(w, 0.0, ranges);
    if (!(room > 0.0)) return plain;
    double step = tau > 0.0 ? tau : first_tau(w, room), below = 0.0, above = INFINITE;
    for (int i = 0; i < DUAL_STEPS; ++i) {
      const double reached = 1.0 - (allowed() - loss_at(w, step, ranges)) / room;
      if (std::fabs(reached - 1.0) < NEAR_ALLOWED) break;
      (reached > 1.0 ? above : below) = step;
      step /= std::sqrt(larger(reached, 1e-3));  // as if the loss were a parabola
      if (!(below < step && step < above)) step = above < INFINITE ? 0.5 * (below + above) : 2.0 * below;
    }
    if (!(step > 0.0 && step < 1e300)) return plain;
    ArmSplit touched = touch(w, step, ranges);
    if (!(touched.value > plain.value)) return plain;
    tau = step;
    return touched;
  }

  template <class Visit>
  void each(Visit visit) {
    visit(is_refuted);
    visit(spent);
    forecaster.each(visit);
    visit(tau);
    for (ArmRewards& own : arms) {
      visit(own.successes);
      visit(own.failures);
      visit(own.is_known);
      if (!(own.successes >= 0.0 && own.failures >= 0.0)) damaged("an arm in it was met less than never");
    }
  }

 private:
  // Rounding of sums over arms, relative to what they are made of.
  double rounding() const { return 4.0 * (static_cast<double>(arms.size()) + 16.0) * EPS; }

  // An arm's mean where tau <w, e> + loss is least, in units of the bounds.
  double root(std::size_t a, double pull, const MeanRange& range) const {
    if (arms[a].is_known) return unit(range.least);
    return least_point(arms[a].successes, arms[a].failures, pull);
  }

  double loss_at(const std::vector<double>& w, double step, const std::vector<MeanRange>& ranges) const {
    double sum = 0.0;
    for (std::size_t a = 0; a < arms.size(); ++a) {
      sum += loss_curve(arms[a].successes, arms[a].failures, root(a, step * w[a], ranges[a])).value;
    }
    return sum;
  }

  // As if the loss were a parabola around the rates that were seen.
  double first_tau(const std::vector<double>& w, double room) const {
    double width = 0.0;
    for (std::size_t a = 0; a < arms.size(); ++a) {
      const double n = arms[a].seen() + 1.0, rate = (arms[a].successes + HALF_REWARD) / n;
      width += w[a] * w[a] * rate * (1.0 - rate) / n;
    }
    return std::sqrt(2.0 * room / larger(width, 1e-300));
  }

  // The tangent of the loss at the roots of a tau, and what it proves: loss(e) >= loss(e0) + slope (e - e0) for any e0.
  ArmSplit touch(const std::vector<double>& w, double step, const std::vector<MeanRange>& ranges) const {
    ArmSplit split;
    Sum height;
    double size = 0.0, blurred = 0.0;
    for (std::size_t a = 0; a < arms.size(); ++a) {
      split.point.push_back(arms[a].is_known ? ranges[a].least : low + root(a, step * w[a], ranges[a]) / scale);
      const double e = unit(split.point[a]), made_of = std::fabs(e) + std::fabs(scale * low);
      const Curve at = loss_curve(arms[a].successes, arms[a].failures, e);
      split.normal.push_back(-at.slope * scale);
      height.add(at.value);
      height.add(-at.slope * (e + scale * low));
      size += std::fabs(at.value) + std::fabs(at.slope) * made_of;
      blurred += scale * (std::fabs(at.slope) + at.bend * made_of);
    }
    const double most = allowed(), length = std::sqrt(static_cast<double>(arms.size())) * reach();
    // Beyond rounding, forecasts that somebody makes anew must not come out better by theirs.
    split.level = height.total() - most - 32.0 * EPS * (size + most + blurred * length) - 1e-9 * (size + most);
    split.weight = 1.0 / (step * scale);
    double made_of = std::fabs(split.weight * split.level);
    split.value = split.weight * split.level;
    for (std::size_t a = 0; a < arms.size(); ++a) {
      const double carried = split.weight * split.normal[a];
      split.value += ranges[a].at_worst(w[a] - carried);
      made_of += reach() * (std::fabs(w[a]) + 2.0 * std::fabs(carried));
    }
    split.value -= rounding() * made_of;
    return split;
  }
};

}  // namespace surefoot
