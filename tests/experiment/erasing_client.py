"""A process that decides, voids, confirms, rewards, corrects, forks and erases in a sealed experiment until its end."""

import os
import threading
import zlib
from contextlib import suppress
from typing import Any

import numpy as np

from surefoot.errors import DecisionError, DecisionSettledError
from surefoot.experiment import Experiment, fork
from surefoot.journal import Journal, open_journal
from tests.experiment.client import NAME, SNAPSHOT_EVERY, Client, played_of, request_of, reward_of, told
from tests.experiment.worlds import safe_policy

THREADS = 3
CONFIRM_WITHIN = 30.0  # seconds; a void that comes later raises the alarm


def is_erased(decision_id: str) -> bool:
    """Whether a decision's text is to be erased: every second."""
    return zlib.crc32(decision_id.encode()) % 2 == 0


def corrected_of(decision_id: str) -> float | None:
    """What the reward should have been, of every third decision."""
    return 1.0 - reward_of(decision_id) if zlib.crc32(decision_id.encode()) % 3 == 0 else None


def is_forked(decision_id: str) -> bool:
    """Whether the experiment is forked after a decision: every eighth."""
    return zlib.crc32(decision_id.encode()) % 8 == 1


class ErasingClient(Client):
    """Notes "ask", "got", "confirmed", "paid", "corrected"; "erasing" and "erased", "forking" and "forked".

    A correction is refused where the reward was learned at once.
    """

    def __init__(self, journal: Journal, notes: int) -> None:
        super().__init__(Experiment.open(journal, NAME, snapshot_every=SNAPSHOT_EVERY), notes)
        self.journal = journal

    def visit(self, decision_id: str) -> None:
        self.note(f"ask {decision_id}")
        answer = self.experiment.decide(**request_of(decision_id), context={"person": decision_id})
        self.note(f"got {told(self.experiment, answer)}")
        if (played := played_of(decision_id)) is not None:
            self.experiment.void(decision_id, played)
        elif self.experiment.confirm([decision_id]):
            self.note(f"confirmed {decision_id}")
        receipt = self.experiment.reward(decision_id, reward_of(decision_id))
        self.note(f"paid {decision_id}" if receipt.is_accepted else f"refused {receipt.refused}")
        if (value := corrected_of(decision_id)) is not None:
            self.correct(decision_id, value)
        if is_forked(decision_id):
            self.fork(decision_id)
        if is_erased(decision_id):
            self.erase(decision_id)

    def visited(self, decision_id: str) -> bool:
        super().visited(decision_id)
        return True  # it may be erased, and its id is then anybody's

    def correct(self, decision_id: str, value: float) -> None:
        with suppress(DecisionSettledError):
            self.experiment.correct(decision_id, value, reason="measured wrongly", by="a test")
            self.note(f"corrected {decision_id}")

    def fork(self, decision_id: str) -> None:
        self.note(f"forking {decision_id}")
        fork(self.journal, NAME, decision_id, changes={"alpha": 0.3}, reason="more may be risked", by="a test")
        self.note(f"forked {decision_id}")

    def erase(self, decision_id: str) -> None:
        self.note(f"erasing {decision_id}")
        self.experiment.erase(person=decision_id, by="a test")
        self.note(f"erased {decision_id}")


def live(address: str, prefix: str, notes: str, erasing: list[str]) -> None:
    """Finish the erasures that are in doubt, then visit until the end."""
    client = ErasingClient(open_journal(address), os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    for decision_id in erasing:
        client.erase(decision_id)
    client.note("ready")
    for n in range(THREADS):
        threading.Thread(target=client.keep_visiting, args=(f"{prefix}.{n}",)).start()


def begin(address: str) -> None:
    with open_journal(address) as journal:
        # With a past, so that the learner plays from the first round on: only its rounds are confirmed.
        names = [f"past-{n}" for n in range(400)]
        past = (
            np.array([request_of(name)["features"][0] for name in names]),
            np.array([reward_of(name) for name in names]),
        )
        settings: dict[str, Any] = {"sealed": True, "confirm_within": CONFIRM_WITHIN, "history": past}
        Experiment.create(journal, NAME, safe_policy(), mode="guarded", **settings)


def is_gone(experiment: Experiment, decision_id: str) -> bool:
    try:
        experiment.find(decision_id)
    except DecisionError:
        return True
    return False
