"""A policy of one's own that keeps a floor and can be voided, written with public names alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.linear import Ball
from surefoot.safety import Certificate, Linear, Proof, assemble

ROWS = np.array([[0.6, 0.1], [0.9, 0.3]])
KNOWN = 0.5  # the mean reward of row 0, the baseline; no mean is negative


class Thrifty(surefoot.Policy):
    """Plays row 1 as often as the floor holds though it may earn nothing."""

    def __init__(self, *, alpha: float) -> None:
        super().__init__({"alpha": alpha})
        self.dim, self.alpha, self.played = 2, alpha, np.zeros(2)  # rounds of each row

    def decide(
        self, features: Any, *, baseline: Any = None, baseline_reward: Any = None, hold: bool = False
    ) -> surefoot.Decision:
        if_played = self.played + np.array([0.0, 1.0])
        guaranteed, required = KNOWN * if_played[0], (1.0 - self.alpha) * KNOWN * if_played.sum()
        row = int(guaranteed >= required and not hold)
        self.played[row] += 1.0

        def certify() -> Certificate:
            return Certificate(guaranteed, required, 1, np.inf, lambda: self.prove(if_played), is_held=hold)

        return self.conclude(row, row == 1, ROWS[row], certify)

    def prove(self, played: Any) -> Proof:
        learner, kept = played[1] * ROWS[1], (played[0] - (1.0 - self.alpha) * played.sum()) * ROWS[0]
        mean = Linear(np.sign(kept[0]) * ROWS[0], float(np.sign(kept[0]) * KNOWN), "known reward of the baseline")
        return assemble(learner + kept, [(Linear(ROWS[1], 0.0, "no negative mean"), learner), (mean, kept)], Ball(1.0))

    def rebook(
        self, round_: int, features: Any, baseline: Any, baseline_reward: Any, decided: tuple[int, bool], played: int
    ) -> bytes:
        self.played[decided[0]] -= 1.0
        self.played[played] += 1.0
        return bytes(ROWS[played].tobytes())

    def learn(self, features: Any, reward: float, is_learner: bool) -> None:
        pass

    def arrays(self) -> dict[str, Any]:
        return {"played": self.played.copy()}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        self.played[:] = arrays["played"]


def test_a_floor_and_a_void_need_no_private_name() -> None:
    policy = Thrifty(alpha=0.2)
    decisions = [policy.decide(ROWS, baseline=0) for _ in range(20)]
    assert [one.action for one in decisions[:6]] == [0, 0, 0, 0, 1, 0]
    assert sum(one.action for one in decisions) == 4
    for one in decisions:
        surefoot.check(one)
    last = decisions[4]
    policy.void(last, ROWS, baseline=0, action=1, source="learner", played=0)
    assert policy.played.tolist() == [17.0, 3.0]
    assert policy.decide(ROWS, baseline=0).action == 1
    with pytest.raises(surefoot.SurefootError):
        policy.void(decisions[5], ROWS, baseline=0, action=1, source="learner", played=0)
