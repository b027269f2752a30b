"""How far the truth may lie from the estimate: the paper's radius beta, and the settings it depends on.

Settings travel through compiled code as one array, `settings`, read by these names.
"""

import math

from surefoot.arrays import Vector
from surefoot.compiled import compiled
from surefoot.linear.ridge import COUNT, DIM

NOISE, DELTA, RIDGE, THETA_BOUND, FEATURE_BOUND, ALPHA, REWARD_FLOOR, SETTINGS = range(8)


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
def radius_of(settings: Vector, state: Vector) -> float:
    """The paper's radius of a ridge state."""
    return paper_radius(
        state[COUNT],
        state[DIM],
        settings[DELTA],
        settings[NOISE],
        settings[RIDGE],
        settings[THETA_BOUND],
        settings[FEATURE_BOUND],
    )
