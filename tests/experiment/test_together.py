"""Many threads, and several processes on one PostgreSQL experiment: one ledger, and the floor is kept by all as one."""

import random
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from surefoot.experiment import Experiment
from surefoot.journal import Journal, open_journal
from surefoot.rounds import decode, events
from surefoot.rounds.format import pack
from tests.experiment.client import NAME, begin, request_of, reward_of
from tests.experiment.killing import Notes, check_all, one_life
from tests.experiment.worlds import SAFE, safe_policy
from tests.journal.servers import PostgresServer, new_database


def one_ledger(journal: Journal) -> list[events.RowsRound]:
    """Add the ledger up from the events of all processes: every learner's question is asked of all that was played."""
    alpha, decisions = SAFE["alpha"], dict[str, events.RowsRound]()
    balance = np.zeros(2)

    def booked(record: events.RowsRound, action: int, source: str) -> np.ndarray:
        rows = np.array(record.request.features)
        displaced = rows[record.request.baseline]
        share = rows[action] - (1 - alpha) * displaced if source == "learner" else alpha * displaced
        return np.asarray(share)

    for event in journal.read(NAME):
        if event.kind == events.VOIDED:
            voided = decode(event, events.Voided)
            record = decisions[voided.decision_id]
            side = "baseline" if voided.action == record.request.baseline else "learner"
            balance += booked(record, voided.action, side) - booked(record, record.action, record.source)
        if event.kind != events.ROUND:
            continue
        record = decode(event, events.RowsRound)
        assert record.certificate.proof is not None
        asked = np.array(record.certificate.proof.question)
        np.testing.assert_allclose(asked, balance + booked(record, record.certificate.proposal, "learner"), atol=1e-9)
        if record.source == "learner":
            assert float(record.certificate.guaranteed) >= float(record.certificate.required)
        balance += booked(record, record.action, record.source)
        decisions[record.decision_id] = record
    return list(decisions.values())


def test_two_processes_keep_one_ledger_on_postgres(server: PostgresServer, tmp_path: Path) -> None:
    url, notes = new_database(server), Notes(tmp_path / "notes")
    begin(url)
    one_life(url, notes, ["left", "right"], lambda: notes.await_more(600))
    check_all(url, notes)
    with open_journal(url) as journal:
        decisions = one_ledger(journal)
    sides = [record.decision_id.partition(".")[0] for record in decisions if record.source == "learner"]
    assert set(sides) == {"left", "right"}
    assert sum(a != b for a, b in pairwise(sides)) > 3  # they took turns


@pytest.mark.parametrize("backend", ["memory", "sqlite", "postgres"])
def test_threads_share_an_experiment(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if backend == "postgres":
        address = new_database(request.getfixturevalue("server"))
    else:
        address = "memory:" if backend == "memory" else str(tmp_path / "shop.db")
    journal = open_journal(address)
    shop = Experiment.create(journal, NAME, safe_policy(), mode="guarded", snapshot_every=40)
    ids = [f"visit-{n}" for n in range(60)]

    def visit_all(seed: int) -> None:
        for name in random.Random(seed).sample(ids, len(ids)):
            shop.decide(**request_of(name))
            shop.reward(name, reward_of(name))

    threads = [threading.Thread(target=visit_all, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    status = shop.status()
    assert (status.rounds, status.learned, status.refused) == (60, 60, {})
    assert len(one_ledger(journal)) == 60
    assert pack(Experiment.open(journal, NAME).policy_state()) == pack(shop.policy_state())
    journal.close()
