"""A journal in a SQLite file that was damaged is read as it was written, or not at all."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from surefoot.errors import (
    JournalCorruptedError,
    JournalError,
)
from surefoot.journal.sqlite import PAGE_BYTES, SqliteJournal
from tests.journal.writer import NAME, append


def test_a_log_that_was_cut_anywhere_gives_back_a_whole_beginning(sqlite: SqliteJournal, path: Path) -> None:
    heads = [sqlite.head(NAME), *(append(sqlite, f"d{n}").head for n in range(30))]
    log = Path(f"{path}-wal").read_bytes()
    dice, found = random.Random(1), set[int]()
    for cut in sorted({0, 31, 32, len(log) - 1, *(dice.randrange(len(log)) for _ in range(60))}):
        head = _reopened(path, log[:cut])
        assert head is None or head in heads
        found.add(head.number if head else 0)
    assert len(found) > 15
    assert _reopened(path, log) == heads[-1]


def test_a_log_with_a_flipped_byte_gives_back_a_whole_beginning(sqlite: SqliteJournal, path: Path) -> None:
    heads = [sqlite.head(NAME), *(append(sqlite, f"d{n}").head for n in range(30))]
    log = Path(f"{path}-wal").read_bytes()
    dice = random.Random(2)
    for at in [dice.randrange(len(log)) for _ in range(60)]:
        head = _reopened(path, log[:at] + bytes([log[at] ^ 0xFF]) + log[at + 1 :])
        assert head is None or head in heads


def _reopened(path: Path, log: bytes) -> tuple[int, str] | None:
    """The head of a copy with another log, after all its events were checked; None where it holds nothing yet."""
    copy = path.with_name("copy.journal")
    for leftover in path.parent.glob("copy.journal*"):
        leftover.unlink()
    shutil.copy(path, copy)
    Path(f"{copy}-wal").write_bytes(log)
    with SqliteJournal(copy) as again:
        if NAME not in again.names():
            return None
        events = list(again.read(NAME))
        assert again.transact(NAME, lambda t: t.append("decision", b"", time=0.0)).previous == events[-1].hash
        return events[-1].head


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_page_is_an_error_or_harmless(sqlite: SqliteJournal, path: Path, seed: int) -> None:
    for n in range(180):  # so many that most pages hold some of it
        append(sqlite, f"d{n}")
    digest = sqlite.transact(NAME, lambda t: t.attach(b"state" * 2_000))
    truth = list(sqlite.read(NAME))
    sqlite.close()
    whole, dice, errors = path.read_bytes(), random.Random(seed), 0
    for _ in range(40):
        at = dice.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << dice.randrange(8))]) + whole[at + 1 :])
        try:
            with SqliteJournal(path) as damaged:
                assert list(damaged.read(NAME)) == truth
                assert damaged.attachment(NAME, digest) in (None, b"state" * 2_000)
        except JournalError:
            errors += 1
    assert errors > 10


def test_a_wiped_page_is_found(sqlite: SqliteJournal, path: Path) -> None:
    for n in range(200):
        append(sqlite, f"d{n}", size=900)
    sqlite.close()
    whole = path.read_bytes()
    for at in range(PAGE_BYTES, len(whole), 3 * PAGE_BYTES):
        path.write_bytes(whole[:at] + bytes(PAGE_BYTES) + whole[at + PAGE_BYTES :])
        with pytest.raises(JournalCorruptedError), SqliteJournal(path) as damaged:
            list(damaged.read(NAME))


EDITS = {
    "dropped": ["DELETE FROM events WHERE number = 3"],
    "last dropped": ["DELETE FROM events WHERE number = 5"],
    "payload": ["UPDATE events SET payload = x'30' WHERE number = 4"],
    "time": ["UPDATE events SET time = 1.5 WHERE number = 4"],
    "key": ["UPDATE events SET key = 'other' WHERE number = 4"],
    "swapped": [f"UPDATE events SET number = {new} WHERE number = {old}" for old, new in [(4, -4), (5, 4), (-4, 5)]],
    "head": ["UPDATE experiments SET hash = (SELECT hash FROM events WHERE number = 4)"],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_from_outside_is_found(sqlite: SqliteJournal, path: Path, edit: str) -> None:
    for n in range(4):
        append(sqlite, f"d{n}")
    sqlite.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in EDITS[edit]:
            connection.execute(statement)
    with SqliteJournal(path) as edited, pytest.raises(JournalCorruptedError):
        (list(edited.read(NAME)), edited.head(NAME))


def test_a_missing_snapshot_is_none(sqlite: SqliteJournal, path: Path) -> None:
    digests = sqlite.transact(NAME, lambda t: [t.attach(data) for data in (b"one", b"two")])
    sqlite.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM attachments WHERE digest = ?", digests[:1])
        connection.execute("UPDATE attachments SET data = x'00' WHERE digest = ?", digests[1:])
    with SqliteJournal(path) as again:
        assert [again.attachment(NAME, digest) for digest in digests] == [None, None]
        assert again.transact(NAME, lambda t: t.attach(b"two")) == digests[1]
        assert again.attachment(NAME, digests[1]) == b"two"


def test_a_damaged_event_is_told_to_whoever_looks_it_up_and_to_nobody_else(sqlite: SqliteJournal, path: Path) -> None:
    for key in ("sound", "damaged"):
        append(sqlite, key)
    sqlite.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET payload = 'x' WHERE key = 'damaged'")
    told = ["sound", "damaged", "new"]
    with SqliteJournal(path) as again:
        with pytest.raises(JournalCorruptedError):
            again.transact(NAME, lambda t: t.find("damaged"), keys=told)
        assert again.transact(NAME, lambda t: (t.find("sound") is None, t.find("new")), keys=told) == (False, None)
