"""The radius beta of the confidence set, in five kinds, and the set that needs none; formulas are in `core/radius.hpp`.

Each holds for all rounds at once with probability 1 - delta, under its own assumptions:

paper      Kazerouni et al., below eq. (5). sigma-sub-Gaussian noise, ||theta|| <= B, ||x|| <= D; d >= 2.
logdet     Abbasi-Yadkori et al. (2011), Theorem 2. The same without D, at the volume that the data really span.
amm        Flynn et al. (2023), the analytic bound of their adaptive martingale mixtures. As logdet, never larger.
dual       Flynn et al. (2023), their convex set by duality: the same event as amm, read at any ridge a >= 0.
residual   Jun and Kim (2024), LOSAN. `noise` may be pessimistic, 1/2 for rewards in [0, 1]: small residuals shrink it.
likelihood No ellipsoid: the likelihood-ratio set of bounded rewards (`core/likelihood.hpp`), without a noise scale.
best       amm and likelihood, each with half of delta: what bounds a question better is used.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import finite_array
from surefoot.core import native
from surefoot.errors import ConfigError, InputError

# In the order of the core's `Radius`.
RADII = {name: code for code, name in enumerate(("paper", "logdet", "amm", "dual", "residual", "likelihood", "best"))}
BY_LIKELIHOOD = ("likelihood", "best")  # those that use the likelihood set of bounded rewards
ELLIPSOIDS = tuple(name for name in RADII if name not in BY_LIKELIHOOD)


def paper_radius(
    observations: float, dim: int, delta: float, noise: float, ridge: float, theta_bound: float, feature_bound: float
) -> float:
    """beta = sigma sqrt(d ln((1 + (k+1) D^2/lambda) / delta)) + sqrt(lambda) B, k observations in the set.

    >>> round(paper_radius(0, 4, 0.001, 1.0, 1.0, 1.0, 4.0), 4)
    7.2421
    """
    settings = native.LinearSettings()
    settings.delta, settings.noise, settings.ridge = delta, noise, ridge
    settings.theta_bound, settings.feature_bound = theta_bound, feature_bound
    return float(native.paper_radius(observations, dim, settings))


def read_radius(radius: str, *, dim: int, misspecification: float, is_bounded: bool = False) -> int:
    """The code of a radius by name, where it is valid; `is_bounded` where single rewards have declared bounds."""
    if radius not in RADII:
        names = RADII if is_bounded else ELLIPSOIDS
        raise ConfigError(f"`radius` must be one of {', '.join(names)}, but got {radius!r}.")
    if radius in BY_LIKELIHOOD and not is_bounded:
        raise ConfigError(
            f"`reward_bounds` must be given with radius={radius!r}: the likelihood set is made of rewards in known "
            "bounds. Give SafeLUCB reward_bounds=(0, 1) for clicks, or take 'amm'."
        )
    if radius == "paper" and dim == 1:
        raise ConfigError(
            "`dim >= 2` must hold with the paper's radius, but got dim=1. There it is smaller than the theorem it "
            "rests on allows; take `radius='amm'`, or pad the only feature with a zero."
        )
    if radius in ("dual", "residual", *BY_LIKELIHOOD) and misspecification > 0:
        raise ConfigError(
            f"`misspecification` must be 0 with radius={radius!r}, but got {misspecification}. That radius reads the "
            "rewards themselves, whose error it cannot tell from noise; take 'amm'."
        )
    return RADII[radius]


MOST_UNEVEN = 1e8  # ratio of singular values beyond which floats no longer resolve the rows
SHORTEST = 1e-100  # rows: the squares of what is longer can be added up


def bound_theta(rows: ArrayLike, reward_range: Sequence[float]) -> float:
    """The largest ||theta|| at which the means of all these rows lie in the range: a proof for `theta_bound`.

    With rows X of full rank theta = X^+ m for its means m, and every m lies in a box. The fewer directions the rows
    hardly tell apart, the smaller the bound.

    Parameters
    ----------
    rows : array_like of shape (rows, dim)
        Features of actions that can be played, such as a catalogue's; they must span all dimensions.
    reward_range : (low, high)
        Where their mean rewards lie; (0, 1) for clicks.

    Returns
    -------
    float
        B with ||theta|| <= B, rounded up.

    Raises
    ------
    InputError
        If the range is none, or the rows leave a direction of theta open.

    Examples
    --------
    >>> round(bound_theta(np.eye(4), (0.0, 1.0)), 3)     # plain arms: the square root of their number
    2.0
    """
    x = finite_array("rows", rows, ndim=2)
    ends = finite_array("reward_range", reward_range, ndim=1)
    if ends.size != 2 or not ends[0] < ends[1]:
        raise InputError(f"`reward_range` must be (low, high) with low < high, but got {reward_range!r}.")
    low, high = ends.tolist()
    sizes = np.linalg.svd(x, compute_uv=False) if x.size else np.zeros(1)
    if x.shape[0] < x.shape[1] or not sizes[-1] * MOST_UNEVEN > sizes[0] > 0.0:
        raise InputError(
            f"`rows` must span all {x.shape[1]} dimensions, but they leave a direction open: no bound on rewards "
            "bounds theta there. Give more rows, or declare `theta_bound` yourself."
        )
    if not SHORTEST < sizes[-1] <= sizes[0] < 1.0 / SHORTEST:
        raise InputError(f"`rows` must have lengths that floats can work with, but got {sizes[0]:g}. Rescale them.")
    inverse = np.linalg.pinv(x)
    # m = center + spread s with |s_j| <= 1: entry i of theta is at most |center_i| + spread sum_j |X^+_ij| off 0, and
    # ||m|| / sigma_min bounds the whole.
    center, spread = 0.5 * (low + high), 0.5 * (high - low)
    by_entry = np.abs(center * inverse.sum(axis=1)) + spread * np.abs(inverse).sum(axis=1)
    by_length = max(abs(low), abs(high)) * np.sqrt(x.shape[0]) / sizes[-1]
    return float(min(np.linalg.norm(by_entry), by_length) * (1.0 + 1e-6))
