"""A journal in one SQLite file: nothing to install, one process that writes, any number that read.

WAL mode with `synchronous=FULL`: a commit is one flush of the log, and readers never wait for it. One thread writes,
and commits together what waits together (`surefoot.journal.group_commit`). The writing process holds a lock on an empty
SQLite file beside the journal, `<path>-writer`, which the operating system releases when the process ends, however it
ends. Only the owner may read the files.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder, SqliteJournal(Path(folder) / "shop.journal") as journal:
...     created = journal.create("shop", b'{"alpha":0.05}', time=0.0)
...     journal.transact("shop", lambda t: t.append("decision", b'{"action":3}', time=1.0)).number
2
"""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from surefoot.errors import (
    JournalBusyError,
    JournalCorruptedError,
    JournalError,
    JournalFullError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalSchemaError,
    JournalUnavailableError,
    OutcomeUnknownError,
)
from surefoot.journal import sql
from surefoot.journal.address import beside, private_file
from surefoot.journal.clock import ClockNote
from surefoot.journal.contract import Journal, Transaction, View, check_unmoved
from surefoot.journal.events import JOURNAL, Event, Head
from surefoot.journal.group_commit import GroupCommit, Job, stage

T = TypeVar("T")
APPLICATION = 0x53757265  # "Sure", in the file's header
PAGE_BYTES = 8192
QUICK_CHECK_BYTES = 8 * 2**20  # a larger file would keep its opener waiting
EMPTY_SECONDS = 1.0  # between two attempts to empty a log that somebody reads
TABLES = (
    # Without a row id: a private text is found by its number, and so written once, and not once more in an index.
    *sql.tables(
        id_="INTEGER PRIMARY KEY", text="TEXT", integer="INTEGER", real="REAL", data="BLOB", private=" WITHOUT ROWID"
    ),
    "CREATE TABLE clock (id INTEGER PRIMARY KEY CHECK (id = 1), boot TEXT NOT NULL, ahead REAL NOT NULL)",
)


class SqliteJournal(Journal):
    """Experiments in a SQLite file."""

    def __init__(self, path: Path | str, *, read_only: bool = False, busy_seconds: float = 5.0) -> None:
        self.path = Path(path)
        self._file = SqliteFile(self.path, read_only=read_only, busy_seconds=busy_seconds)
        self._broken: str | None = None
        self._probed = sql.Probe()
        # From when on the log is to be emptied, which may hold what was erased; also what a killed process has left.
        self._empties: float | None = 0.0 if not read_only and self._file.has_log else None
        self._group = None if read_only else GroupCommit(self._commit, name=f"journal {self.path.name}")

    def __repr__(self) -> str:
        return f"SqliteJournal({str(self.path)!r})"

    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment."""
        return self._alone(lambda: sql.create(self._file.write, name, payload, time))

    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """Run `work` in the writing thread, and return when the group that it belongs to has been flushed."""
        return self._writing().transact(name, work, keys)

    def submit(
        self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = (), executor: Executor
    ) -> "Future[T]":
        """Run `work` in the writing thread; no other thread waits for it."""
        return self._writing().submit(name, work, keys)

    def remove(self, name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        """Delete an experiment and note that in one commit; then what is left of it in the log."""
        self._alone(lambda: self._remove(name, head, note))
        self.forget()

    def forget(self) -> None:
        """Move the log into the file and empty it, so that nothing that was erased is left there."""
        self._empties = 0.0
        self._alone(lambda: None)  # the writing thread empties it after its commit

    @property
    def is_forgetting(self) -> bool:
        """Whether a reader keeps the log from being emptied."""
        return self._empties is not None

    def names(self) -> list[str]:
        """The experiments, sorted."""
        return [row[0] for row in self._file.read(sql.NAMES, ())]

    def view(self, name: str) -> View:
        """The experiment's durable events."""
        return sql.SqlView(name, self._file.read)

    def clock_jump(self) -> float:
        """By how much the system's clock was set forward between the last process's note of it and the opening."""
        return self._file.clock_jump

    def close(self) -> None:
        """Finish what is waiting, move the log into the file, and release the lock."""
        if self._group is not None:
            self._group.close()
        self._file.close()

    def probe(self) -> dict[str, str]:
        """Commit a note of the clock.

        With it an event of each experiment whose turn it is is written, and taken back: pages may be damaged that hold
        those of one experiment.
        """
        return self._alone(self._probe)

    def _probe(self) -> dict[str, str]:
        self._file.note_clock()
        rows = self._probed.choose(self._file.write(sql.EXPERIMENTS, ()))
        refusals = {row.name: error for row in rows if (error := self._refusal(row)) is not None}
        return self._probed.note(rows, refusals)

    def _refusal(self, row: sql.ExperimentRow) -> JournalError | None:
        """Why an experiment takes no event; None if it does."""
        self._file.write("SAVEPOINT probe", ())
        try:
            sql.append_probe(self._file.write, row)
        except JournalError as error:
            if not self._file.connection.in_transaction:
                raise  # it is not this experiment's fault
            return error
        finally:
            if self._file.connection.in_transaction:
                self._file.write("ROLLBACK TO probe", ())
                self._file.write("RELEASE probe", ())
        return None

    def _remove(self, name: str, head: Head, note: Callable[[Transaction], object]) -> None:
        view, own = sql.SqlView(name, self._file.write), sql.SqlView(JOURNAL, self._file.write)
        check_unmoved(view, head)
        transaction = Transaction(own)
        note(transaction)
        transaction.finish()
        view.remove()
        own.keep(transaction)

    def _writing(self) -> GroupCommit:
        if self._group is None:
            raise JournalReadOnlyError(f"A journal must be open for writing, but {self.path} was opened to be read.")
        return self._group

    def _alone(self, call: Callable[[], T]) -> T:
        """A call with a commit of its own."""
        return self._writing().alone("", lambda: self._committed(call))

    def _commit(self, group: list[Job]) -> None:
        def write() -> None:
            for view, staged in stage(group, lambda name: sql.SqlView(name, self._file.write)):
                self._refuse_if_undone()
                view.keep(staged)

        self._committed(write)

    def _committed(self, write: Callable[[], T]) -> T:
        try:
            if self._broken is not None:
                self._heal(self._broken)
            # It locks at once: a transaction that begins by reading may be refused when it comes to write.
            self._file.write("BEGIN IMMEDIATE", ())
            result = write()
            self._refuse_if_undone()
            self._flush()
            return result
        finally:
            with suppress(sqlite3.Error):
                self._file.connection.rollback()
            # Not after a failed flush: then nobody knows what the log holds.
            if self._empties is not None and self._broken is None and monotonic() >= self._empties:
                self._empties = None if self._file.empty_log() else monotonic() + EMPTY_SECONDS

    def _heal(self, failure: str) -> None:
        """Open the file again after a failed flush: what this connection holds in memory may not be on the disk."""
        try:
            self._file.reopen()
        except JournalError as error:
            raise JournalUnavailableError(f"{failure} It cannot be opened again: {error}") from error
        self._broken = None

    def _refuse_if_undone(self) -> None:
        # SQLite may roll back by itself, as out of memory, and later statements would be committed on their own.
        if not self._file.connection.in_transaction:
            raise JournalUnavailableError(f"{self.path}: the transaction was undone, and nothing was written.")

    def _flush(self) -> None:
        try:
            self._file.connection.execute("COMMIT")
        except sqlite3.Error as error:
            # Then nothing was written, and the journal can go on.
            if code_of(error) == sqlite3.SQLITE_FULL:
                raise explained(error, self.path) from error
            # After a failed flush it is unknown what the disk holds, and later writes could contradict it.
            self._broken = f"A commit to {self.path} failed ({error})."
            raise OutcomeUnknownError(f"{self._broken} Look up what you wrote by its key.") from error


