"""A journal in a SQLite file survives kills and full disks, or says clearly that it did not."""

import gc
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from surefoot.errors import (
    JournalBusyError,
    JournalCorruptedError,
    JournalFullError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalSchemaError,
    JournalUnavailableError,
)
from surefoot.journal import Transaction, open_journal
from surefoot.journal.sqlite import SqliteJournal
from tests.journal.killing import Told, kill_at_random, nothing_lost_nothing_twice, start
from tests.journal.writer import NAME, append


def test_a_second_writer_is_told_that_the_file_is_taken(sqlite: SqliteJournal, path: Path) -> None:
    with pytest.raises(JournalBusyError, match="read_only=True"):
        SqliteJournal(path)
    code = "import sys; from surefoot.journal import open_journal; open_journal(sys.argv[1])"
    other = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert "JournalBusyError" in other.stderr
    append(sqlite, "still mine")


def test_readers_follow_a_writer_at_any_time(sqlite: SqliteJournal, path: Path) -> None:
    with open_journal(path, read_only=True) as reader:
        for n in range(20):
            written = append(sqlite, f"d{n}")
            assert reader.head(NAME) == written.head
        with pytest.raises(JournalReadOnlyError, match="opened to be read"):
            reader.transact(NAME, lambda t: None)
        with pytest.raises(JournalReadOnlyError):
            reader.create("other", b"", time=0.0)


def test_a_reader_never_sees_what_is_not_yet_committed(sqlite: SqliteJournal) -> None:
    def work(transaction: Transaction) -> int:
        transaction.append("decision", b"", time=0.0)
        return sqlite.head(NAME).number

    assert sqlite.transact(NAME, work) == 1


@pytest.mark.parametrize("kills", [25, pytest.param(300, marks=pytest.mark.long)])
def test_a_killed_writer_loses_nothing_that_it_acknowledged(sqlite: SqliteJournal, path: Path, kills: int) -> None:
    sqlite.close()
    dice, told = random.Random(kills), Told()
    for n in range(kills):
        kill_at_random([start(str(path), str(n), told.unsure)], dice, told, 0.1)
        with open_journal(path, read_only=True) as reader:
            nothing_lost_nothing_twice(reader, told)
    assert len(told.done) > 10 * kills


def test_a_full_disk_is_an_error_and_no_loss(sqlite: SqliteJournal) -> None:
    pages = sqlite._file.connection.execute("PRAGMA page_count").fetchone()[0]
    sqlite._file.connection.execute(f"PRAGMA max_page_count = {pages + 15}")

    def attempt(n: int) -> bool:
        try:
            append(sqlite, f"d{n}")
        except JournalFullError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(attempt, range(400)))
    assert 20 < sum(done) < 400
    assert {event.key for event in sqlite.read(NAME, 1)} == {f"d{n}" for n, is_done in enumerate(done) if is_done}
    with pytest.raises(JournalFullError, match="make room"):
        sqlite.transact(NAME, lambda t: t.attach(bytes(10**6)))
    sqlite._file.connection.execute("PRAGMA max_page_count = 100000")
    assert append(sqlite, "room again").number == sum(done) + 2


WRITE_UNTIL_REFUSED = """
import resource, sys
from surefoot.errors import JournalError
from surefoot.journal import open_journal
journal = open_journal(sys.argv[1])
most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, most))
try:
    for n in range(10_000):
        journal.transact("shop", lambda t: t.append("decision", b"x" * 300, time=0.0, key=f"d{n}"))
        print(f"done d{n}", flush=True)
except JournalError as error:
    print("error", type(error).__name__, flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
try:
    journal.transact("shop", lambda t: t.append("decision", b"", time=0.0, key="later"))
except JournalError as error:
    print("later", type(error).__name__, flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
journal.transact("shop", lambda t: t.append("decision", b"", time=0.0, key="healed"))
print("healed", flush=True)
"""


