"""Experiments that are archived or deleted leave a tombstone, and their names are not used again."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from surefoot.audit import ExpectedHead, audit, audit_journal
from surefoot.cli.commands import app
from surefoot.errors import ConfigError, JournalConflictError, JournalNotFoundError
from surefoot.experiment import Experiment
from surefoot.experiment.removal import archive, delete
from surefoot.journal import Journal, open_journal
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import Tombstone, bury, note_heads
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
        bury(journal, Tombstone("shop", *journal.head("shop"), "ops", "cut short"), time=1.0)
        delete(journal, "shop", **TOLD)
        assert [one.reason for one in audit_journal(journal).deleted] == ["cut short"]
        assert journal.names() == []


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
