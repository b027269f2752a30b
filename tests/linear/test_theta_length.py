"""A bound on theta from rows whose means lie in a range."""

import itertools
import re
from typing import Any

import numpy as np
import pytest

from surefoot import SafeLUCB
from surefoot.errors import ConfigError, InputError
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


TOLD: dict[str, Any] = {"dim": 3, "alpha": 0.1, "delta": 0.01, "noise": 0.5, "feature_bound": 2.0}


@pytest.mark.parametrize(
    ("declared", "means"),
    [
        ({"reward_bounds": (0, 1)}, (0.0, 1.0)),
        ({"reward_range": (0.1, 0.4)}, (0.1, 0.4)),
        ({"reward_bounds": (0, 1), "reward_range": np.array([0.1, 0.4])}, (0.1, 0.4)),
        ({"reward_range": (0.1, 0.4), "misspecification": 0.05}, (0.05, 0.45)),
    ],
)
def test_a_policy_that_is_told_its_actions_needs_no_bound(declared: dict[str, Any], means: tuple[float, float]) -> None:
    rows = np.array([[1.0, 0.5, 0.0], [0.2, 1.0, 0.3], [0.0, 0.4, 1.0], [0.5, 0.5, 0.5]])
    policy = SafeLUCB(**TOLD, **declared, actions=rows)
    assert policy.settings["theta_bound"] == pytest.approx(bound_theta(rows, means), rel=1e-12)
    assert SafeLUCB.from_state(policy.state()).settings["theta_bound"] == policy.settings["theta_bound"]


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ({}, "`theta_bound` or `actions` must be given"),
        ({"actions": np.eye(3)}, "need `reward_bounds` or `reward_range`"),
        ({"actions": np.eye(3), "theta_bound": 1.0, "reward_bounds": (0, 1)}, "in place of `theta_bound`"),
        ({"actions": np.eye(4), "reward_bounds": (0, 1)}, "dim=3 columns"),
        ({"actions": 100 * np.eye(3), "reward_bounds": (0, 1)}, "rows that can be played"),
        ({"actions": np.eye(3)[:2], "reward_bounds": (0, 1)}, "a direction open"),
        ({"actions": np.eye(3), "reward_range": (0, 1, 2)}, "`reward_range` must be (low, high)"),
        ({"actions": np.eye(3), "reward_range": (0, 1), "misspecification": np.nan}, "`misspecification` must"),
    ],
)
def test_actions_that_prove_no_bound_are_refused(declared: dict[str, Any], text: str) -> None:
    with pytest.raises((ConfigError, InputError), match=re.escape(text)):
        SafeLUCB(**TOLD, **declared)
