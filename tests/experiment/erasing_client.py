"""A process that decides, voids, rewards and erases in a sealed experiment until it is killed, and notes it."""

import itertools
import os
import threading
import time
import zlib

from surefoot.errors import DecisionError, JournalError
from surefoot.experiment import Answer, Experiment
from surefoot.journal import open_journal
from tests.experiment.client import NAME, SNAPSHOT_EVERY, played_of, question_of, reward_of, told
from tests.experiment.worlds import safe_policy

THREADS = 3


def is_erased(decision_id: str) -> bool:
    """Whether a decision's text is to be erased: every second."""
    return zlib.crc32(decision_id.encode()) % 2 == 0


class Client:
    """Notes "ask", "got", "paid", and around an erasure "erasing" and "erased"."""

    def __init__(self, experiment: Experiment, notes: int) -> None:
        self.experiment, self.notes = experiment, notes

    def note(self, line: str) -> None:
        os.write(self.notes, f"{line}\n".encode())

    def visit(self, decision_id: str) -> None:
        self.note(f"ask {decision_id}")
        answer = self.experiment.decide(**question_of(decision_id), context={"person": decision_id})
        assert isinstance(answer, Answer)
        self.note(f"got {told(answer)}")
        if (played := played_of(decision_id)) is not None:
            self.experiment.void(decision_id, played)
        receipt = self.experiment.reward(decision_id, reward_of(decision_id))
        self.note(f"paid {decision_id}" if receipt.is_accepted else f"refused {receipt.refused}")
        if is_erased(decision_id):
            self.erase(decision_id)

    def erase(self, decision_id: str) -> None:
        self.note(f"erasing {decision_id}")
        self.experiment.erase(person=decision_id, by="a test")
        self.note(f"erased {decision_id}")

    def keep_visiting(self, prefix: str) -> None:
        for n in itertools.count():
            try:
                self.visit(f"{prefix}-{n}")
            except JournalError as error:
                self.note(f"error {type(error).__name__}")
                time.sleep(0.02)


def live(address: str, prefix: str, notes: str, erasing: list[str]) -> None:
    """Finish the erasures that are in doubt, then visit until the end."""
    client = Client(
        Experiment.open(open_journal(address), NAME, snapshot_every=SNAPSHOT_EVERY),
        os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
    )
    for decision_id in erasing:
        client.erase(decision_id)
    client.note("ready")
    for n in range(THREADS):
        threading.Thread(target=client.keep_visiting, args=(f"{prefix}.{n}",)).start()


def begin(address: str) -> None:
    with open_journal(address) as journal:
        Experiment.create(journal, NAME, safe_policy(), mode="guarded", sealed=True)


def is_gone(experiment: Experiment, decision_id: str) -> bool:
    try:
        experiment.find(decision_id)
    except DecisionError:
        return True
    return False
