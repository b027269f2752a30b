"""A bound on theta from rows whose means lie in a range."""

import itertools
import re
from typing import Any

import numpy as np
import pytest

from surefoot.errors import InputError
from surefoot.linear import bound_theta


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-0.3, 0.1), (0.2, 0.7)])
def test_no_theta_whose_means_keep_the_range_is_longer(dim: int, bounds: tuple[float, float]) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(dim, dim))
    # A norm is convex: with as many rows as dimensions its largest value lies at a corner of the box of means.
    longest = max(np.linalg.norm(np.linalg.solve(rows, m)) for m in itertools.product(bounds, repeat=dim))
    assert longest <= bound_theta(rows, bounds) <= 2.0 * longest


def test_more_rows_than_dimensions_hold_theta_closer() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 3))
    bound = bound_theta(rows, (-1.0, 1.0))
    # As far along each direction as the means of all rows keep the range.
    directions = rng.normal(size=(5_000, 3))
    longest = (np.linalg.norm(directions, axis=1) / np.abs(directions @ rows.T).max(axis=1)).max()
    assert longest <= bound <= 4.0 * longest
    assert bound < bound_theta(rows[:3], (-1.0, 1.0))


@pytest.mark.parametrize(
    ("rows", "bounds", "text"),
    [
        ([[1.0, 0.0], [2.0, 0.0]], (0, 1), "a direction open"),
        ([[1.0, 0.0]], (0, 1), "a direction open"),
        (np.zeros((2, 2)), (0, 1), "a direction open"),
        ([[1.0, 0.0], [1.0, 1e-9]], (0, 1), "a direction open"),
        (np.eye(2), (1, 0), "low < high"),
        (np.eye(2), (0, 1, 2), "low < high"),
        ([[np.nan, 0.0], [0.0, 1.0]], (0, 1), "must be finite"),
        (1e300 * np.eye(2), (0, 1), "floats can work with"),
        (1e-320 * np.eye(2), (0, 1), "must"),
        (np.zeros((0, 2)), (0, 1), "a direction open"),
        (np.eye(2), 0.5, "reward_range"),
        (np.eye(2), None, "reward_range"),
    ],
)
def test_what_bounds_nothing_is_refused(rows: Any, bounds: Any, text: str) -> None:
    with pytest.raises(InputError, match=re.escape(text)):
        bound_theta(rows, bounds)
