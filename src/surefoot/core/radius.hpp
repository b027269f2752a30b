// The radius beta of the confidence set, in five kinds and two more words: how far theta may lie from its estimate.
//
// Each holds for all rounds at once with probability 1 - delta, under its own assumptions:
//
// paper      Kazerouni et al., below eq. (5). sigma-sub-Gaussian noise, ||theta|| <= B, ||x|| <= D; d >= 2.
// logdet     Abbasi-Yadkori et al. (2011), Theorem 2. The same without D, at the volume that the data really span.
// amm        Flynn et al. (2023), the analytic bound of their adaptive martingale mixtures. As logdet, never larger.
// dual       Flynn et al. (2023), their convex set by duality: the same event as amm, read at any ridge a >= 0.
// residual   Jun and Kim (2024), LOSAN. Noise may be pessimistic, 1/2 for rewards in [0, 1]: small residuals shrink it.
// likelihood none: the likelihood-ratio set of bounded rewards is used instead (`likelihood.hpp`).
// best       amm, and the likelihood-ratio set beside it.
//
// A misspecification epsilon, |E y - <theta, x>| <= epsilon, widens paper, logdet and amm by
// epsilon sqrt(observations): ||sum x e||_{V^-1} <= ||e||. The others use the rewards themselves, and cannot have it.
#pragma once
#include <cmath>

#include "elementary.hpp"
#include "ridge.hpp"
#include "settings.hpp"

namespace surefoot {

// beta = sigma sqrt(d ln((1 + (k+1) D^2/lambda) / delta)) + sqrt(lambda) B, k observations in the set.
//
// The paper, below eq. (5) for CLUCB and below the nested sets of Section 4 for CLUCB2. Abbasi-Yadkori et al. (2011,
// Theorem 2) need 2 ln(1/delta) where this has d ln(1/delta): for d = 1 it is too small, and policies refuse it.
inline double paper_radius(double observations, int dim, const LinearSettings& s) {
  const double ratio = (1.0 + (observations + 1.0) * (s.feature_bound * s.feature_bound) / s.ridge) / s.delta;
  return s.noise * std::sqrt(dim * log_of(ratio)) + std::sqrt(s.ridge) * s.theta_bound;
}

// beta = sigma sqrt(ln(det V / lambda^d) + 2 ln(1/delta)) + sqrt(lambda) B.  (Abbasi-Yadkori et al. 2011)
inline double logdet_radius(double log_det, const LinearSettings& s) {
  return s.noise * std::sqrt(log_det + 2.0 * log_of(1.0 / s.delta)) + std::sqrt(s.ridge) * s.theta_bound;
}

// beta^2 - lambda B^2 = sigma^2 (ln(det V / lambda^d) + 2 ln(1/delta)).  (Flynn et al. 2023)
inline double amm_event(double log_det, const LinearSettings& s) {
  return s.noise * s.noise * (log_det + 2.0 * log_of(1.0 / s.delta));
}

// beta^2 = lambda B^2 + 2 sigma_0^2 ln(1/delta) + sum e_s^2 D_s^2.  (Jun and Kim 2024)
//
// e_s is the error with which round s was predicted, D_s^2 = x_s^T V_s^-1 x_s its leverage.
inline double residual_square(double surprises, const LinearSettings& s) {
  return s.ridge * s.theta_bound * s.theta_bound + 2.0 * s.noise * s.noise * log_of(1.0 / s.delta) + surprises;
}

// The radius of a ridge state, of the kind that the settings name; `dual` is amm before a set is chosen.
template <int D>
double radius_of(const LinearSettings& s, const Ridge<D>& ridge) {
  double beta = 0.0;
  switch (s.radius) {
    case Radius::paper:
      beta = paper_radius(ridge.count, ridge.dim(), s);
      break;
    case Radius::logdet:
      beta = logdet_radius(ridge.log_det(), s);
      break;
    case Radius::residual:
      // A plain sum of as many terms as there are observations, rounded up.
      beta = std::sqrt(residual_square(ridge.surprises * (1.0 + (ridge.count + 8.0) * EPS), s));
      break;
    case Radius::likelihood:
      return s.theta_bound;  // the ball is all that is left: the likelihood set is a fact beside it
    case Radius::amm:
    case Radius::dual:
    case Radius::best:
      beta = std::sqrt(amm_event(ridge.log_det(), s) + s.ridge * s.theta_bound * s.theta_bound);
      break;
  }
  return s.misfit > 0.0 ? beta + s.misfit * std::sqrt(ridge.count) : beta;
}

}  // namespace surefoot
