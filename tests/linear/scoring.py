"""Ridge states, settings and scores for tests, and the same scores by a numpy solve."""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.linear.radius import DELTA, FEATURE_BOUND, NOISE, RIDGE, SETTINGS, THETA_BOUND
from surefoot.linear.ridge import Ridge
from surefoot.linear.scores import new_scores, score_rows

EPS = 2.0**-53


def settings_with(*, feature_bound: float = 10.0, noise: float = 0.5, ridge: float = 0.3) -> Vector:
    settings = np.zeros(SETTINGS)
    settings[NOISE], settings[RIDGE], settings[DELTA] = noise, ridge, 0.01
    settings[THETA_BOUND], settings[FEATURE_BOUND] = 1.3, feature_bound
    return settings


def learned(dim: int, count: int, *, seed: int, ridge: float = 0.3, scale: Vector | None = None) -> Ridge:
    rng = np.random.default_rng(seed)
    state = Ridge(dim=dim, ridge=ridge)
    for _ in range(count):
        x = rng.normal(size=dim) / math.sqrt(dim)
        state.observe(x if scale is None else x * scale, rng.normal())
    return state


def fresh(state: Ridge, rows: Matrix) -> tuple[Vector, Vector]:
    """Means and squares by a numpy solve from V and b."""
    theta = np.linalg.solve(state.gram, state.moment)
    squares = np.einsum("ai,ia->a", rows, np.linalg.solve(state.gram, rows.T))
    return rows @ theta, squares


def scored(state: Ridge, rows: Matrix) -> Matrix:
    """Scores of rows that are new."""
    scores = new_scores(len(rows)) + np.nan
    score_rows(state.buffer, rows, scores)
    return scores
