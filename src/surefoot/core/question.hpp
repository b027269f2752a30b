// The question of a round, <theta, q> >= level: after it the learner has earned at least (1 - alpha) of what the
// baseline would have.
//
// q = z + phi_a + alpha w - (1 - alpha)(v + phi_b). A gate passes only if its margin exceeds a bound on its own
// rounding error, and never changes the ledger.
#pragma once
#include <array>
#include <cmath>
#include <vector>

#include "dual.hpp"
#include "ledger.hpp"
#include "memory.hpp"

namespace surefoot {

// What a gate saw and said: from this a certificate is written, when somebody asks for it.
template <int D>
struct Record {
  int action = -1;          // the proposal's row
  bool is_learner = false;  // whether it was played
  double guaranteed = 0.0, required = 0.0, optimism = 0.0;
  double beta = 0.0, radius = 0.0;         // of the set, and with room for rounding
  double kept = 0.0, owed = 0.0;           // known rewards of the baseline; of an unknown one the two bounds of w
  Vector<D> played, conserved, displaced;  // z + phi_a, w, v + phi_b
  Range on_played{0.0, 0.0}, on_conserved{0.0, 0.0}, on_displaced{0.0, 0.0};  // <theta, .> of those that were asked for
  Vector<D> features;                                                         // what was played
  Vector<D> question;
  std::vector<Fact<D>> split;     // facts that carry a part of the question; the confidence set carries the rest
  std::vector<Vector<D>> points;  // where tangents of the likelihood set among them touch it, in their order

  explicit Record(int dim) : played(dim), conserved(dim), displaced(dim), features(dim), question(dim) {}
};

// Writes the question's three vectors, and widens the radius beta of the set by what rounding may have done.
template <int D>
[[gnu::always_inline]] inline void pose(const Ridge<D>& ridge, const Ledger<D>& ledger, View<D> proposal,
                                        View<D> displaced, Record<D>& record, bool is_ball = false) {
  side_by_side(ridge.dim(), [&]<class Number>(int i) __attribute__((always_inline)) {
    put(record.played.data() + i, ledger.played.with(i, take<Number>(proposal.data() + i)));
    put(record.conserved.data() + i, ledger.conserved.template total<Number>(i));
    put(record.displaced.data() + i, ledger.displaced.with(i, take<Number>(displaced.data() + i)));
  });
  record.radius = is_ball ? record.beta * (1.0 + 8.0 * EPS) : guarded_radius(ridge, record.beta);
}

// With the `dual` radius, chooses the set that bounds <theta, q> best; every other radius has one set only.
template <int D, class Question>
[[gnu::always_inline]] inline void choose_set(const LinearSettings& s, Ridge<D>& ridge, Memory<D>& memory,
                                              const Question& q, Record<D>& record) {
  if constexpr (MAY_BE<Radius::dual>) {
    if (s.radius != Radius::dual || ridge.count == 0.0) return;
    const double radius = choose_dual<D>(s, ridge, q, memory.set);
    if (radius == CONTRADICTED) memory.refuted = REFUTED;
    record.radius = radius == CONTRADICTED ? UNKNOWN : radius;
  }
}

// Mean and spread of <theta, q> over the set in use: the ball while there are no data, or no ellipsoid; then that.
template <int D, class Question>
[[gnu::always_inline]] inline Range range_of(const LinearSettings& s, const Ridge<D>& ridge, const Memory<D>& memory,
                                             double radius, const Question& q) {
  if (ridge.count == 0.0 || s.radius == Radius::likelihood) [[unlikely]] {
    return {0.0, ball_spread(s.theta_bound, q.data(), ridge.dim())};
  }
  if (s.radius == Radius::dual) return ellipsoid_range(memory.set.center, memory.set.whitener, radius, q);
  return ellipsoid_range(ridge.theta, ridge.whitener, radius, q);
}

// Square lengths of three vectors.
template <int D>
[[gnu::always_inline]] inline std::array<double, 3> square_lengths(const Vector<D>& x, const Vector<D>& y,
                                                                   const Vector<D>& z) {
  if constexpr (D == 4) {
    const auto squares = [](const Vector<D>& v) { return take<Quad>(v.data()) * take<Quad>(v.data()); };
    const std::array<double, 4> found = spread(totals({squares(x), squares(y), squares(z), Quad{}}));
    return {found[0], found[1], found[2]};
  } else {
    const auto length = [](const Vector<D>& v) { return square_length(v.data(), v.size()); };
    return {length(x), length(y), length(z)};
  }
}

// What a gate compares, and the size of what both are made of.
struct Claim {
  double guaranteed, required, size;
};

// Subtracts the rounding error of the sums, and judges.
template <int D>
[[gnu::always_inline]] inline bool settle(const LinearSettings& s, const Claim& claim, Record<D>& record) {
  const auto [played, conserved, displaced] = square_lengths<D>(record.played, record.conserved, record.displaced);
  const double square = (played + conserved) + displaced;
  const double length = std::sqrt(square);
  record.guaranteed =
      claim.guaranteed - 4.0 * EPS * (s.theta_bound * (2.0 * length + s.feature_bound) + 2.0 * claim.size);
  record.required = claim.required;
  return record.guaranteed >= claim.required;
}

}  // namespace surefoot
