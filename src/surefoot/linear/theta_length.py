"""How long theta can be, where actions are known whose means lie in a range: a bound that needs no data."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import finite_array
from surefoot.errors import InputError

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
