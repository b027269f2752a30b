"""A small random world to try a policy in: features, a baseline that may move, mean rewards in [0, 1], seeded noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass
class TrialWorld:
    """A linear world, drawn from a generator.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of everything random.
    dim, actions : int
        Number of features and of actions.
    noise : float
        Standard deviation of a reward.
    changing : bool
        Whether every round has new feature rows.
    moving : bool
        Whether every round has another baseline.
    best_reward : float
        No mean reward is larger.
    rank : int, optional
        Where given, the baseline is the action of this rank, 0 the best.

    Examples
    --------
    >>> world = TrialWorld(np.random.default_rng(0), dim=3, actions=5, noise=0.05, changing=True, moving=False)
    >>> rows, baseline, means = world.round()
    >>> rows.shape, bool(means.max() <= 1)
    ((5, 3), True)
    """

    rng: np.random.Generator
    dim: int
    actions: int
    noise: float
    changing: bool
    moving: bool
    best_reward: float = 1.0
    rank: int | None = None

    def __post_init__(self) -> None:
        self.theta = np.abs(self.rng.normal(size=self.dim)) + 0.05
        self.feature_bound = float(self.rng.uniform(0.5, 3.0))
        # Rows are nonnegative and no longer than D, so dividing by B D keeps every mean reward in [0, 1].
        self.theta *= self.best_reward / (np.linalg.norm(self.theta) * self.feature_bound)
        self.theta_bound = float(np.linalg.norm(self.theta)) * 1.1
        self._fixed = self._draw()
        self._baseline = int(self.rng.integers(self.actions))

    def _draw(self) -> Array:
        rows = np.abs(self.rng.normal(size=(self.actions, self.dim)))
        lengths = self.feature_bound * self.rng.uniform(0.2, 1.0, size=(self.actions, 1))
        drawn: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths
        return drawn

    def round(self) -> tuple[Array, int, Array]:
        """Features, the baseline's row, and the mean reward of every action."""
        rows = self._draw() if self.changing else self._fixed
        baseline = int(self.rng.integers(self.actions)) if self.moving else self._baseline
        means = rows @ self.theta
        if self.rank is not None:
            baseline = int(np.argsort(-means)[self.rank])
        return rows, baseline, means

    def reward(self, mean: float) -> float:
        """One noisy reward.

        Parameters
        ----------
        mean : float
            Its mean.

        Returns
        -------
        float
            The reward.
        """
        return float(mean + self.noise * self.rng.normal())

    def settings(self, *, ridge: float, delta: float, noise: float | None = None) -> dict[str, Any]:
        """What a linear policy is told of this world.

        Parameters
        ----------
        ridge : float
            Regulariser lambda.
        delta : float
            Probability that the guarantee may fail.
        noise : float, optional
            Sub-Gaussian scale, if it shall be told another than the true one.

        Returns
        -------
        dict
            dim, delta, noise, ridge, theta_bound and feature_bound, as policies take them.
        """
        return {
            "dim": self.dim,
            "delta": delta,
            "noise": self.noise if noise is None else noise,
            "ridge": ridge,
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
        }
