"""A process that asks a guard from several threads until it is killed, and notes every coin that it was told."""

import os
import random
import threading
from typing import Any

from surefoot import Guard
from surefoot.experiment import Answer, Experiment
from surefoot.journal import open_journal
from tests.experiment.client import NAME, SNAPSHOT_EVERY, THREADS, Client


def question_of(decision_id: str) -> dict[str, Any]:
    """A question drawn from the id, so that a later process asks the same; users come back."""
    rng = random.Random(decision_id)
    unit = f"user-{rng.randrange(30)}" if rng.random() < 0.5 else None
    return {"baseline": "big", "proposal": {"small": rng.randrange(5)}, "unit": unit, "decision_id": decision_id}


def reward_of(decision_id: str) -> float:
    return 0.3 * random.Random(f"reward {decision_id}").random()


def told(answer: Answer) -> str:
    record = answer.record
    return f"{answer.decision_id} {answer.round} {record.draw!r} {record.share!r} {answer.source}"


class GuardClient(Client):
    """Asks a guard, and notes the coin."""

    def visit(self, decision_id: str) -> None:
        self.note(f"ask {decision_id}")
        self.note(f"got {told(self.experiment.decide(**question_of(decision_id)))}")
        self.note(f"pay {decision_id}")
        receipt = self.experiment.reward(decision_id, reward_of(decision_id))
        if receipt.is_accepted:
            self.note(f"kept {decision_id}")
        # A unit may have closed while nobody was alive to pay.
        is_fine = receipt.is_accepted or receipt.refused == "too_late"
        self.note(f"paid {decision_id}" if is_fine else f"refused {receipt.refused}")


def live(address: str, prefix: str, notes: str, unsure: list[str]) -> None:
    """Ask again what is unsure, then new things, until the end."""
    client = GuardClient(
        Experiment.open(open_journal(address), NAME, snapshot_every=SNAPSHOT_EVERY),
        os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
    )
    for decision_id in unsure:
        client.visit(decision_id)
    client.note("ready")
    for n in range(THREADS):
        threading.Thread(target=client.keep_visiting, args=(f"{prefix}.{n}",)).start()


def begin(address: str) -> None:
    with open_journal(address) as journal:
        Experiment.create(journal, NAME, new_guard(), mode="guarded")


def new_guard() -> Guard:
    return Guard(alpha=0.4, delta=0.2, unit_window=40)


def _warm_up() -> None:
    """Load the machine code once, in the process that all others are forked from."""
    experiment = Experiment.create(open_journal("memory:"), NAME, new_guard(), mode="guarded")
    for number in range(60):
        experiment.decide(**question_of(f"warm-{number}"))
        experiment.reward(f"warm-{number}", 0.1)
    experiment.snapshot()


_warm_up()
