// What SafeLUCB's gates found, as a proof: the question in pieces, each with the lower bound that its fact gives.
// Bounds are rounded down, so that a proof never claims more than it shows.
#pragma once
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "ellipsoid.hpp"
#include "exact.hpp"
#include "facts.hpp"

namespace surefoot {

inline constexpr double GIVEN_AWAY = 16.0 * EPS;  // relative rounding error of a weight times a level

// The exact sum, rounded once.  (Shewchuk; ties to even as in CPython's math.fsum)
inline double sum_rounded_once(std::span<const double> terms) {
  std::array<double, 64> partials;  // they do not overlap, so that 40 hold any sum of floats
  std::size_t count = 0;
  for (const double term : terms) {
    if (!std::isfinite(term)) {  // then nothing is exact
      double plain = 0.0;
      for (const double each : terms) plain += each;
      return plain;
    }
    double x = term;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < count; ++k) {
      double y = partials[k];
      if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
      const double high = x + y, low = y - (high - x);
      if (low != 0.0) partials[kept++] = low;
      x = high;
    }
    count = kept;
    if (x != 0.0) partials[count++] = x;
  }
  if (count == 0) return 0.0;
  double high = partials[--count], low = 0.0;
  while (count > 0) {
    const double x = high, y = partials[--count];
    high = x + y;
    low = y - (high - x);
    if (low != 0.0) break;
  }
  // Half-way cases look at what is below.
  if (count > 0 && ((low < 0.0 && partials[count - 1] < 0.0) || (low > 0.0 && partials[count - 1] > 0.0))) {
    const double twice = low * 2.0, x = high + twice;
    if (twice == x - high) high = x;
  }
  return high;
}

// The length of a vector to less than a unit in the last place, without overflow: squares summed with what their
// rounding lost, and one step of Newton's.  (as CPython's math.hypot)
inline double careful_length(std::span<const double> x) {
  double most = 0.0;
  for (const double each : x) {
    if (std::isnan(each)) return each;
    most = std::max(most, std::fabs(each));
  }
  if (most == 0.0 || x.size() == 1 || !std::isfinite(most)) return most;
  int exponent = 0;
  std::frexp(most, &exponent);
  if (exponent < -1023) {  // its power of two would overflow
    std::vector<double> larger(x.begin(), x.end());
    for (double& each : larger) each /= DBL_MIN;
    return DBL_MIN * careful_length(larger);
  }
  const double scale = std::ldexp(1.0, -exponent);
  double sum = 1.0, first = 0.0, second = 0.0, third = 0.0;
  const auto add = [&](double term, double& lost) {
    const double before = sum;
    sum += term;
    lost += (before - sum) + term;
  };
  for (const double each : x) {
    const auto [high, low] = halves(each * scale);
    add(high * high, first);
    add(2.0 * high * low, second);
    third += low * low;
  }
  const double length = std::sqrt(sum - 1.0 + (first + second + third));
  const auto [high, low] = halves(length);
  add(-high * high, first);
  add(-2.0 * high * low, second);
  add(-low * low, third);
  const double left = sum - 1.0 + (first + second + third);
  return (length + left / (2.0 * length)) / scale;
}

// A lower bound of <theta, r> for what the pieces miss of the question, where ||theta|| <= reach. Summed exactly:
// pieces that cancel must not hide what they miss (docs, "Checking a proof").
inline double given_away(std::span<const double> question, std::span<const double> pieces, double reach) {
  const std::size_t d = question.size(), count = d == 0 ? 0 : pieces.size() / d;
  std::vector<double> column(count + 1), missing(d), lengths;
  for (std::size_t i = 0; i < d; ++i) {
    column[0] = question[i];
    for (std::size_t k = 0; k < count; ++k) column[k + 1] = -pieces[k * d + i];
    missing[i] = sum_rounded_once(column);
  }
  lengths.push_back(careful_length(question));
  for (std::size_t k = 0; k < count; ++k) lengths.push_back(careful_length(pieces.subspan(k * d, d)));
  return -reach * (careful_length(missing) * (1.0 + GIVEN_AWAY) + GIVEN_AWAY * sum_rounded_once(lengths));
}

