"""What is kept beside a chain without belonging to it: texts put back after their erasure, rows nobody comes by."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal

COPY = "INSERT INTO private SELECT experiment, {}, NULL, person, salt, text FROM private WHERE number = 3"


def forged(path: Path, *statements: str) -> list[tuple[int, str]]:
    """What the audit finds once somebody has been at the tables."""
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        for statement in statements:
            tables.execute(statement)
    with open_journal(path, read_only=True) as journal:
        return [(one.event, one.what) for one in audit(journal, "shop").findings]


def erased(path: Path, *, sealed: bool = True) -> None:
    """Four decisions, the first of which is erased by event 6."""
    with open_journal(path) as journal:
        shop = Experiment.create(journal, "shop", surefoot.UCB(arms=2), mode="guarded", sealed=sealed)
        for n in range(4):
            shop.decide(decision_id=f"visit-{n}", context={"person": "ada"})
        if sealed:
            shop.erase(["visit-0"], by="desk")
        assert audit(journal, "shop").is_clean


def test_a_text_that_is_put_back_after_its_erasure_is_found(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_journal(path) as journal:
        shop = Experiment.create(journal, "shop", surefoot.UCB(arms=2), mode="guarded", sealed=True)
        for n in range(4):
            shop.decide(decision_id=f"visit-{n}", context={"person": "ada"})
        kept = journal.view("shop").private(2)
        shop.erase(["visit-0"], by="desk")
        assert audit(journal, "shop").is_clean
    assert kept is not None
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        row = (1, 2, kept.alias, kept.person, kept.salt, kept.text)
        tables.execute("INSERT INTO private (experiment, number, alias, person, salt, text) VALUES (?,?,?,?,?,?)", row)
    assert forged(path) == [(2, "private")]


@pytest.mark.parametrize("number", [0, -1, -(2**63), 7, 2**63 - 1])
def test_a_text_where_no_reader_comes_by_is_found(number: int, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    erased(path)
    assert forged(path, COPY.format(number)) == [(number, "stray")]


def test_an_event_numbered_below_one_is_found(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    erased(path)
    copy = "INSERT INTO events SELECT experiment, -3, kind, time, payload, 'k', previous, hash FROM events LIMIT 1"
    assert forged(path, copy) == [(-3, "stray")]


def test_an_experiment_that_is_not_sealed_has_no_texts(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    erased(path, sealed=False)
    assert forged(path, "INSERT INTO private VALUES (1, 3, NULL, 'ada', x'00', x'00')") == [(3, "private")]
