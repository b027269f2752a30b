"""A world with a truth, and a fleet of shards over it, for the tests of leases."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from surefoot.leases import Coordinator, Shard

import surefoot
from tests.worlds import Array

ALPHA = 0.1
SETTINGS: dict[str, Any] = {
    "dim": 3, "alpha": ALPHA, "delta": 0.01, "noise": 0.1, "theta_bound": 1.05, "feature_bound": 1.0, "ridge": 0.3,
    "reward_range": (0.0, 1.0),
}  # fmt: skip
BOUNDED = {"noise": None, "reward_bounds": (0.0, 1.0)}


@dataclass
class World:
    """Rows and a truth with means in [0, 1]; the baseline is neither the best row nor the worst."""

    rng: np.random.Generator
    is_bounded: bool = False  # rewards are 0 or 1
    theta: Array = field(init=False)
    rows: Array = field(init=False)
    slack: float = 0.0
    least: float = 0.0

    def __post_init__(self) -> None:
        theta = np.abs(self.rng.normal(size=3)) + 0.05
        self.theta = theta / np.linalg.norm(theta)
        rows = np.abs(self.rng.normal(size=(5, 3)))
        rows *= self.rng.uniform(0.2, 1.0, size=(5, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
        self.rows = rows[np.argsort(rows @ self.theta)]
        self.baseline = 3

    def visit(self, shard: Shard, moment: float) -> float:
        """Have one round decided, count it by the truth, and return its reward."""
        return self.played(shard.decide(self.rows, baseline=self.baseline, moment=moment).action)

    def played(self, action: int) -> float:
        """Count a round by the truth, and draw its reward."""
        means = self.rows @ self.theta
        self.slack += float(means[action] - (1 - ALPHA) * means[self.baseline])
        self.least = min(self.least, self.slack)
        if self.is_bounded:
            return float(self.rng.random() < means[action])
        return float(means[action] + 0.1 * self.rng.normal())


def new_coordinator(*, skew: float = 1e6, **extra: Any) -> Coordinator:
    return Coordinator(surefoot.SafeLUCB(**{**SETTINGS, **extra}), skew=skew)
