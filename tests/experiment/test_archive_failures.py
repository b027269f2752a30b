"""An archive that fails late must not take the only copy with it."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import JournalError
from surefoot.experiment import Experiment
from surefoot.experiment.removal import archive
from surefoot.journal import Head, Journal, Transaction, open_journal
from surefoot.policies import UCB

TOLD: dict[str, Any] = {"by": "ops", "reason": "the contract has ended"}


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    with open_journal(tmp_path / "shop.db") as opened:
        Experiment.create(opened, "shop", UCB(arms=2)).decide(baseline=0, decision_id="one")
        yield opened


def kept_ids(file: Path) -> list[str | None]:
    with open_journal(file, read_only=True) as copy:
        return [event.key for event in copy.read("shop", 1)]


def test_a_failure_after_the_removal_keeps_the_archive(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise JournalError("The disk is full.")

    monkeypatch.setattr(journal, "forget", broken)
    with pytest.raises(JournalError, match="disk is full") as failed:
        archive(journal, "shop", tmp_path / "kept.db", **TOLD)
    assert "kept.db" in failed.value.__notes__[0]
    assert journal.names() == []
    assert kept_ids(tmp_path / "kept.db") == ["d:one"]


def test_an_interrupt_while_the_removal_is_committed_keeps_the_archive(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = journal.remove

    def slow(name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        def noted(transaction: Transaction) -> None:  # in the writing thread, while the caller waits
            note(transaction)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

        real(name, head=head, note=noted)

    monkeypatch.setattr(journal, "remove", slow)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            archive(journal, "shop", tmp_path / "kept.db", **TOLD)
    finally:
        signal.signal(signal.SIGINT, before)
    assert journal.names() == []
    assert kept_ids(tmp_path / "kept.db") == ["d:one"]


def test_a_failure_before_the_removal_leaves_no_file(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise JournalError("The journal is closed.")

    monkeypatch.setattr(journal, "remove", broken)
    with pytest.raises(JournalError, match="closed"):
        archive(journal, "shop", tmp_path / "kept.db", **TOLD)
    assert journal.names() == ["shop"]
    assert not (tmp_path / "kept.db").exists()
