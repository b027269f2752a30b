"""Experiments that are archived or deleted leave a tombstone, and their names are not used again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from surefoot.audit import ExpectedHead, audit, audit_journal
from surefoot.cli.commands import app
from surefoot.errors import ConfigError, JournalBusyError, JournalConflictError, JournalNotFoundError
from surefoot.experiment import Experiment
from surefoot.experiment.removal import archive, delete
from surefoot.journal import Head, Journal, canonical, open_journal
from surefoot.journal.copying import verify_all
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import Tombstone, bury, lost_heads, note_heads
from surefoot.policies import UCB
from tests.experiment.honest import played, safe
from tests.experiment.worlds import safe_policy

TOLD: dict[str, Any] = {"by": "ops", "reason": "the contract has ended"}


def noted(journal: Journal) -> ExpectedHead:
    head = note_heads(journal, {name: journal.head(name) for name in journal.names()}, time=1.0)
    return ExpectedHead(JOURNAL, *head)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_deleted_experiment_is_gone_and_the_audit_says_by_whom(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_journal("memory:" if kind == "memory" else path) as journal:
        played(safe(), 20, journal=journal)
        Experiment.create(journal, "rest", safe_policy(), sealed=True).decide(
            [[0.1, 0.2]], baseline=0, context={"name": "Ada-Lovelace"}
        )
        outside, head = noted(journal), journal.head("rest")
        assert delete(journal, "rest", **TOLD) == head
        with pytest.raises(JournalNotFoundError):
            journal.head("rest")
        whole = audit_journal(journal, expect=[outside, ExpectedHead("rest", *head)])
        assert whole.is_clean, list(whole.findings)
        assert [(one.name, one.by, one.number) for one in whole.deleted] == [("rest", "ops", head.number)]
        assert audit(journal, "shop", expect=whole.expected["shop"]).is_clean
        with pytest.raises(JournalConflictError, match="was used, and removed"):
            Experiment.create(journal, "rest", safe_policy())
        assert all(b"Ada-Lovelace" not in file.read_bytes() for file in tmp_path.iterdir())


def test_what_came_after_a_tombstone_is_missed_all_the_same(tmp_path: Path) -> None:
    with open_journal("memory:") as journal:
        played(safe(), 5, journal=journal)
        head = journal.head("shop")
        delete(journal, "shop", **TOLD)
        later = ExpectedHead("shop", head.number + 1, "ab" * 32)
        assert [one.what for one in audit_journal(journal, expect=[later]).findings] == ["removed"]


def test_an_archive_is_a_journal_of_its_own(tmp_path: Path) -> None:
    path, kept = tmp_path / "shop.db", tmp_path / "archive.db"
    with open_journal(path) as journal:
        played(safe(), 30, journal=journal)
        receipts = [event.head for event in journal.read("shop")]
    told = ["--by", "ops", "--reason", "the season is over"]
    done = CliRunner().invoke(app, ["experiment", "archive", str(path), "shop", str(kept), *told])
    assert done.exit_code == 0, done.output
    with open_journal(kept, read_only=True) as journal:
        assert audit(journal, "shop", expect=receipts).is_clean
        assert Experiment.open(journal, "shop").status().rounds == 30
    done = CliRunner().invoke(app, ["audit", str(path), "--json"])
    assert json.loads(done.output)[0]["deleted"][0]["is_archived"] is True
    assert done.exit_code == 0


def test_a_removal_that_was_interrupted_is_finished_by_saying_it_again() -> None:
    with open_journal("memory:") as journal:
        played(safe(), 5, journal=journal)
        cut_short(journal)
        assert audit_journal(journal).deleted == [], "it has not happened"
        delete(journal, "shop", **TOLD)
        assert [one.reason for one in audit_journal(journal).deleted] == [TOLD["reason"]]
        assert journal.names() == []


def cut_short(journal: Journal) -> None:
    """A tombstone as it was written before the removal once, and no removal."""
    record = Tombstone("shop", *journal.head("shop"), "ops", "cut short")
    noted(journal)
    journal.transact(JOURNAL, lambda t: t.append("deleted", canonical(record), time=2.0, key="deleted:shop"))


def test_a_removal_that_was_cut_short_and_played_past_is_honest_all_the_same(tmp_path: Path) -> None:
    with open_journal("memory:") as journal:
        played(safe(), 5, journal=journal)
        cut_short(journal)
        Experiment.open(journal, "shop").decide(np.full((2, 3), 0.3), baseline=0)
        outside, later = noted(journal), ExpectedHead("shop", *journal.head("shop"))
        delete(journal, "shop", **TOLD)
        whole = audit_journal(journal, expect=[outside, later])
        assert whole.is_clean, list(whole.findings)
        assert lost_heads(journal, {"shop": Head(later.number, later.hash)}) == {}
        with pytest.raises(JournalConflictError, match="was used, and removed"):
            Experiment.create(journal, "shop", safe_policy())


def test_nothing_goes_without_a_word_and_no_word_without_that() -> None:
    with open_journal("memory:") as journal:
        played(safe(), 5, journal=journal)
        before = noted(journal)
        stale = next(journal.read("shop")).head
        with pytest.raises(JournalConflictError, match="has been written to since"):
            bury(journal, Tombstone("shop", *stale, "ops", "too early"), time=2.0)
        assert journal.names() == ["shop"]
        assert journal.head(JOURNAL).number == before.number


@pytest.mark.parametrize("times", [2, 1_000])
def test_what_is_written_while_it_is_archived_is_in_the_archive(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on PostgreSQL, where a server may write between the copy and the removal."""
    kept, left = tmp_path / "archive.db", [times]
    with open_journal("memory:") as journal:
        shop = Experiment.create(journal, "shop", UCB(arms=2))

        def checked(copy: Journal) -> dict[str, Head]:
            found = verify_all(copy)
            if left[0] > 0:
                left[0] -= 1
                shop.decide(baseline=0, decision_id=f"late-{left[0]}")
            return found

        monkeypatch.setattr("surefoot.experiment.removal.verify_all", checked)
        if times == 1_000:
            with pytest.raises(JournalBusyError, match="written to all the time"):
                archive(journal, "shop", kept, **TOLD)
            assert journal.names() == ["shop"]
            assert audit_journal(journal).deleted == []
            assert list(tmp_path.iterdir()) == []
            return
        head = archive(journal, "shop", kept, **TOLD)
    with open_journal(kept, read_only=True) as copy:
        assert copy.head("shop") == head
        assert [event.key for event in copy.read("shop", 1)] == ["d:late-1", "d:late-0"]


def test_a_bad_removal_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "archive.db").write_text("precious")
    with open_journal(tmp_path / "shop.db") as journal:
        played(safe(), 5, journal=journal)
        head = journal.head("shop")
        with pytest.raises(ConfigError, match="exists"):
            archive(journal, "shop", tmp_path / "archive.db", **TOLD)
        with pytest.raises(ConfigError, match="must say who"):
            delete(journal, "shop", by=" ", reason="none")
        with pytest.raises(JournalNotFoundError):
            delete(journal, "nobody", **TOLD)
        assert journal.head("shop") == head
        assert audit_journal(journal).deleted == []
    assert (tmp_path / "archive.db").read_text() == "precious"
    done = CliRunner().invoke(
        app, ["experiment", "delete", str(tmp_path / "shop.db"), "shop", "--by", "a", "--reason", "b"]
    )
    assert isinstance(done.exception, ConfigError)
