"""Shards as experiments in journals of their own, over a hub that may be away, in worlds whose truth is known."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import SharedReport, audit_shards
from surefoot.errors import JournalUnavailableError
from surefoot.experiment import Experiment, create_shared, kinds
from surefoot.journal import Journal
from tests.sharing.shards import ALPHA, SETTINGS, World

NAME = "shop"
RESERVE = {"name": "reserve", "granted": 20.0}
GUARD: dict[str, Any] = {"alpha": ALPHA, "delta": 0.05, "reserve": 5.0, "ramp": "gate"}


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        self.time += 0.001
        return self.time


class Away:
    """A hub that does not answer, or only after it has done what was asked; or one with a clock."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.is_away, self.loses_answers = journal, False, False
        self.told: Callable[[], float | None] = journal.clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def clock(self) -> float | None:
        if self.is_away:
            raise JournalUnavailableError("The server must answer, but does not.")
        return self.told()

    def transact(self, *args: Any, **kwargs: Any) -> Any:
        self.clock()
        result = self.journal.transact(*args, **kwargs)
        if self.loses_answers:
            raise JournalUnavailableError("The answer was lost.")
        return result


Journal.register(Away)


class Fleet:
    """An experiment in one journal, and shards in files of their own."""

    def __init__(self, folder: Path, hub: Any, *, mode: Any = "guarded", name: str = NAME, **extra: Any) -> None:
        self.folder, self.hub, self.clock = folder, hub, Clock()
        settings = {key: extra.pop(key) for key in ("reward_window", "reward_bounds") if key in extra and self.splits}
        policy = self.policy(extra)
        create_shared(hub, name, policy, mode=mode, skew=1.0, clock=self.clock, **settings)
        self.journals: dict[str, Journal] = {}

    splits = False

    def policy(self, extra: dict[str, Any]) -> Any:
        return surefoot.SafeLUCB(**{**SETTINGS, **extra})

    def join(self, shard: str, *, every: int = 10, clock: Callable[[], float] | None = None, **extra: Any) -> Any:
        if shard in self.journals:
            self.journals[shard].close()
        self.journals[shard] = surefoot.open_journal(f"sqlite:///{self.folder}/{shard}.db")
        told: dict[str, Any] = {"every": every, "seconds": 1e9, "clock": clock or self.clock, "in_background": False}
        return Experiment.join(self.hub, NAME, self.journals[shard], shard=shard, **told, **extra)

    def audit(self) -> SharedReport:
        return audit_shards(self.hub, NAME, self.journals)

    def close(self) -> None:
        for journal in self.journals.values():
            journal.close()


class GuardFleet(Fleet):
    """The same of a guard."""

    splits = True

    def policy(self, extra: dict[str, Any]) -> Any:
        return surefoot.Guard(**{**GUARD, **extra})


def at(shop: Experiment, look: Callable[[Any], Any]) -> Any:
    """What the coordinator knows, where the shards meet."""
    assert shop.leases is not None
    return shop.leases.hub.look(lambda state, view: look(state.coordinator))


def of_shard(shop: Experiment, look: Callable[[Any], Any]) -> Any:
    """What a shard knows of its lease."""
    return shop.look(lambda state: look(state.shard))


def findings(report: SharedReport) -> list[Any]:
    """All findings, of all chains."""
    assert not report.missing
    return [
        (one.name, found.what, found.text) for one in (report.hub, *report.shards.values()) for found in one.findings
    ]


def play(world: World, shop: Experiment, rounds: int) -> int:
    """Rounds with their rewards; how many were the learner's."""
    learner = 0
    for _ in range(rounds):
        answer = shop.decide(world.rows, baseline=world.baseline)
        learner += answer.source == "learner"
        assert shop.reward(answer.decision_id, world.played(answer.action)).is_accepted
    return learner


class GuardWorld:
    """What was really earned beside the baseline: the slack of all rounds, coins averaged."""

    def __init__(self, seed: int) -> None:
        self.rng, self.slack, self.least = np.random.default_rng(seed), 0.0, 0.0

    def visit(self, shop: Experiment, learner: float, baseline: float, *, is_paid: bool = True, **asked: Any) -> Any:
        proposal = "new" if self.rng.random() < 0.9 else "old"
        made = shop.decide(baseline="old", **{"proposal": proposal, **asked})
        assert made.share is not None
        self.slack += made.share * learner + (ALPHA - made.share) * baseline
        self.least = min(self.least, self.slack)
        reward = float(self.rng.random() < (learner if made.source == "learner" else baseline))
        if is_paid:
            assert shop.reward(made.decision_id, reward).is_accepted
        return made

    def play(self, shop: Experiment, rounds: int, learner: float = 0.8, baseline: float = 0.6) -> int:
        """Rounds with their rewards; how many were the learner's."""
        return sum(self.visit(shop, learner, baseline).source == "learner" for _ in range(rounds))


def seeded_coins(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Coins that fall the same in every run: their secrets and the ids of decisions follow from a seed."""
    rng, numbers = np.random.default_rng(seed), itertools.count()
    patch.setattr("surefoot.experiment.coins.secrets.token_bytes", lambda size: rng.bytes(size))
    patch.setattr(kinds, "new_id", lambda: f"visit-{seed}-{next(numbers)}")
