"""The radius beta of the confidence set, in five kinds: how far theta may lie from its estimate.

Each holds for all rounds at once with probability 1 - delta, under its own assumptions:

paper      Kazerouni et al., below eq. (5). sigma-sub-Gaussian noise, ||theta|| <= B, ||x|| <= D; d >= 2.
logdet     Abbasi-Yadkori et al. (2011), Theorem 2. The same without D, at the volume that the data really span.
amm        Flynn et al. (2023), the analytic bound of their adaptive martingale mixtures. As logdet, never larger.
dual       Flynn et al. (2023), their convex set by duality: the same event as amm, read at any ridge a >= 0.
residual   Jun and Kim (2024), LOSAN. `noise` may be pessimistic, 1/2 for rewards in [0, 1]: small residuals shrink it.

A misspecification epsilon, |E y - <theta, x>| <= epsilon, widens paper, logdet and amm by epsilon sqrt(observations):
||sum x e||_{V^-1} <= ||e||. dual and residual use the rewards themselves, and cannot be combined with it.

Settings travel through compiled code as one array, `settings`, read by these names.
"""

import math

from surefoot.arrays import Vector
from surefoot.compiled import compiled
from surefoot.errors import ConfigError
from surefoot.linear.ridge_layout import COUNT, DIM, EPS, SURPRISES, log_det_of

(
    NOISE, DELTA, RIDGE, THETA_BOUND, FEATURE_BOUND, ALPHA, REWARD_FLOOR, RADIUS_KIND, MISFIT, RANGE_LOW, RANGE_HIGH,
    SUM_DELTA, CONSTRAINT, AMOUNT, GATE, OPTIMISM_KIND, WATCHFUL, SETTINGS,
) = range(18)  # fmt: skip

PAPER, LOGDET, AMM, DUAL, RESIDUAL = range(5)
RADII = {"paper": PAPER, "logdet": LOGDET, "amm": AMM, "dual": DUAL, "residual": RESIDUAL}


@compiled
def paper_radius(
    observations: float,
    dim: float,
    delta: float,
    noise: float,
    ridge: float,
    theta_bound: float,
    feature_bound: float,
) -> float:
    """beta = sigma sqrt(d ln((1 + (k+1) D^2/lambda) / delta)) + sqrt(lambda) B, k observations in the set.

    The paper, below eq. (5) for CLUCB and below the nested sets of Section 4 for CLUCB2. Abbasi-Yadkori et al. (2011,
    Theorem 2) need 2 ln(1/delta) where this has d ln(1/delta): for d = 1 it is too small, and policies refuse it.

    >>> round(paper_radius.function(0, 4, 0.001, 1.0, 1.0, 1.0, 4.0), 4)
    7.2421
    """
    log_ratio = math.log((1.0 + (observations + 1.0) * feature_bound**2 / ridge) / delta)
    return noise * math.sqrt(dim * log_ratio) + math.sqrt(ridge) * theta_bound


@compiled
def logdet_radius(log_det: float, delta: float, noise: float, ridge: float, theta_bound: float) -> float:
    """beta = sigma sqrt(ln(det V / lambda^d) + 2 ln(1/delta)) + sqrt(lambda) B.  (Abbasi-Yadkori et al. 2011)"""
    return noise * math.sqrt(log_det + 2.0 * math.log(1.0 / delta)) + math.sqrt(ridge) * theta_bound


@compiled
def amm_square(log_det: float, delta: float, noise: float, ridge: float, theta_bound: float) -> float:
    """beta^2 = sigma^2 (ln(det V / lambda^d) + 2 ln(1/delta)) + lambda B^2.  (Flynn et al. 2023)"""
    return noise * noise * (log_det + 2.0 * math.log(1.0 / delta)) + ridge * theta_bound * theta_bound


@compiled
def residual_square(surprises: float, delta: float, noise: float, ridge: float, theta_bound: float) -> float:
    """beta^2 = lambda B^2 + 2 sigma_0^2 ln(1/delta) + sum e_s^2 D_s^2.  (Jun and Kim 2024)

    e_s is the error with which round s was predicted, D_s^2 = x_s^T V_s^-1 x_s its leverage.
    """
    return ridge * theta_bound * theta_bound + 2.0 * noise * noise * math.log(1.0 / delta) + surprises


@compiled
def radius_of(settings: Vector, state: Vector) -> float:
    """The radius of a ridge state, of the kind that the settings name; `dual` is amm before a set is chosen."""
    kind = settings[RADIUS_KIND]
    noise, delta, ridge, bound = settings[NOISE], settings[DELTA], settings[RIDGE], settings[THETA_BOUND]
    if kind == PAPER:
        beta = paper_radius(state[COUNT], state[DIM], delta, noise, ridge, bound, settings[FEATURE_BOUND])
    elif kind == LOGDET:
        beta = logdet_radius(log_det_of(state), delta, noise, ridge, bound)
    elif kind == RESIDUAL:
        # A plain sum of as many terms as there are observations, rounded up.
        seen = state[SURPRISES] * (1.0 + (state[COUNT] + 8.0) * EPS)
        beta = math.sqrt(residual_square(seen, delta, noise, ridge, bound))
    else:
        beta = math.sqrt(amm_square(log_det_of(state), delta, noise, ridge, bound))
    if settings[MISFIT] > 0.0:
        beta += settings[MISFIT] * math.sqrt(state[COUNT])
    return beta


def read_radius(radius: str, *, dim: int, misspecification: float) -> int:
    """The code of a radius by name, where it is valid."""
    if radius not in RADII:
        raise ConfigError(f"`radius` must be one of {', '.join(RADII)}, but got {radius!r}.")
    if radius == "paper" and dim == 1:
        raise ConfigError(
            "`dim >= 2` must hold with the paper's radius, but got dim=1. There it is smaller than the theorem it "
            "rests on allows; take `radius='amm'`, or pad the only feature with a zero."
        )
    if radius in ("dual", "residual") and misspecification > 0:
        raise ConfigError(
            f"`misspecification` must be 0 with radius={radius!r}, but got {misspecification}. That radius reads the "
            "rewards themselves, whose error it cannot tell from noise; take 'amm'."
        )
    return RADII[radius]
