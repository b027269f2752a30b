"""A policy of one's own, as a user would write it: epsilon-greedy over a ridge regression, without a floor."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import surefoot
from surefoot.arrays import Vector


class EpsilonGreedy(surefoot.Policy):
    def __init__(self, *, dim: int, epsilon: float = 0.1, ridge: float = 0.3, seed: int = 0) -> None:
        super().__init__({"dim": dim, "epsilon": epsilon, "ridge": ridge, "seed": seed})
        self.dim, self.epsilon, self.seed = dim, epsilon, seed
        self.gram, self.sums = ridge * np.eye(dim), np.zeros(dim)

    def decide(
        self,
        features: Any,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        hold: bool = False,
    ) -> surefoot.Decision:
        rows = np.asarray(features, dtype=np.float64)
        theta = np.linalg.solve(self.gram, self.sums)
        # By the round, so that a restored policy draws what the old one would have drawn.
        rng = np.random.default_rng([self.seed, self.rounds])
        row = int(rng.integers(len(rows))) if rng.random() < self.epsilon else int(np.argmax(rows @ theta))
        return self.play(rows, int(baseline or 0) if hold else row, proposal=row, is_held=hold)

    def learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        self.gram += np.outer(features, features)
        self.sums += reward * features

    def arrays(self) -> dict[str, Any]:
        return {"gram": self.gram.copy(), "sums": self.sums.copy()}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        self.gram[:], self.sums[:] = arrays["gram"], arrays["sums"]
