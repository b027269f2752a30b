"""What ConservativeUCB found as a proof: by an interval of each arm, or by the likelihood set over all of them."""

from typing import Any

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.safety.facts import Box, Fact, Linear
from surefoot.safety.likelihood import LIKELIHOOD, Tangent
from surefoot.safety.proof import Piece, Proof, assemble, bounded, summed
from surefoot.values import Value


class ArmsPromise(Value, frozen=True):
    """What is promised of a default arm: the share of its reward that is kept, and its mean if that is known."""

    default: int
    share: float
    known: float | None

    def question(self, plays: Vector, proposal: int, round_: int) -> Vector:
        """The weight of each arm's mean in what must not be negative, with the proposal already played."""
        weights = plays.copy()
        weights[proposal] += 1
        weights[self.default] -= self.share * round_
        return weights


def intervals_proof(promise: ArmsPromise, weights: Vector, intervals: Matrix) -> Proof:
    """One fact per arm: its mean is at least lambda_i, or at most theta_0."""
    axes = np.eye(weights.size)
    parts: list[tuple[Fact, Vector]] = []
    for i, weight in enumerate(weights):
        name = f"{'reward' if i == promise.default and promise.known is not None else 'interval'} of arm {i}"
        parts.append((_side_of(axes[i], weight, (intervals[0, i], intervals[1, i]), name), weight * axes[i]))
    return assemble(weights, parts)


def likelihood_proof(promise: ArmsPromise, weights: Vector, means: Box, split: Any) -> Proof:
    """A tangent of the likelihood set, and for what it leaves of the question the range of each mean.

    Without a tangent the pieces are the question, entry by entry, so that nothing is left: an exact 0 stays one.
    """
    weight, level, normal, point = split
    carried = [
        Piece(tangent, weight * normal, tangent.times(weight))
        for tangent in ([Tangent(normal, level, LIKELIHOOD, point)] if weight > 0 else [])
    ]
    left = weights - weight * normal if carried else weights
    axes = np.eye(weights.size)
    parts: list[tuple[Fact, Vector]] = []
    for i, part in enumerate(left):
        is_known = i == promise.default and promise.known is not None
        # What is kept is a share of the default arm's mean, which is therefore never negative.
        least = max(means.low, 0.0) if i == promise.default else means.low
        ends = (promise.known, promise.known) if is_known else (least, means.high)
        name = f"{'reward' if is_known else 'declared range'} of arm {i}"
        parts.append((_side_of(axes[i], part, ends, name), part * axes[i]))
    return summed(weights, [*carried, *bounded(parts)], means if carried else None)


def _side_of(axis: Vector, weight: float, ends: tuple[Any, Any], name: str) -> Linear:
    """That a mean is at least its lower end, or at most its upper one, as a weight of this sign needs it."""
    return Linear(axis, float(ends[0]), name) if weight >= 0 else Linear(-axis, -float(ends[1]), name)
