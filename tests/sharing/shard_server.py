"""A server that decides as one shard from several threads until it is killed, and notes what its callers were told.

Everything is drawn from the decision's id, so that a later process can ask again what an earlier one asked without
hearing back.
"""

import itertools
import os
import threading
import time
import zlib
from contextlib import ExitStack
from typing import Any

import numpy as np

import surefoot
from surefoot.errors import JournalError
from surefoot.experiment import Answer, Experiment, create_shared
from surefoot.journal import Journal, open_journal
from tests.worlds import Array

NAME, THREADS, EVERY, ALPHA = "shop", 3, 40, 0.1
PAUSE = 0.01  # kills are to be many, and not rounds
THETA = np.array([0.5, 0.4])
RESERVE, MEANS = 3.0, (0.5, 0.6)  # of a guard: what it may spend, and what baseline and proposal earn


def begin_in(hub: Journal, *, is_guard: bool = False) -> None:
    if is_guard:
        guard = surefoot.Guard(alpha=ALPHA, delta=0.001, reserve=RESERVE)
        create_shared(hub, NAME, guard, mode="guarded", skew=5.0)
        return
    told: dict[str, Any] = {"noise": 0.1, "theta_bound": 0.7, "feature_bound": 1.0, "reward_range": (0.0, 1.0)}
    policy = surefoot.SafeLUCB(dim=2, alpha=ALPHA, delta=0.001, **told)
    create_shared(hub, NAME, policy, mode="guarded", skew=5.0)


def rows_of(decision_id: str) -> Array:
    rng = np.random.default_rng(zlib.crc32(decision_id.encode()))
    return rng.uniform(0.0, 0.7, size=(3, 2))


def reward_of(decision_id: str, action: int) -> float:
    rng = np.random.default_rng(zlib.crc32(f"reward {decision_id}".encode()))
    return float(rows_of(decision_id)[action] @ THETA + 0.1 * rng.normal())


def paid_by_guard(decision_id: str, action: int) -> float:
    rng = np.random.default_rng(zlib.crc32(f"reward {decision_id}".encode()))
    return float(rng.random() < MEANS[action])


def told(answer: Answer) -> str:
    return f"{answer.decision_id} {answer.round} {answer.action} {answer.source}"


class Caller:
    """Asks, and notes "ask" before and "got" after, "paid" after a reward."""

    def __init__(self, shop: Experiment, notes: int) -> None:
        self.shop, self.notes = shop, notes

    def note(self, line: str) -> None:
        os.write(self.notes, f"{line}\n".encode())

    def visit(self, decision_id: str) -> None:
        self.note(f"ask {decision_id}")
        answer: Any
        if self.shop.settings.policy == "LeasedGuard":
            answer, earn = self.shop.decide(baseline=0, proposal=1, decision_id=decision_id), paid_by_guard
        else:
            answer, earn = self.shop.decide(rows_of(decision_id), baseline=0, decision_id=decision_id), reward_of
        self.note(f"got {told(answer)}")
        receipt = self.shop.reward(decision_id, earn(decision_id, answer.action))
        self.note(f"paid {decision_id}" if receipt.is_accepted else f"refused {receipt.refused}")

    def keep_visiting(self, prefix: str) -> None:
        for n in itertools.count():
            self.visit(f"{prefix}-{n}")
            time.sleep(PAUSE)


def joined(hub: Journal, own: Journal, shard: str) -> Any:
    """The shard, with leases that are short."""
    return Experiment.join(hub, NAME, own, shard=shard, every=EVERY, seconds=0.3)


def patiently(hub: str, own: str, shard: str) -> Any:
    """The same, once the place where shards meet answers."""
    while True:
        with ExitStack() as opened:
            try:
                place, journal = (opened.enter_context(open_journal(address)) for address in (hub, own))
                shop = joined(place, journal, shard)
                opened.pop_all()
                return shop
            except JournalError:
                time.sleep(0.05)


def live(hub: str, own: str, shard: str, life: int, notes: str, unsure: list[str]) -> None:
    """Ask again what is unsure, then new things, until the end."""
    caller = Caller(patiently(hub, own, shard), os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    for decision_id in unsure:
        caller.visit(decision_id)
    caller.note("ready")
    for n in range(THREADS):
        threading.Thread(target=caller.keep_visiting, args=(f"{shard}.{life}.{n}",)).start()


def _warm_up() -> Any:
    """Load the machine code once, in the process that all others are forked from."""
    hub, own = open_journal("memory:"), open_journal("memory:")
    begin_in(hub)
    return joined(hub, own, "a").decide(rows_of("warm"), baseline=0)


_warm_up()
