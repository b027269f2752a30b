"""Ridge states, settings and scores for tests, and the same scores by a numpy solve."""

import math
from typing import Any

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.core import native
from surefoot.linear.ridge import Ridge, sized

EPS = 2.0**-53


def settings_with(**given: Any) -> Any:
    """Settings of the core; what a test does not name is odd on purpose."""
    settings = native.LinearSettings()
    named = {"noise": 0.5, "ridge": 0.3, "delta": 0.01, "theta_bound": 1.3, "feature_bound": 10.0, **given}
    for name, value in named.items():
        setattr(settings, name, value)
    return settings


def learned(dim: int, count: int, *, seed: int, ridge: float = 0.3, scale: Vector | None = None) -> Ridge:
    rng = np.random.default_rng(seed)
    state = Ridge(dim=dim, ridge=ridge)
    for _ in range(count):
        x = rng.normal(size=dim) / math.sqrt(dim)
        state.observe(x if scale is None else x * scale, rng.normal())
    return state


def policy_of(settings: Any, state: Ridge) -> Any:
    """LUCB in the core, which knows what this ridge state says."""
    core = sized("LUCB", state.core.dim)(state.core.dim, settings)
    core.assign_ridge(state.core)
    return core


def fresh(state: Ridge, rows: Matrix) -> tuple[Vector, Vector]:
    """Means and squares by a numpy solve from V and b."""
    theta = np.linalg.solve(state.gram, state.moment)
    squares = np.einsum("ai,ia->a", rows, np.linalg.solve(state.gram, rows.T))
    return rows @ theta, squares


def scored(state: Ridge, rows: Matrix) -> tuple[Vector, Vector]:
    """Means and squares of rows that are new."""
    means, squares = policy_of(settings_with(), state).scores(rows)
    return means, squares


def proposed(settings: Any, state: Ridge, rows: Matrix) -> tuple[int, float]:
    """The optimistic row and its UCB."""
    core = policy_of(settings, state)
    row, upper = core.propose(rows, core.radius)
    return int(row), float(upper)
