"""The plain NumPy version of CLUCB: einsum and Sherman-Morrison, no checks, no certificate, no late rewards."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class PlainCLUCB:
    """What a good engineer writes in half an hour from the paper."""

    def __init__(
        self,
        *,
        dim: int,
        alpha: float,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
        blas: bool = False,
    ) -> None:
        self.dim, self.alpha, self.delta, self.noise, self.ridge = dim, alpha, delta, noise, ridge
        self.theta_bound, self.feature_bound, self.blas = theta_bound, feature_bound, blas
        self.inverse = np.eye(dim) / ridge
        self.moment, self.theta, self.played = np.zeros(dim), np.zeros(dim), np.zeros(dim)
        self.count, self.kept, self.total = 0, 0.0, 0.0

    def decide(self, rows: Array, baseline: int, baseline_reward: float) -> tuple[int, bool]:
        """The row to play, and whether it is the learner's."""
        log = math.log((1 + (self.count + 1) * self.feature_bound**2 / self.ridge) / self.delta)
        beta = self.noise * math.sqrt(self.dim * log) + math.sqrt(self.ridge) * self.theta_bound
        if self.blas:  # faster than one einsum where rows are many and long
            squares = np.einsum("ij,ij->i", rows @ self.inverse, rows)
        else:
            squares = np.einsum("ij,jk,ik->i", rows, self.inverse, rows)
        action = int(np.argmax(rows @ self.theta + beta * np.sqrt(squares)))
        question = self.played + rows[action]
        lower = question @ self.theta - beta * math.sqrt(question @ self.inverse @ question)
        self.total += baseline_reward
        if lower + self.kept >= (1 - self.alpha) * self.total:
            self.played = question
            return action, True
        self.kept += baseline_reward
        return baseline, False

    def observe(self, features: Array, is_learner: bool, reward: float) -> None:
        """Sherman-Morrison."""
        if is_learner:
            step = self.inverse @ features
            self.inverse -= np.outer(step, step) / (1 + features @ step)
            self.moment += reward * features
            self.theta = self.inverse @ self.moment
            self.count += 1


def settings(dim: int, feature_bound: float) -> dict[str, Any]:
    """A setting in which the learner plays nearly always, so that both sides do all their work."""
    return {
        "dim": dim, "alpha": 0.9, "delta": 0.001, "noise": 0.01, "ridge": 1.0,
        "theta_bound": 1.0, "feature_bound": feature_bound,
    }  # fmt: skip
