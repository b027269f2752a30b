"""Clients that are killed at random moments, and whether the journal kept what they were told."""

import json
import multiprocessing
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.experiment.state import first_state
from surefoot.journal import START, Event, Head, Journal, open_journal, verify
from surefoot.rounds import decode, events
from surefoot.rounds.format import pack
from tests.experiment.client import NAME, line_of, live, played_of, reward_of

FORKS = multiprocessing.get_context("forkserver")  # imports once, and forks the clients from there
FORKS.set_forkserver_preload(["tests.experiment.client"])
PATIENCE = 60.0


@dataclass
class Notes:
    """What clients noted, and what the journal holds up to `checked`."""

    path: Path
    read: int = 0
    asked: set[str] = field(default_factory=set)
    got: dict[str, str] = field(default_factory=dict)
    paid: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    ready: int = 0
    checked: Head = START
    decisions: dict[str, str] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)
    voids: dict[str, Any] = field(default_factory=dict)
    rounds: int = 0

    def catch_up(self) -> None:
        # A line without its end is still being written.
        lines = self.path.read_text().split("\n")[:-1] if self.path.exists() else []
        for line in lines[self.read :]:
            self.take(*line.partition(" ")[::2])
        self.read = len(lines)

    def take(self, word: str, rest: str) -> None:
        sets = {"ask": self.asked, "paid": self.paid, "late": self.late, "voided": self.voided, "settled": self.settled}
        if word in sets:
            sets[word].add(rest)
        elif word == "got":
            name = rest.partition(" ")[0]
            assert self.got.setdefault(name, rest) == rest, "asked twice, told two things"
        elif word == "refused":
            self.refused.append(rest)
        self.ready += word == "ready"

    def await_more(self, count: int) -> None:
        """Wait until clients have written so many more notes."""
        goal, deadline = self.read + count, time.monotonic() + PATIENCE
        while self.read < goal:
            assert time.monotonic() < deadline, "the clients do nothing"
            time.sleep(0.002)
            self.catch_up()

    @property
    def unsure(self) -> list[str]:
        return sorted(self.asked - self.paid - self.late)

    def await_ready(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.ready < count:
            assert time.monotonic() < deadline, "the clients never came up"
            time.sleep(0.005)
            self.catch_up()


def one_life(address: str, notes: Notes, names: list[str], meanwhile: Callable[[], None]) -> None:
    """Start clients, let them run meanwhile, and end them the hard way."""
    unsure = notes.unsure
    before = notes.ready
    clients = [
        FORKS.Process(target=live, args=(address, name, str(notes.path), unsure[n :: len(names)]), daemon=True)
        for n, name in enumerate(names)
    ]
    for client in clients:
        client.start()
    notes.await_ready(before + len(clients))
    meanwhile()
    for client in clients:
        client.kill()
        client.join()
    notes.catch_up()


def a_moment(rng: random.Random, notes: Notes) -> Callable[[], None]:
    """Wait for a random moment between two notes, and so for work that was done, however slow the machine is."""

    def wait() -> None:
        notes.await_more(rng.randrange(120))
        time.sleep(rng.uniform(0.0, 0.01))

    return wait


def check(journal: Journal, notes: Notes, kind: str = "rows") -> None:
    """Whatever a client was told is in the journal, as it was told, and once; and nothing that nobody asked."""
    # A server may still commit what a client sent before it was killed: only what the status counts is looked at.
    status = Experiment.open(journal, NAME).status()
    new = list(journal.read(NAME, notes.checked.number, limit=status.events - notes.checked.number))
    verify(NAME, new, after=notes.checked)
    notes.checked = Head(status.events, status.head_hash)
    for event in new:
        _enter(event, notes, kind)
    assert not notes.refused
    assert {name: notes.decisions.get(name) for name in notes.got} == notes.got
    assert notes.paid <= set(notes.rewards)
    assert set(notes.decisions) <= notes.asked
    assert all(value == reward_of(name, kind) for name, value in notes.rewards.items())
    baseline = "big" if kind == "pair" else 0  # of a guard it is written as None
    assert all(
        (baseline if action is None else action) == played_of(name, kind) for name, action in notes.voids.items()
    )
    decided = {name: json.loads(line.partition(" ")[2])[1] for name, line in notes.decisions.items()}
    assert {name for name in notes.voided if decided[name] != played_of(name, kind)} <= set(notes.voids)
    assert status.rounds == notes.rounds
    assert status.voided == len(notes.voids)
    assert status.rewards == len(notes.rewards)
    if kind == "rows":
        # Only a unit closes by itself, while nobody is alive to pay.
        assert not notes.late | notes.settled
        assert status.learned + status.waiting == len(notes.rewards)
        assert notes.rounds == len(notes.decisions)


def _enter(event: Event, notes: Notes, kind: str) -> None:
    if event.kind in (events.ROUND, events.VISIT):
        record: Any = decode(event, events.RowsRound if kind == "rows" else events.PairRound)
        assert record.decision_id not in notes.decisions
        notes.rounds += event.kind == events.ROUND
        assert event.kind == events.VISIT or record.round == notes.rounds
        notes.decisions[record.decision_id] = line_of(record, event.head)
    elif event.kind == events.REWARD:
        reward = decode(event, events.Reward)
        assert reward.decision_id not in notes.rewards
        if reward.refused is None:
            notes.rewards[reward.decision_id] = float(reward.values[events.METRIC])
    elif event.kind == events.VOIDED:
        voided = decode(event, events.Voided)
        assert voided.decision_id not in {**notes.voids, **notes.rewards}
        notes.voids[voided.decision_id] = voided.action


def check_bits(journal: Journal) -> None:
    """The recovered state is that of a replay of every event, without any snapshot."""
    view = journal.view(NAME)
    state = first_state(view)
    for event in view.read(1):
        state.apply(event, view)
    assert pack(Experiment.open(journal, NAME).policy_state()) == pack(state.policy.state())


def check_all(address: str, notes: Notes, kind: str = "rows") -> None:
    with open_journal(address) as journal:
        check(journal, notes, kind)
        check_bits(journal)
        report = audit(journal, NAME)
    assert report.is_clean, list(report.findings)
