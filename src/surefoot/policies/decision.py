"""Decisions: what a policy answers in one round, and what its reward is observed with."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from surefoot.arrays import Vector
from surefoot.errors import DecisionError, InputError
from surefoot.safety.certificate import Certificate
from surefoot.values import Value

Source = Literal["learner", "baseline"]


class Decision(Value, frozen=True):
    """One round's decision: what to play, whose idea it was, and why it is safe."""

    round: int
    source: Source
    features: Vector
    policy: str
    _row: int
    _certify: Callable[[], Certificate]

    @property
    def certificate(self) -> Certificate:
        """What was guaranteed, what was required, and the proof."""
        return self._certify()

    @property
    def action(self) -> int:
        """Row of the features to play; an action set without rows has none, read `features` there."""
        if self._row < 0:
            raise InputError(
                "`action` is a row index, but this decision was made over a set without rows. "
                "Read `decision.features`, the feature vector to play."
            )
        return self._row


def round_of(decision: Any, policy: str) -> int:
    """The round of a decision of this policy, given as the decision or as the number of its round."""
    if isinstance(decision, Decision):
        if decision.policy != policy:
            raise DecisionError(
                f"`decision` must be one of this policy's ({policy}), but it was made by policy {decision.policy}. "
                "Give it to the policy that made it."
            )
        return decision.round
    if isinstance(decision, (int, np.integer)) and not isinstance(decision, bool):
        return int(decision)
    raise DecisionError(f"`decision` must be a Decision or the number of its round, but got {decision!r}.")
