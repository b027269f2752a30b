// The `dual` confidence set: one event, read at every ridge a >= 0.  (Flynn et al. 2023, by duality)
//
// On the event behind the `amm` radius, for all rounds at once and for every a >= 0, without a union bound,
//
//     <theta, q> >= <theta_a, q> - sqrt(root(a)) ||q||_{V_a^-1},   V_a = X^T X + a I,   theta_a = V_a^-1 b,
//     root(a) = sigma^2 (ln(det V / lambda^d) + 2 ln(1/delta)) + a B^2 + b^T V_a^-1 b - b^T V^-1 b,
//
// and a = lambda is `amm`. The best a depends on q: a small one where q was explored, a large one where it was not. A
// negative root says that no theta with ||theta|| <= B fits the data: they refute the assumptions.
#pragma once
#include <cmath>
#include <span>

#include "ellipsoid.hpp"
#include "radius.hpp"

namespace surefoot {

inline constexpr double SHARES[] = {1.0, 0.001, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 100.0};  // a / ridge, amm first
inline constexpr double NEGATIVE = 1e-6;      // how far below zero, relative to its parts, a root is a contradiction
inline constexpr double CONTRADICTED = -1.0;  // in place of a radius

// A diagonal entry of V with another ridge, rounded once: beside the old ridge a small one would drown.
inline double moved_entry(double entry, double carry, double ridge, double before) {
  const auto [change, cut] = two_sum(ridge, -before);
  const auto [moved, lost] = two_sum(entry, change);
  return moved + (lost + (cut + carry));
}

// Writes the set that bounds <theta, q> best, and returns its radius: CONTRADICTED if the data refute the assumptions,
// UNKNOWN if rounding may have done too much at every ridge. Any `shares` are valid.
template <int D>
double choose_dual(const LinearSettings& s, Ridge<D>& state, View<D> q, Ellipsoid<D>& chosen,
                   std::span<const double> shares = SHARES) {
  const int d = state.dim();
  chosen.forget();  // what stands there if rounding rules out every ridge below
  if (!(state.drift <= DRIFT_USABLE)) return UNKNOWN;
  const Matrix<D> gram = state.whole_gram();
  Vector<D> moment(d), whitened(d);
  for (int i = 0; i < d; ++i) moment[i] = state.moment.total(i);
  const double log_det = state.log_det(), event = amm_event(log_det, s), bound_square = s.theta_bound * s.theta_bound;
  // Rounding moves ln det V by d drift at the last factorisation, and by 2 drift for each unit that it grew since.
  const double event_error = s.noise * s.noise * state.drift * (d + 1.0 + 2.0 * log_det);
  Matrix<D> lower(d), shifted(d);
  Ellipsoid<D> trial(d);
  double best = -INFINITE, radius = UNKNOWN;
  for (const double share : shares) {
    const double ridge = share * s.ridge;
    shifted = gram;
    for (int i = 0; i < d; ++i)
      shifted(i, i) = moved_entry(state.gram.sum(i, i), state.gram.carry(i, i), ridge, s.ridge);
    if (!cholesky(shifted, lower)) continue;
    invert(lower, trial.whitener);
    const double drift = Ridge<D>::drift_of_fresh(d, largest_sums(trial.whitener, lower).condition());
    if (!(drift <= DRIFT_USABLE)) continue;
    trial.center.fill(0.0);
    for (int i = 0; i < d; ++i) {
      whitened[i] = dot(trial.whitener.row(i), moment.data(), i + 1);
      add_scaled(trial.center.data(), whitened[i], trial.whitener.row(i), i + 1);
    }
    const double energy = square_length(whitened.data(), d);
    const double size = event + ridge * bound_square + energy + state.energy;
    // The energies nearly cancel: subtracted first, they do not lose digits to the larger terms.
    const double square = event + ridge * bound_square + (energy - state.energy);
    const double error = 4.0 * (drift + state.drift) * (energy + state.energy) + event_error + 8.0 * EPS * size;
    // With its error added, since an alarm must come from the data and never from rounding.
    if (square + error < -NEGATIVE * size) {
      chosen.forget();
      return CONTRADICTED;
    }
    const double tried = widened(std::sqrt(larger(0.0, square) + error), drift, energy, d);
    const double low = ellipsoid_range(trial.center, trial.whitener, tried, q).low();
    if (low > best) {
      best = low;
      radius = tried;
      chosen = trial;
    }
  }
  return radius;
}

}  // namespace surefoot
