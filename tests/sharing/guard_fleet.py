"""A guard whose bank is shared by experiments in journals of their own, in a world whose truth is known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import Journal
from surefoot.policies import guard
from tests.leases.test_sharded_experiment import Clock

ALPHA, RESERVE, NAME = 0.1, 5.0, "shop"


def seeded_coins(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Coins that fall the same in every run: those of an experiment come from the system."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(guard, "draw_coin", lambda *_: float(rng.random()))


class GuardFleet:
    """A guard in one journal, and shards in files of their own."""

    def __init__(self, folder: Path, hub: Journal, *, mode: Any = "guarded", window: float | None = None, **extra: Any):
        self.folder, self.hub, self.clock = folder, hub, Clock()
        told = {"alpha": ALPHA, "delta": 0.05, "reserve": RESERVE, "ramp": "gate", **extra}
        create_shared(hub, NAME, surefoot.Guard(**told), mode=mode, skew=1.0, reward_window=window, clock=self.clock)
        self.journals: dict[str, Journal] = {}

    def join(self, shard: str, *, every: int = 20, clock: Callable[[], float] | None = None) -> Experiment:
        if shard in self.journals:
            self.journals[shard].close()
        self.journals[shard] = surefoot.open_journal(f"sqlite:///{self.folder}/{shard}.db")
        told: dict[str, Any] = {"every": every, "seconds": 1e9, "clock": clock or self.clock, "in_background": False}
        return Experiment.join(self.hub, NAME, self.journals[shard], shard=shard, **told)

    def close(self) -> None:
        for journal in self.journals.values():
            journal.close()


class World:
    """What was really earned beside the baseline: the slack of all rounds, coins averaged."""

    def __init__(self, seed: int) -> None:
        self.rng, self.slack, self.least = np.random.default_rng(seed), 0.0, 0.0

    def visit(self, shop: Experiment, learner: float, baseline: float, *, is_paid: bool = True) -> Any:
        made = shop.decide(baseline="old", proposal="new" if self.rng.random() < 0.9 else "old")
        self.slack += made.share * learner + (ALPHA - made.share) * baseline
        self.least = min(self.least, self.slack)
        reward = float(self.rng.random() < (learner if made.source == "learner" else baseline))
        if is_paid:
            assert shop.reward(made.decision_id, reward).is_accepted
        return made

    def play(self, shop: Experiment, rounds: int, learner: float = 0.8, baseline: float = 0.6) -> int:
        """Rounds with their rewards; how many were the learner's."""
        return sum(self.visit(shop, learner, baseline).source == "learner" for _ in range(rounds))
