"""Processes that are killed while they confirm, correct, fork and erase: what was erased is gone, what was acknowledged
is there, once.
"""

import multiprocessing
import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.experiment.export import row_rounds
from surefoot.experiment.sealing import reference
from surefoot.journal import Journal, open_journal
from surefoot.journal.private_text import by_alias
from surefoot.rounds import decode, events
from tests.experiment.client import NAME, told
from tests.experiment.erasing_client import begin, corrected_of, is_gone, live
from tests.experiment.killing import Notes, check_bits
from tests.journal.servers import PostgresServer, new_database

FORKS = multiprocessing.get_context("forkserver")
MOST_FORKS = 8  # that are audited: each takes as long as the experiment


def words(notes: Notes) -> dict[str, set[str]]:
    """What was noted, by the first word of its line."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in notes.path.read_text().splitlines() if notes.path.exists() else []:
        word, _, rest = line.partition(" ")
        found[word].add(rest)
    return found


def kills(address: str, notes: Notes, count: int, clients: int, seed: int) -> None:
    rng = random.Random(seed)
    begin(address)
    for life in range(count):
        noted, before = words(notes), notes.ready
        doubtful = sorted(noted["erasing"] - noted["erased"])
        names = [f"life{life}.{n}" for n in range(clients)]
        processes = [
            FORKS.Process(target=live, args=(address, name, str(notes.path), doubtful[n::clients]), daemon=True)
            for n, name in enumerate(names)
        ]
        for process in processes:
            process.start()
        notes.await_ready(before + clients)
        time.sleep(rng.uniform(0.0, 0.15 * clients))  # two wait for each other
        for process in processes:
            process.kill()
            process.join()
        notes.catch_up()
    check(address, notes, count)


def check(address: str, notes: Notes, count: int) -> None:
    noted = words(notes)
    with open_journal(address) as journal:
        head = None
        while head != (head := journal.head(NAME)):
            time.sleep(0.3)  # a server may still commit what a client sent before it was killed
        experiment = Experiment.open(journal, NAME)
        assert all(is_gone(experiment, name) for name in noted["erased"])
        for name in noted["paid"] - noted["erasing"]:
            assert told(experiment, experiment.find(name)) == notes.got[name]
        rows = list(row_rounds(journal, NAME))
        assert len({row["decision_id"] for row in rows}) == len(rows) == experiment.status().rounds
        assert len(noted["paid"]) <= sum(row["reward"] is not None for row in rows) + experiment.status().waiting
        assert len(rows) >= len(notes.got)
        held = b"".join(event.payload for event in journal.read(NAME))
        assert not any(name.encode() in held for name in notes.asked)
        check_bits(journal)
        check_corrections(journal, noted)
        # A fork that was begun is whole, or not there at all.
        forks = set(journal.names()) - {NAME}
        assert noted["forked"] <= forks <= noted["forking"]
        reports = [audit(journal, name) for name in (NAME, *sorted(forks)[:: max(1, len(forks) // MOST_FORKS)])]
    assert all(report.is_clean for report in reports), [list(report.findings) for report in reports]
    done = {word: len(noted[word]) for word in ("confirmed", "corrected", "forking")}
    assert min(done.values()) > count / 10, done
    # A fork reads everything that was learned, which takes longer than most lives.
    assert len(noted["forked"]) >= count // 60
    assert len(noted["erased"]) > count / 2
    assert not noted["refused"]


def check_corrections(journal: Journal, noted: dict[str, set[str]]) -> None:
    """What was corrected counts as corrected, and what a caller did not hear of is as it was to be."""
    view, made = journal.view(NAME), dict[str, Any]()
    for event in view.read():
        if event.kind == events.CORRECTED:
            record = decode(event, events.Corrected)
            assert made.setdefault(record.decision_id, record.values[events.METRIC]) == record.values[events.METRIC]
    for name in noted["paid"] - noted["erasing"]:
        decision = view.find(by_alias(name))
        assert decision is not None
        value = made.get(reference(decision))
        assert value == corrected_of(name) if name in noted["corrected"] else value in (None, corrected_of(name))


def test_sqlite_erases_for_good_though_its_process_is_killed(tmp_path: Path) -> None:
    kills(str(tmp_path / "shop.db"), Notes(tmp_path / "notes"), count=10, clients=1, seed=1)


def test_postgres_erases_for_good_though_two_processes_are_killed(tmp_path: Path, server: PostgresServer) -> None:
    kills(new_database(server), Notes(tmp_path / "notes"), count=6, clients=2, seed=2)


@pytest.mark.long
def test_sqlite_erases_for_good_in_two_hundred_kills(tmp_path: Path) -> None:
    kills(str(tmp_path / "shop.db"), Notes(tmp_path / "notes"), count=200, clients=1, seed=3)


@pytest.mark.long
def test_postgres_erases_for_good_in_sixty_kills(tmp_path: Path, server: PostgresServer) -> None:
    kills(new_database(server), Notes(tmp_path / "notes"), count=60, clients=2, seed=4)
