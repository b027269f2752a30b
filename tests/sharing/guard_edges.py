"""Edges of a guard, in a world whose truth is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.edge import GuardEdge
from tests.edge.edges import Shop

ALPHA, RESERVE = 0.1, 5.0
GUARD = {"alpha": ALPHA, "delta": 0.05, "reserve": RESERVE, "ramp": "gate"}


@dataclass
class GuardShop(Shop):
    """A guard on a running server."""

    def create(self, **extra: Any) -> None:
        settings = {**GUARD, **extra.pop("settings", {})}
        super_body = {"name": self.name, "policy": "Guard", "settings": settings, "mode": "guarded"}
        answer = self.ask("POST", "/v1/experiments", {**super_body, "ledger": "sharded", **extra})
        assert answer.status_code == 201, answer.text

    def guard(self, shard: str = "app", **extra: Any) -> GuardEdge:
        told: dict[str, Any] = {"key": self.keys / "head.pub", "log": self.folder / f"{shard}.log"}
        told |= {"experiment": self.name, "in_background": False}
        return GuardEdge(self.address, shard=shard, **{**told, **extra})


class World:
    """What was really earned beside the baseline: the slack of all rounds, coins averaged."""

    def __init__(self, seed: int) -> None:
        self.rng, self.slack, self.least = np.random.default_rng(seed), 0.0, 0.0

    def visit(self, edge: GuardEdge, learner: float, baseline: float, *, is_paid: bool = True, **asked: Any) -> Any:
        made = edge.decide(baseline="old", proposal="new", **asked)
        self.slack += made.share * learner + (ALPHA - made.share) * baseline
        self.least = min(self.least, self.slack)
        reward = float(self.rng.random() < (learner if made.source == "learner" else baseline))
        if is_paid:
            assert edge.reward(made.decision_id, reward).is_accepted
        return made

    def play(self, edge: GuardEdge, rounds: int, learner: float = 0.9, baseline: float = 0.5) -> int:
        """Rounds with their rewards; how many were the proposal's."""
        return sum(self.visit(edge, learner, baseline).source == "learner" for _ in range(rounds))
