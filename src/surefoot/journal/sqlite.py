"""A journal in one SQLite file: nothing to install, one process that writes, any number that read.

WAL mode with `synchronous=FULL`: a commit is one flush of the log, and readers never wait for it. One thread writes,
and commits together what waits together (`surefoot.journal.group`), each transaction in a savepoint of its own. The
writing process holds a lock on an empty SQLite file beside the journal, `<path>-writer`, which the operating system
releases when the process ends, however it ends.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder, SqliteJournal(Path(folder) / "shop.journal") as journal:
...     created = journal.create("shop", b'{"alpha":0.05}', time=0.0)
...     journal.transact("shop", lambda t: t.append("decision", b'{"action":3}', time=1.0)).number
2
"""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
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
from surefoot.journal import tables
from surefoot.journal.base import Journal, Transaction, View
from surefoot.journal.events import Event
from surefoot.journal.group import Job, Writer
from surefoot.journal.migrations import check_readable, migrate

T = TypeVar("T")
APPLICATION = 0x53757265  # "Sure", in the file's header
QUICKLY_CHECKED = 8 * 2**20


class SqliteJournal(Journal):
    """Experiments in a SQLite file."""

    def __init__(self, path: Path | str, *, read_only: bool = False, busy_seconds: float = 5.0) -> None:
        self.path, self._busy_seconds, self._lock = Path(path), busy_seconds, threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._writer: Writer | None = None
        self._broken: str | None = None
        try:
            self._prepare(read_only)
        except sqlite3.Error as error:
            self.close()
            raise explained(error, self.path) from error
        except BaseException:
            self.close()
            raise

    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment."""
        return self._writing().run(lambda: tables.create(self._write, name, payload, time))

    def transact(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` in the writing thread, and return when the group that it belongs to has been flushed."""

        def run() -> T:
            transaction = tables.TablesTransaction(name, self._write)
            result = work(transaction)
            transaction.finish()
            return result

        return self._writing().run(run)

    def names(self) -> list[str]:
        """The experiments, sorted."""
        return [row[0] for row in self._read(tables.NAMES, ())]

    def view(self, name: str) -> View:
        """The experiment's durable events."""
        return tables.TablesView(name, self._read)

    def close(self) -> None:
        """Finish what is waiting, move the log into the file, and let the lock go."""
        if self._writer is not None:
            self._writer.close()
        with self._lock:
            while self._connections:
                self._connections.pop().close()

    def _prepare(self, read_only: bool) -> None:
        if read_only or not self.path.parent.is_dir():
            self._must_exist()
        if not read_only:
            self._hold_lock()
            self._connection = self._connect("rw" if self.path.exists() else "rwc")
            self._set_up()
        self._reader = self._connect_reader()
        if self.path.stat().st_size <= QUICKLY_CHECKED:
            self._check_pages()
        check_readable(self._read)
        if not read_only:
            self._writer = Writer(self._commit, name=f"journal {self.path.name}")

    def _must_exist(self) -> None:
        if not self.path.exists():
            raise JournalNotFoundError(f"There must be a journal at {self.path}, but there is no such file.")

    def _hold_lock(self) -> None:
        beside = self.path.with_name(self.path.name + "-writer")
        lock = sqlite3.connect(beside, timeout=0.0, isolation_level=None, check_same_thread=False)
        self._connections.append(lock)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY:
                raise
            raise JournalBusyError(
                f"One process may write a SQLite journal, but another has {self.path} open. Close it there, open this "
                "one with `read_only=True`, or use PostgreSQL, where several processes write."
            ) from error

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
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
            # A reader needs a log to share, and cannot make one in a folder it may not write to. No log: no writer.
            if _code(error) != sqlite3.SQLITE_CANTOPEN or self.path.with_name(self.path.name + "-wal").exists():
                raise
            reader = self._connect("ro&immutable=1")
        return reader

    def _set_up(self) -> None:
        execute = self._connection.execute
        tables_found = execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if tables_found and execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise JournalSchemaError(f"{self.path} must be a journal, but it is another program's SQLite database.")
        if execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise JournalUnavailableError(f"A journal needs SQLite's WAL mode, but the disk of {self.path} has none.")
        execute("PRAGMA synchronous = FULL")
        execute("PRAGMA fullfsync = ON")
        execute("BEGIN IMMEDIATE")
        migrate(self._write, dialect="sqlite")
        execute(f"PRAGMA application_id = {APPLICATION}")
        execute("COMMIT")

    def _check_pages(self) -> None:
        found = self._read("PRAGMA quick_check(1)", ())[0][0]
        if found != "ok":
            raise JournalCorruptedError(f"The pages of {self.path} must be whole, but SQLite says: {found}.")

    def _writing(self) -> Writer:
        if self._broken is not None:
            raise JournalUnavailableError(f"{self._broken} Open the journal again before you write to it.")
        if self._writer is None:
            raise JournalReadOnlyError(f"A journal must be open for writing, but {self.path} was opened to be read.")
        return self._writer

    def _write(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _read(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._reader.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise explained(error, self.path) from error

    def _commit(self, jobs: list[Job]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._run(job)
            self._flush()
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            for job in jobs:
                job.error = job.error or explained(error, self.path)

    def _run(self, job: Job) -> None:
        self._connection.execute("SAVEPOINT work")
        try:
            job.result = job.work()
        except BaseException as error:
            job.error = error
            # On a full disk SQLite may have undone the whole group, and with it the work of the jobs before.
            if not self._connection.in_transaction:
                raise JournalFullError(f"{self.path}: the commit was undone, for lack of room or an error.") from error
            self._connection.execute("ROLLBACK TO work")
        self._connection.execute("RELEASE work")

    def _flush(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if _code(error) == sqlite3.SQLITE_FULL:
                raise
            # After a flush that failed nobody knows what the disk holds, so that going on could contradict it.
            self._broken = f"A commit to {self.path} failed ({error})."
            raise OutcomeUnknownError(
                f"{self._broken} Open the journal again, and look up what you wrote by its key."
            ) from error


def explained(error: BaseException, path: Path) -> BaseException:
    """SQLite's error as one of ours, fresh for each caller that it is raised in."""
    if isinstance(error, JournalError):
        return type(error)(*error.args)
    if not isinstance(error, sqlite3.Error):
        return error
    kind, advice = ADVICE.get(_code(error), (JournalUnavailableError, "Nothing was written."))
    if "decode" in str(error):
        kind, advice = ADVICE[sqlite3.SQLITE_CORRUPT]
    return kind(f"{path}: {error}. {advice}")


ADVICE: dict[int, tuple[type[JournalError], str]] = {
    sqlite3.SQLITE_FULL: (JournalFullError, "Nothing was written: make room on the disk, and try again."),
    sqlite3.SQLITE_CORRUPT: (JournalCorruptedError, "The file is damaged: restore a backup."),
    sqlite3.SQLITE_NOTADB: (JournalCorruptedError, "It is no SQLite file, or its header is damaged: restore a backup."),
    sqlite3.SQLITE_BUSY: (JournalBusyError, "Another program holds the file: try again when it is done."),
    sqlite3.SQLITE_LOCKED: (JournalBusyError, "Another connection holds the table: try again when it is done."),
    sqlite3.SQLITE_READONLY: (JournalReadOnlyError, "The file may not be written: open it with `read_only=True`."),
    sqlite3.SQLITE_PERM: (JournalReadOnlyError, "The file may not be written: open it with `read_only=True`."),
    sqlite3.SQLITE_CANTOPEN: (JournalUnavailableError, "The file or its folder cannot be opened: check who owns them."),
}


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
