"""Synthetic logs with known truth, for all tests of this folder."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.replay.log import ArrayLog
from surefoot.replay.replayed_policy import Declared

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """A log, the mean reward of every action in every round, and settings that hold in it."""

    log: ArrayLog
    means: Matrix
    declared: Declared


def linear_log(
    rounds: int,
    *,
    seed: int,
    actions: int = 4,
    dim: int = 3,
    noise: float = 0.2,
    full: bool = False,
    chances: Callable[[Matrix], Matrix] | None = None,
    binary: bool = False,
) -> Truth:
    """Nonnegative unit rows, means in [0, 1]; actions drawn uniformly or by `chances` of the means."""
    rng = np.random.default_rng(seed)
    theta = np.abs(rng.normal(size=dim))
    theta /= np.linalg.norm(theta)
    features = np.abs(rng.normal(size=(rounds, actions, dim)))
    features /= np.linalg.norm(features, axis=2, keepdims=True)
    means = features @ theta
    odds = np.full((rounds, actions), 1 / actions) if chances is None else chances(means)
    played = (rng.random((rounds, 1)) > np.cumsum(odds, axis=1)).sum(axis=1).clip(0, actions - 1)
    at = np.arange(rounds)
    drawn: Array = means + noise * rng.normal(size=means.shape)
    if binary:
        drawn = (rng.random(means.shape) < means).astype(float)
    log = ArrayLog(
        features=features,
        actions=played,
        rewards=drawn if full else drawn[at, played],
        baselines=0,
        propensities=None if full else odds[at, played],
        feature_bound=1.0 + 1e-9,
    )
    declared = Declared(0.5 if binary else noise, 1.0, float(means[:, 0].mean()), (0.0, 1.0) if binary else None)
    return Truth(log, means, declared)


def sharp(means: Matrix) -> Matrix:
    """Unequal chances that follow the means: better actions are played more often."""
    odds = np.exp(3 * means)
    shares: Vector = odds / odds.sum(axis=1, keepdims=True)
    return shares