def test_a_commit_that_the_system_refuses_stops_the_journal_until_it_heals(sqlite: SqliteJournal, path: Path) -> None:
    sqlite.close()
    command = [sys.executable, "-c", WRITE_UNTIL_REFUSED, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    assert said[-4:] == ["error OutcomeUnknownError", "later JournalUnavailableError", "healed", ""]
    told = Told()
    told.listen("\n".join(said).encode())
    with SqliteJournal(path) as again:
        keys = [event.key for event in again.read(NAME, 1)]
        # The one that was refused may have reached the disk; all that were acknowledged did.
        assert len(told.done) > 20
        assert keys[: len(told.done)] == [f"d{n}" for n in range(len(told.done))]
        assert len(keys) <= len(told.done) + 2
        assert (keys[-1], "later" in keys) == ("healed", False)
        append(again, "goes on")


AS_NOBODY = """
import os, sys
from surefoot.errors import JournalError
from surefoot.journal.sqlite import SqliteJournal
if os.getuid() == 0:
    os.setuid(65534)
with SqliteJournal(sys.argv[1], read_only=True) as journal:
    print(len(list(journal.read("shop"))))
try:
    SqliteJournal(sys.argv[1])
except JournalError as error:
    print(type(error).__name__, error)
"""


def test_a_file_without_write_permission_can_be_read_and_not_written(sqlite: SqliteJournal, path: Path) -> None:
    append(sqlite, "d")
    sqlite.close()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "shop.journal"
        shutil.copy(path, copy)
        copy.chmod(0o444)
        os.chmod(folder, 0o555)
        said = subprocess.run([sys.executable, "-c", AS_NOBODY, str(copy)], capture_output=True, text=True, check=False)
        os.chmod(folder, 0o755)
    assert said.stdout.startswith("2\nJournal"), said.stderr
    assert "cannot be opened" in said.stdout or "may not be written" in said.stdout


NO_FILES = """
import os, random, resource, sys
from surefoot.journal import open_journal
journal = open_journal(sys.argv[1])
journal.create("shop", b"{}", time=0.0)
def work(transaction):
    for _ in range(1000):  # keys that touch many pages of their index
        transaction.append("round", b"{}", time=0.0, key=random.randbytes(50).hex())
journal.transact("shop", work)
resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), 4096))
journal.transact("shop", work)
"""


def test_what_is_written_goes_into_no_temporary_file(path: Path) -> None:
    # It may be private, and the disk of a container may be read only but for the journal.
    program = [sys.executable, "-c", NO_FILES, str(path)]
    assert subprocess.run(program, capture_output=True, text=True, check=False).stderr == ""


def test_what_is_not_a_journal_is_refused(tmp_path: Path, path: Path) -> None:
    with pytest.raises(JournalNotFoundError):
        open_journal(path, read_only=True)
    with pytest.raises(JournalNotFoundError):
        open_journal(tmp_path / "no such folder" / "shop.journal")
    path.write_text("a text that is quite long enough not to be taken for an empty file " * 10)
    with pytest.raises(JournalCorruptedError, match="not a SQLite file"):
        open_journal(path)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE events (x)")
    for read_only in (False, True):
        with pytest.raises(JournalSchemaError, match="another program's"):
            open_journal(other, read_only=read_only)


def test_a_journal_of_a_newer_surefoot_is_refused(sqlite: SqliteJournal, path: Path) -> None:
    sqlite.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO schema (version) VALUES (999)")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(JournalSchemaError, match="version 999"):
            open_journal(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_transaction_that_was_undone_writes_nothing_even_if_work_looks_away(sqlite: SqliteJournal) -> None:
    before = sqlite.head(NAME)

    def work(transaction: Transaction) -> None:
        sqlite._file.connection.rollback()  # as SQLite does when it runs out of memory or cannot read a page
        transaction.append("decision", b"", time=0.0)

    with pytest.raises(JournalUnavailableError, match="undone"):
        sqlite.transact(NAME, work)
    assert sqlite.head(NAME) == before
    assert append(sqlite, "next").previous == before.hash


def test_what_is_hung_on_a_future_cannot_end_the_thread_that_writes(sqlite: SqliteJournal) -> None:
    def leave(_: object) -> None:
        raise SystemExit

    with ThreadPoolExecutor(1) as executor:
        held = threading.Event()
        holding = sqlite.submit(NAME, lambda t: held.wait(10), executor=executor)
        first = sqlite.submit(NAME, lambda t: 1, executor=executor)
        first.add_done_callback(leave)
        second = sqlite.submit(NAME, lambda t: 2, executor=executor)
        held.set()
        assert [each.result(10) for each in (holding, first, second)] == [True, 1, 2]
    append(sqlite, "still there")


def test_a_closed_journal_is_let_go(tmp_path: Path) -> None:
    def use() -> "weakref.ref[SqliteJournal]":
        with SqliteJournal(tmp_path / "used.journal") as journal, ThreadPoolExecutor(1) as executor:
            journal.create(NAME, b"{}", time=0.0)
            append(journal, "d")
            journal.submit(NAME, lambda t: t.head, executor=executor).result()
            return weakref.ref(journal)

    used = use()
    gc.collect()
    assert used() is None
