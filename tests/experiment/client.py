"""A process that decides and rewards from several threads until it is killed, and notes what it was told.

Everything is drawn from the decision's id, so that a later process can ask again what an earlier one asked without
hearing back. Notes go to a file, one line each, written at once.
"""

import itertools
import os
import random
import threading
import time
import zlib
from typing import Any

import numpy as np

from surefoot.errors import JournalError
from surefoot.experiment import Answer, Experiment
from surefoot.journal import open_journal
from tests.experiment.worlds import safe_policy

NAME, THREADS, SNAPSHOT_EVERY = "shop", 4, 60


def question_of(decision_id: str) -> dict[str, Any]:
    rng = np.random.default_rng(zlib.crc32(decision_id.encode()))
    return {"features": rng.uniform(0.0, 0.7, size=(3, 2)), "baseline": 0, "decision_id": decision_id}


def reward_of(decision_id: str) -> float:
    return random.Random(decision_id).random()


def played_of(decision_id: str) -> int | None:
    """What was really played, of every fourth decision; None where it was played as decided."""
    number = zlib.crc32(decision_id.encode())
    return number // 4 % 3 if number % 4 == 0 else None


def told(answer: Answer) -> str:
    # As it was decided: a void changes what the answer says, and not what was decided.
    return f"{answer.decision_id} {answer.round} {answer.record.action} {answer.record.source}"


class Client:
    """Asks, and notes "ask" before and "got" after; "voided" after a void; "pay" before and "paid" after a reward."""

    def __init__(self, experiment: Experiment, notes: int) -> None:
        self.experiment, self.notes = experiment, notes

    def note(self, line: str) -> None:
        os.write(self.notes, f"{line}\n".encode())

    def visit(self, decision_id: str) -> None:
        self.note(f"ask {decision_id}")
        self.note(f"got {told(self.experiment.decide(**question_of(decision_id)))}")
        if (played := played_of(decision_id)) is not None:
            self.experiment.void(decision_id, played)
            self.note(f"voided {decision_id}")
        self.note(f"pay {decision_id}")
        receipt = self.experiment.reward(decision_id, reward_of(decision_id))
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


def begin(address: str, **settings: Any) -> None:
    with open_journal(address) as journal:
        Experiment.create(journal, NAME, safe_policy(), mode="guarded", **settings)


def _warm_up() -> None:
    """Load the machine code once, in the process that all others are forked from."""
    experiment = Experiment.create(open_journal("memory:"), NAME, safe_policy(), mode="guarded")
    experiment.reward(experiment.decide(**question_of("warm")).decision_id, 0.5)
    experiment.snapshot()


_warm_up()
