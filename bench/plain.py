"""Plain NumPy versions of CLUCB and LinUCB: rank-one updates, no checks, no certificate, no late rewards.

`PlainCLUCB` is what surefoot is held against. Of the forms of the squared widths it has the one that is fastest at
every size measured here: `((X M) ** 2).sum(1)` with a root M of V^-1 takes up to 1.4 times as long, and the einsum of
three operands 2 to 25 times.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class PlainCLUCB:
    """What a good engineer writes in half an hour from the paper, and then profiles."""

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
    ) -> None:
        self.dim, self.alpha, self.delta, self.noise, self.ridge = dim, alpha, delta, noise, ridge
        self.theta_bound, self.feature_bound = theta_bound, feature_bound
        self.inverse = np.eye(dim) / ridge
        self.theta, self.played = np.zeros(dim), np.zeros(dim)
        self.count, self.kept, self.total = 0, 0.0, 0.0

    def decide(self, rows: Array, baseline: int, baseline_reward: float) -> tuple[int, bool]:
        """The row to play, and whether it is the learner's."""
        beta = self.radius()
        upper = np.sqrt(np.einsum("ij,ij->i", rows.dot(self.inverse), rows))
        upper *= beta
        upper += rows.dot(self.theta)
        return self.judge(rows, int(upper.argmax()), beta, baseline, baseline_reward)

    def radius(self) -> float:
        """The paper's radius of the confidence set."""
        log = math.log((1 + (self.count + 1) * self.feature_bound**2 / self.ridge) / self.delta)
        return self.noise * math.sqrt(self.dim * log) + math.sqrt(self.ridge) * self.theta_bound

    def judge(self, rows: Array, action: int, beta: float, baseline: int, baseline_reward: float) -> tuple[int, bool]:
        """Play the optimistic row if the floor is kept in the worst case.  (paper, Algorithm 1)"""
        question = self.played + rows[action]
        lower = question.dot(self.theta) - beta * math.sqrt(question.dot(self.inverse).dot(question))
        self.total += baseline_reward
        if lower + self.kept >= (1 - self.alpha) * self.total:
            self.played = question
            return action, True
        self.kept += baseline_reward
        return baseline, False

    def observe(self, features: Array, is_learner: bool, reward: float) -> None:
        """Sherman-Morrison, of theta too."""
        if is_learner:
            step = self.inverse.dot(features)
            scaled = step / (1.0 + features.dot(step))
            self.theta += (reward - features.dot(self.theta)) * scaled
            self.inverse -= step[:, None] * scaled
            self.count += 1


class TextbookCLUCB(PlainCLUCB):
    """The same formulas as one writes them down, before profiling."""

    def __init__(self, **told: float) -> None:
        super().__init__(**told)  # type: ignore[arg-type]
        self.moment = np.zeros(self.dim)

    def decide(self, rows: Array, baseline: int, baseline_reward: float) -> tuple[int, bool]:
        """The row to play, and whether it is the learner's."""
        beta = self.radius()
        squares = np.einsum("ij,ij->i", rows @ self.inverse, rows)
        action = int(np.argmax(rows @ self.theta + beta * np.sqrt(squares)))
        return self.judge(rows, action, beta, baseline, baseline_reward)

    def observe(self, features: Array, is_learner: bool, reward: float) -> None:
        """Sherman-Morrison."""
        if is_learner:
            step = self.inverse @ features
            self.inverse -= np.outer(step, step) / (1 + features @ step)
            self.moment += reward * features
            self.theta = self.inverse @ self.moment
            self.count += 1


class CachedCLUCB(PlainCLUCB):
    """For rows that stay the same: their means and squared widths follow each reward by its rank-one step."""

    def __init__(self, rows: Array, **told: float) -> None:
        super().__init__(**told)  # type: ignore[arg-type]
        self.rows, self.means = rows, np.zeros(len(rows))
        self.squares = np.einsum("ij,ij->i", rows, rows) / self.ridge

    def decide(self, rows: Array, baseline: int, baseline_reward: float) -> tuple[int, bool]:
        """The row to play, and whether it is the learner's."""
        beta = self.radius()
        upper = np.sqrt(self.squares)
        upper *= beta
        upper += self.means
        return self.judge(rows, int(upper.argmax()), beta, baseline, baseline_reward)

    def observe(self, features: Array, is_learner: bool, reward: float) -> None:
        """Sherman-Morrison, of the scores too."""
        if is_learner:
            step = self.inverse.dot(features)
            gain, error = 1.0 + features.dot(step), reward - features.dot(self.theta)
            scaled, along = step / gain, self.rows.dot(step)
            self.means += (error / gain) * along
            along *= along
            along /= gain
            self.squares -= along
            self.theta += error * scaled
            self.inverse -= step[:, None] * scaled
            self.count += 1


def settings(dim: int, feature_bound: float) -> dict[str, Any]:
    """A setting in which the learner plays nearly always, so that both sides do all their work."""
    return {
        "dim": dim, "alpha": 0.9, "delta": 0.001, "noise": 0.01, "ridge": 1.0,
        "theta_bound": 1.0, "feature_bound": feature_bound,
    }  # fmt: skip


class PlainLinUCB:
    """LinUCB with one inverse per action, as libraries for bandits write it (Li et al. 2010, disjoint models)."""

    def __init__(self, *, actions: int, dim: int, width: float) -> None:
        self.inverses, self.moments, self.width = np.stack([np.eye(dim)] * actions), np.zeros((actions, dim)), width

    def decide(self, context: Array) -> int:
        """The action with the largest upper bound."""
        uppers = [
            context.dot(inverse.dot(moment)) + self.width * math.sqrt(context.dot(inverse).dot(context))
            for inverse, moment in zip(self.inverses, self.moments, strict=True)
        ]
        return int(np.argmax(uppers))

    def observe(self, action: int, context: Array, reward: float) -> None:
        """A rank-one update of the action's inverse."""
        step = self.inverses[action].dot(context)
        self.inverses[action] -= np.outer(step, step) / (1 + context.dot(step))
        self.moments[action] += reward * context


class StackedLinUCB:
    """The same written for speed: all inverses in one product, and theta and the inverse follow by rank-one steps."""

    def __init__(self, *, actions: int, dim: int, width: float) -> None:
        self.inverses, self.theta, self.width = np.stack([np.eye(dim)] * actions), np.zeros((actions, dim)), width
        self.flat = self.inverses.reshape(actions * dim, dim)  # the same memory, as one matrix
        self.along = np.zeros((actions, dim))

    def decide(self, context: Array) -> int:
        """The action with the largest upper bound."""
        self.flat.dot(context, out=self.along.reshape(-1))
        uppers = np.sqrt(self.along.dot(context))
        uppers *= self.width
        uppers += self.theta.dot(context)
        return int(uppers.argmax())

    def observe(self, action: int, context: Array, reward: float) -> None:
        """Sherman-Morrison, with the product that the decision made."""
        step = self.along[action]
        scaled = step / (1.0 + context.dot(step))
        self.theta[action] += (reward - context.dot(self.theta[action])) * scaled
        self.inverses[action] -= step[:, None] * scaled