class SqliteFile:
    """A SQLite file that is a journal: one connection that writes, unless it is opened to be read, and one that reads.

    Threads take turns.
    """

    def __init__(self, path: Path, *, read_only: bool, busy_seconds: float) -> None:
        self.path, self._busy_seconds, self._lock = path, busy_seconds, threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._note, self.clock_jump = ClockNote.now(), 0.0
        if path.is_dir():
            raise JournalUnavailableError(f"A journal must be a file, but {path} is a folder. Name a file in it.")
        log = beside(path, "-wal")
        self.has_log = log.exists() and log.stat().st_size > 0  # left by a process that was killed
        try:
            self._open(read_only)
        except sqlite3.Error as error:
            self.close()
            raise explained(error, self.path) from error
        except BaseException:
            self.close()
            raise

    def read(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run a statement over what is committed."""
        with self._lock:
            try:
                return self._reader.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise explained(error, self.path) from error

    def write(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run a statement in the writer's transaction."""
        try:
            return self.connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def note_clock(self) -> None:
        """Write down what the system's clock says, in the writer's transaction."""
        self._note = self._note.renewed()
        self.write("INSERT OR REPLACE INTO clock (id, boot, ahead) VALUES (1, ?, ?)", self._note)

    def close(self) -> None:
        """Move the log into the file, and release the lock."""
        with self._lock:
            # The last one first, so that the lock, which came first, is held until all else is closed.
            while self._connections:
                self._connections.pop().close()

    def empty_log(self) -> bool:
        """Begin a new log, outside of any transaction; false where a reader elsewhere, or the disk, does not allow it.

        Fail fast: every writer is blocked meanwhile.
        """
        with self._lock, suppress(sqlite3.Error):
            self.connection.execute("PRAGMA busy_timeout = 0")
            try:
                return not self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
            finally:
                self.connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._busy_seconds)}")
        return False

    def reopen(self) -> None:
        """Open the file again, whose log may hold what a failed flush has left; the lock is held all the while."""
        with self._lock:
            # The lock came first, and stays.
            while len(self._connections) > 1:
                self._connections.pop().close()
            try:
                self.connection = self._connect("rw")
                self._set_up()
                # Writes what was committed to the file itself and begins a new log, in which nothing of the old one is
                # found again. A reader elsewhere may hold it up; then the next commit overwrites what was left.
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._reader = self._connect_reader()
            except sqlite3.Error as error:
                raise explained(error, self.path) from error

    def _open(self, read_only: bool) -> None:
        if (read_only or not self.path.parent.is_dir()) and not self.path.exists():
            raise JournalNotFoundError(f"There must be a journal at {self.path}, but there is no such file or folder.")
        if not read_only:
            self._hold_lock()
            private_file(self.path)  # SQLite gives its log the same permissions
            self.connection = self._connect("rw")
            self._set_up()
            self._look_at_clock()
        self._reader = self._connect_reader()
        if self.path.stat().st_size <= QUICK_CHECK_BYTES:
            self._check_pages()
        self._check_application(self._reader)
        sql.check_version(self.read)

    def _hold_lock(self) -> None:
        lock_file = beside(self.path, "-writer")
        private_file(lock_file)
        # Fail fast: whoever holds it keeps it as long as its process lives.
        lock = sqlite3.connect(lock_file, timeout=0.0, isolation_level=None, check_same_thread=False)
        self._connections.append(lock)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY:
                raise
            raise JournalBusyError(
                f"One process may write a SQLite journal, but another has {self.path} open. Close it there, open this "
                "one with `read_only=True`, or use PostgreSQL, where several processes write."
            ) from error

    def _connect(self, mode: str) -> sqlite3.Connection:
        # `as_uri` quotes what a path may hold and a URI gives a meaning, such as ? and #.
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        # With an isolation level, Python would begin transactions of its own. Threads take turns by our own lock.
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        self._connections.append(connection)
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        reader = self._connect("ro")
        try:
            reader.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
        except sqlite3.OperationalError as error:
            # A reader shares the writer's log, and cannot create one in a read-only folder. No log means no writer.
            is_barred = code_of(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not is_barred or beside(self.path, "-wal").exists():
                raise
            reader = self._connect("ro&immutable=1")
        return reader

    def _set_up(self) -> None:
        execute = self.connection.execute
        is_new = not execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        # Before anything is changed, since it may be another program's file, or another surefoot's.
        if not is_new:
            self._check_application(self.connection)
            sql.check_version(self.write)
        # Of a new file alone. On smaller pages an event is alone on its own, half of which stays empty.
        execute(f"PRAGMA page_size = {PAGE_BYTES}")
        if execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise JournalUnavailableError(f"A journal needs SQLite's WAL mode, but the disk of {self.path} has none.")
        execute("PRAGMA synchronous = FULL")
        # What a statement would undo may be private, and belongs in no other file.
        execute("PRAGMA temp_store = MEMORY")
        # On macOS a plain fsync leaves data in the drive's cache; elsewhere this does nothing.
        execute("PRAGMA fullfsync = ON")
        # What is erased must not stay behind on a free page.
        execute("PRAGMA secure_delete = ON")
        if is_new:
            execute("BEGIN IMMEDIATE")
            for statement in TABLES:
                execute(statement)
            execute(f"PRAGMA application_id = {APPLICATION}")
            execute("COMMIT")

    def _look_at_clock(self) -> None:
        rows = self.write("SELECT boot, ahead FROM clock", ())
        self.clock_jump = self._note.jump_since(ClockNote(*rows[0]) if rows else None)
        self.note_clock()

    def _check_application(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise JournalSchemaError(f"{self.path} must be a journal, but it is another program's SQLite database.")

    def _check_pages(self) -> None:
        verdict = self.read("PRAGMA quick_check(1)", ())[0][0]
        if verdict != "ok":
            raise JournalCorruptedError(f"The pages of {self.path} must be whole, but SQLite says: {verdict}.")


def explained(error: sqlite3.Error, path: Path) -> JournalError:
    """SQLite's error as one of ours."""
    kind, advice = ADVICE.get(code_of(error), (JournalUnavailableError, "Nothing was written."))
    # Python's own error for text that is not UTF-8 has no code of SQLite's.
    if "decode" in str(error):
        kind, advice = ADVICE[sqlite3.SQLITE_CORRUPT]
    return kind(f"{path}: {error}. {advice}")


ADVICE: dict[int, tuple[type[JournalError], str]] = {
    sqlite3.SQLITE_FULL: (JournalFullError, "Nothing was written: make room on the disk, and try again."),
    sqlite3.SQLITE_CORRUPT: (JournalCorruptedError, "The file is damaged: restore a backup."),
    sqlite3.SQLITE_NOTADB: (
        JournalCorruptedError,
        "It is not a SQLite file, or its header is damaged: restore a backup.",
    ),
    sqlite3.SQLITE_BUSY: (JournalBusyError, "Another program holds the file: try again when it is done."),
    sqlite3.SQLITE_LOCKED: (JournalBusyError, "Another connection holds the table: try again when it is done."),
    sqlite3.SQLITE_READONLY: (JournalReadOnlyError, "The file may not be written: open it with `read_only=True`."),
    sqlite3.SQLITE_PERM: (JournalReadOnlyError, "The file may not be written: open it with `read_only=True`."),
    sqlite3.SQLITE_CANTOPEN: (
        JournalUnavailableError,
        "The file or its folder cannot be opened: check their permissions.",
    ),
}


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF  # extended codes add bits above
