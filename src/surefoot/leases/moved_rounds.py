"""What is proved of a shard's rounds since a caller said of some that they were not played as decided.

A round that is moved from x to y changes the question by q(y) - q(x), which costs B ||q(x) - q(y)|| at most, whatever
theta is. So the proof is carried on, and what the shard hands in is true, though it may be less than minus its lease
(docs/mathematics.md, "Leases"). Once the learner plays again, the whole question has been proved anew.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.linear.ellipsoid import EPS


class MovedRounds:
    """The rounds that were moved under one lease; none, if it is new."""

    def __init__(self, saved: Sequence[float] | Vector = ()) -> None:
        self._cost, self._level, self._learner_rounds = (float(one) for one in saved[:3]) if len(saved) else (0.0,) * 3
        self._normal: Vector | None = np.array(saved[3:], dtype=np.float64) if len(saved) else None

    def save(self) -> Vector:
        """All of it, as numbers."""
        if self._normal is None:
            return np.zeros(0)
        return np.array([self._cost, self._level, self._learner_rounds, *self._normal])

    def cost(self, learner_rounds: float) -> float:
        """By how much the rounds may lie below minus the lease, which now counts so many rounds of the learner."""
        return self._cost if self._is_in_force(learner_rounds) else 0.0

    def proved(self, question: Vector, level: float, amount: float, learner_rounds: float) -> tuple[Vector, float]:
        """The question of all rounds, and what it is worth at least; `question` and `level` are the policy's own."""
        if self._normal is not None and self._is_in_force(learner_rounds):
            question, level = question + self._normal, level + self._level
        return question, max(level, -amount - self.cost(learner_rounds))

    def move(self, proved: tuple[Vector, float], change: Vector, bound: float, before: float, after: float) -> None:
        """Take `change` off the question; the lease counted so many rounds of the learner before and after."""
        question, level = proved
        length = float(np.linalg.norm(change))
        rounding = 8.0 * EPS * (bound * (float(np.linalg.norm(question)) + length) + abs(level))
        cost = bound * length * (1.0 + 16.0 * EPS) + rounding
        self._cost = self.cost(before) + cost
        self._normal, self._level, self._learner_rounds = question - change, level - cost, after

    def _is_in_force(self, learner_rounds: float) -> bool:
        return self._normal is not None and learner_rounds == self._learner_rounds


def question_of(played: Any, displaced: Any, alpha: float, *, is_learner: bool) -> Vector:
    """What one round adds to the question."""
    row: Vector = played - (1.0 - alpha) * displaced if is_learner else alpha * displaced
    return row
