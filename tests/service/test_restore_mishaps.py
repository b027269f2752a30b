"""Restores that stop half way, old heads that are written down late, and journals that are not empty."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from surefoot.audit import ExpectedHead
from surefoot.audit.chain import newest_heads
from surefoot.client.kept_heads import KeptHeads
from surefoot.errors import ConfigError, JournalConflictError, JournalUnavailableError
from surefoot.experiment import Experiment
from surefoot.experiment.removal import archive
from surefoot.experiment.restore import restore
from surefoot.journal import Head, Journal, open_journal
from surefoot.journal.copying import backup, copy_journal, heads_of
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import given_up, lost_heads, note_heads
from surefoot.policies import UCB
from surefoot.rounds.answers import EventHead
from tests.experiment.worlds import safe_policy

TOLD: dict[str, Any] = {"by": "ops", "reason": "the disk died"}


def guarded(journal: Journal, name: str) -> Experiment:
    return Experiment.create(journal, name, safe_policy(), mode="guarded", clock=lambda: 100.0)


def modes(journal: Journal) -> dict[str, str]:
    return {name: Experiment.open(journal, name).status().mode for name in journal.names()}


def test_a_restore_that_stops_half_way_is_not_taken_for_one_that_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_journal("memory:") as journal:
        for name in ("a", "b", "c"):
            guarded(journal, name)
        known = {"b": Head(9, "ab" * 32)}
        transact = Experiment.transact

        def failing(self: Experiment, act: Any) -> Any:
            if self.name == "b":
                raise JournalUnavailableError("the power went")
            return transact(self, act)

        monkeypatch.setattr(Experiment, "transact", failing)
        with pytest.raises(JournalUnavailableError):
            restore(journal, **TOLD, known=known, accept_loss=True)
        late = [ExpectedHead("b", 9, "ab" * 32, time=50.0)]
        assert lost_heads(journal, newest_heads(late, given_up=given_up(journal))) == known, "no server starts on it"
        monkeypatch.undo()
        assert restore(journal, **TOLD, known=known, accept_loss=True).lost == known
        assert set(modes(journal).values()) == {"paused"}
        assert newest_heads(late, given_up=given_up(journal)) == {}


def test_an_old_head_that_is_written_down_late_hides_no_newer_one() -> None:
    server = ExpectedHead("shop", 100, "aa" * 32, time=1_000.0)
    client = ExpectedHead("shop", 90, "bb" * 32, time=2_000.0)
    assert newest_heads([server, client]) == newest_heads([client, server]) == {"shop": Head(100, "aa" * 32)}


def test_what_came_before_a_restore_is_given_up_and_what_came_after_it_is_not() -> None:
    with open_journal("memory:") as journal:
        shop = guarded(journal, "shop")
        rows = [[0.5, 0.2], [0.2, 0.5]]
        shop.decide(rows, baseline=0)
        dead = [ExpectedHead("shop", number, f"{number:064d}", time=50.0) for number in (3, 4, 7)]
        restore(journal, **TOLD, known=newest_heads(dead), accept_loss=True, clock=lambda: 100.0)
        after = given_up(journal)
        assert newest_heads(dead, given_up=after) == {}, "all of the lost branch, and not its last head alone"
        kept = ExpectedHead("shop", 1, next(journal.read("shop")).hash, time=50.0)
        assert newest_heads([kept], given_up=after) == {"shop": Head(1, kept.hash)}
        new = ExpectedHead("shop", 4, "cd" * 32, time=200.0)
        assert newest_heads([*dead, new], given_up=after) == {"shop": Head(4, "cd" * 32)}
        unknown = ExpectedHead("shop", 8, "ef" * 32, time=60.0)
        assert newest_heads([*dead, unknown], given_up=after) == {"shop": Head(8, "ef" * 32)}, "nobody gave this one up"


def test_a_receipt_has_the_time_when_it_was_heard_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("surefoot.client.kept_heads.time.time", lambda: now[0])
    heads = KeptHeads(tmp_path / "receipts")
    for number in (1, 2):  # the second within the second in which one is written
        heads.keep("shop", {"head": {"number": number, "hash": "ab" * 32}})
    now[0] = 9_000.0
    heads.close()
    assert (tmp_path / "receipts").read_text().count('"time":1000.0') == 2


@pytest.mark.parametrize("cut", [1, 8, 30, 60])
@pytest.mark.parametrize("rest", [b"", b"\0" * 40])
def test_a_receipts_file_whose_last_line_was_cut_short_is_read(cut: int, rest: bytes, tmp_path: Path) -> None:
    path = tmp_path / "receipts"
    heads = KeptHeads(path)
    heads.keep("shop", {"head": {"number": 5, "hash": "ab" * 32}})
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:cut] + rest)
    again = KeptHeads(path)
    assert again.newest("shop") == EventHead(5, "ab" * 32)
    again.keep("shop", {"head": {"number": 6, "hash": "cd" * 32}})
    assert KeptHeads(path).newest("shop") == EventHead(6, "cd" * 32), "the next line is a line of its own"


def test_a_receipts_file_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        KeptHeads(tmp_path / "receipts")
    finally:
        os.umask(before)
    assert (tmp_path / "receipts").stat().st_mode & 0o777 == 0o600


def test_a_file_of_something_else_is_no_receipts_file(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("precious\n")
    with pytest.raises(ConfigError, match="must be a file of this client's"):
        KeptHeads(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "precious\n"


def test_copies_are_their_owners_alone(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        guarded(journal, "shop")
        guarded(journal, "winter")
        backup(tmp_path / "shop.db", tmp_path / "copy.db")
        archive(journal, "winter", tmp_path / "winter.db", **TOLD)
    for name in ("copy.db", "winter.db"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("other", ["winter", JOURNAL])
def test_a_journal_moves_into_an_empty_one_alone(other: str) -> None:
    with open_journal("memory:") as source, open_journal("memory:") as target:
        guarded(source, "shop")
        Experiment.create(target, "winter", UCB(arms=2))
        if other == JOURNAL:
            guarded(source, "winter")
            source, target = target, source  # which has the same names, and another journal's chain
            note_heads(source, {}, time=1.0)
            note_heads(target, {}, time=2.0)
        before = heads_of(target)
        with pytest.raises(JournalConflictError, match="must be empty"):
            copy_journal(source, target)
        assert heads_of(target) == before
