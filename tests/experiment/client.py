"""A process that decides and rewards from several threads until it is killed, and notes what it was told.

Everything is drawn from the decision's id, so that a later process can ask again what an earlier one asked without
hearing back. Notes go to a file, one line each, written at once.
"""

import itertools
import json
import os
import random
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot import Guard
from surefoot.errors import DecisionSettledError, JournalError
from surefoot.experiment import Answer, Experiment
from surefoot.journal import open_journal
from surefoot.rounds.events import PairRound, RowsRound
from tests.experiment.worlds import safe_policy

NAME, THREADS, SNAPSHOT_EVERY = "shop", 4, 60
POLICIES: dict[str, Callable[[], Any]] = {
    "rows": safe_policy,
    "pair": lambda: Guard(alpha=0.4, delta=0.2, unit_window=40),
}


def request_of(decision_id: str, kind: str = "rows") -> dict[str, Any]:
    """A request drawn from the id; of a guard, users come back."""
    if kind == "rows":
        rng = np.random.default_rng(zlib.crc32(decision_id.encode()))
        return {"features": rng.uniform(0.0, 0.7, size=(3, 2)), "baseline": 0, "decision_id": decision_id}
    draw = random.Random(decision_id)
    unit = f"user-{draw.randrange(30)}" if draw.random() < 0.5 else None
    return {"baseline": "big", "proposal": {"small": draw.randrange(5)}, "unit": unit, "decision_id": decision_id}


def reward_of(decision_id: str, kind: str = "rows") -> float:
    """A reward drawn from the id; of a guard, visits of one user add up."""
    return random.Random(f"reward {decision_id}").random() * (1.0 if kind == "rows" else 0.3)


def played_of(decision_id: str, kind: str = "rows") -> Any:
    """What was really played, of every fourth decision; None where it was played as decided."""
    number = zlib.crc32(decision_id.encode())
    if number % 4:
        return None
    return number // 4 % 3 if kind == "rows" else ["big", {"small": 7}][number // 4 % 2]


def line_of(record: Answer | RowsRound | PairRound, head: tuple[int, str]) -> str:
    """A decision as its caller was told; the hash of its event stands for everything in it."""
    return f"{record.decision_id} {json.dumps([record.round, record.action, record.source, *head])}"


def told(experiment: Experiment, answer: Answer) -> str:
    """The line of an answer: a void changes what it says, and not what was decided."""
    assert answer.head is not None
    record = experiment.round(answer.decision_id) if answer.is_voided else answer
    return line_of(record, (answer.head.number, answer.head.hash))


class Client:
    """Notes "ask" before a decision and "got" after it, "voided", and what became of the reward: "paid", "late"."""

    def __init__(self, experiment: Experiment, notes: int) -> None:
        self.experiment, self.notes = experiment, notes
        self.kind = "pair" if experiment.settings.policy == "Guard" else "rows"

    def note(self, line: str) -> None:
        os.write(self.notes, f"{line}\n".encode())

    def visit(self, decision_id: str) -> None:
        self.note(f"ask {decision_id}")
        self.note(f"got {told(self.experiment, self.experiment.decide(**request_of(decision_id, self.kind)))}")
        if (played := played_of(decision_id, self.kind)) is not None:
            try:
                self.experiment.void(decision_id, played)
                self.note(f"voided {decision_id}")
            except DecisionSettledError:
                self.note(f"settled {decision_id}")
        receipt = self.experiment.reward(decision_id, reward_of(decision_id, self.kind))
        if receipt.refused == "too_late":
            self.note(f"late {decision_id}")
        else:
            self.note(f"paid {decision_id}" if receipt.is_accepted else f"refused {receipt.refused}")

    def keep_visiting(self, prefix: str) -> None:
        for n in itertools.count():
            while not self.visited(f"{prefix}-{n}"):
                time.sleep(0.02)

    def visited(self, decision_id: str) -> bool:
        try:
            self.visit(decision_id)
        except JournalError as error:
            self.note(f"error {type(error).__name__}")
            return False
        return True


def live(address: str, prefix: str, notes: str, unsure: list[str]) -> None:
    """Ask again what is unsure, then new things, until the end."""
    client = Client(
        Experiment.open(open_journal(address), NAME, snapshot_every=SNAPSHOT_EVERY),
        os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
    )
    for decision_id in unsure:
        client.visit(decision_id)
    client.note("ready")
    for n in range(THREADS):
        threading.Thread(target=client.keep_visiting, args=(f"{prefix}.{n}",)).start()


def begin(address: str, kind: str = "rows", **settings: Any) -> None:
    with open_journal(address) as journal:
        Experiment.create(journal, NAME, POLICIES[kind](), mode="guarded", **settings)


def _warm_up() -> None:
    """Load the machine code once, in the process that all others are forked from."""
    for kind, policy in POLICIES.items():
        experiment = Experiment.create(open_journal("memory:"), NAME, policy(), mode="guarded")
        for number in range(60 if kind == "pair" else 1):
            experiment.decide(**request_of(f"warm-{number}", kind))
            experiment.reward(f"warm-{number}", 0.1)
        experiment.snapshot()


_warm_up()