// The sum of bounds, rounded down: rounded once, one step down is below it; one bound beside zeros is not rounded.
inline double sum_below(std::span<const double> bounds) {
  const double total = sum_rounded_once(bounds);
  const auto terms = std::count_if(bounds.begin(), bounds.end(), [](double bound) { return bound != 0.0; });
  return terms > 1 ? std::nextafter(total, -std::numeric_limits<double>::infinity()) : total;
}

// What a fact <theta, normal> >= level gives for a multiple of its normal.
inline double multiple_below(double level, double weight) {
  const double bound = weight * level;
  return bound - GIVEN_AWAY * std::fabs(bound);
}

// A fact of a split, wherever its normal lies.
struct SplitFact {
  int kind;
  double level, weight;
  const double* normal;
};

// The confidence set as it is written down, row by row; without a center it is the ball.
struct KnownSet {
  const double* center = nullptr;
  const double* whitener = nullptr;
  double radius = 0.0, theta_bound = 0.0;

  double lower(const double* q, int d) const {
    if (center == nullptr) return -ball_spread(theta_bound, q, d);
    const Range range = careful_range(center, whitener, radius, q, d);
    return range.mean - range.spread;
  }
};

struct SplitProof {
  static constexpr int by_set = -1, by_ball = -2;
  std::vector<int> facts;       // of each piece: its place in the split, or one of the above
  std::vector<double> vectors;  // the pieces, one after the other
  std::vector<double> bounds;
  double value = 0.0;

  void add(int fact, std::span<const double> vector, double bound) {
    facts.push_back(fact);
    vectors.insert(vectors.end(), vector.begin(), vector.end());
    bounds.push_back(bound);
  }
};

// The split that a gate found: linear facts by their weights, tangents of the ball by the ball, the rest by the set.
inline SplitProof prove_split(std::span<const double> question, std::span<const SplitFact> split,
                              const KnownSet& known) {
  const auto d = static_cast<int>(question.size());
  SplitProof proof;
  if (split.empty()) {
    proof.add(SplitProof::by_set, question, known.lower(question.data(), d));
    proof.value = proof.bounds[0];
    return proof;
  }
  std::vector<double> rest(question.begin(), question.end()), ball(question.size()), piece(question.size());
  SplitProof carried;
  for (std::size_t k = 0; k < split.size(); ++k) {
    const auto& [kind, level, weight, normal] = split[k];
    if (!(weight > 0.0)) continue;
    for (std::size_t i = 0; i < question.size(); ++i) {
      piece[i] = weight * normal[i];
      rest[i] -= piece[i];
      if (kind == tangent) ball[i] += piece[i];
    }
    if (kind != tangent) carried.add(static_cast<int>(k), piece, multiple_below(level, weight));
  }
  const auto is_nonzero = [](double x) { return x != 0.0; };
  if (std::ranges::any_of(rest, is_nonzero)) {
    proof.add(SplitProof::by_set, rest, known.lower(rest.data(), d));
  }
  if (std::ranges::any_of(ball, is_nonzero)) {
    proof.add(SplitProof::by_ball, ball, -ball_spread(known.theta_bound, ball.data(), d));
  }
  proof.facts.insert(proof.facts.end(), carried.facts.begin(), carried.facts.end());
  proof.vectors.insert(proof.vectors.end(), carried.vectors.begin(), carried.vectors.end());
  proof.bounds.insert(proof.bounds.end(), carried.bounds.begin(), carried.bounds.end());
  std::vector<double> terms = proof.bounds;
  terms.push_back(given_away(question, proof.vectors, known.theta_bound));
  proof.value = sum_below(terms);
  return proof;
}

}  // namespace surefoot
