"""A SQLite file that is a journal: who may open it, how it is set up, and what SQLite's errors mean."""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from surefoot.errors import (
    JournalBusyError,
    JournalCorruptedError,
    JournalError,
    JournalFullError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalSchemaError,
    JournalUnavailableError,
)
from surefoot.journal.migrations import check_readable, migrate

APPLICATION = 0x53757265  # "Sure", in the file's header
PAGE_BYTES = 8192
QUICKLY_CHECKED = 8 * 2**20  # a larger file would keep its opener waiting


class SqliteFile:
    """One connection that writes, unless the file is opened to be read, and one that reads, shared by all threads."""

    def __init__(self, path: Path, *, read_only: bool, busy_seconds: float) -> None:
        self.path, self._busy_seconds, self._lock = path, busy_seconds, threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        if path.is_dir():
            raise JournalUnavailableError(f"A journal must be a file, but {path} is a folder. Name a file in it.")
        log = path.with_name(path.name + "-wal")
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

    def close(self) -> None:
        """Move the log into the file, and release the lock."""
        with self._lock:
            # The last one first, so that the lock, which came first, is held until all else is closed.
            while self._connections:
                self._connections.pop().close()

    def empty_log(self) -> bool:
        """Begin a new log, outside of any transaction; false where a reader elsewhere, or the disk, does not allow it.

        Without patience, for all who write wait meanwhile.
        """
        with self._lock, suppress(sqlite3.Error):
            self.connection.execute("PRAGMA busy_timeout = 0")
            try:
                return not self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
            finally:
                self.connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._busy_seconds)}")
        return False

    def reopen(self) -> None:
        """Open the file anew, whose log may hold what a failed flush has left; the lock is held all the while."""
        with self._lock:
            # The lock came first, and stays.
            while len(self._connections) > 1:
                self._connections.pop().close()
            try:
                self.connection = self._connect("rwc")
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
            self.connection = self._connect("rwc")
            self._set_up()
        self._reader = self._connect_reader()
        if self.path.stat().st_size <= QUICKLY_CHECKED:
            self._check_pages()
        self._check_application(self._reader)
        self.version = check_readable(self.read)

    def _hold_lock(self) -> None:
        beside = self.path.with_name(self.path.name + "-writer")
        # Without patience: who holds it keeps it as long as its process lives.
        lock = sqlite3.connect(beside, timeout=0.0, isolation_level=None, check_same_thread=False)
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
            if not is_barred or self.path.with_name(self.path.name + "-wal").exists():
                raise
            reader = self._connect("ro&immutable=1")
        return reader

    def _set_up(self) -> None:
        execute = self.connection.execute
        # Before anything is changed, since it may be another program's file.
        if execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            self._check_application(self.connection)
        # Of a new file alone. On smaller pages an event is alone on its own, half of which stays empty.
        execute(f"PRAGMA page_size = {PAGE_BYTES}")
        if execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise JournalUnavailableError(f"A journal needs SQLite's WAL mode, but the disk of {self.path} has none.")
        execute("PRAGMA synchronous = FULL")
        # On macOS a plain fsync leaves data in the drive's cache; elsewhere this does nothing.
        execute("PRAGMA fullfsync = ON")
        # What is erased must not stay behind on a free page.
        execute("PRAGMA secure_delete = ON")
        execute("BEGIN IMMEDIATE")
        migrate(self.write, dialect="sqlite")
        execute(f"PRAGMA application_id = {APPLICATION}")
        execute("COMMIT")

    def _check_application(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise JournalSchemaError(f"{self.path} must be a journal, but it is another program's SQLite database.")

    def _check_pages(self) -> None:
        found = self.read("PRAGMA quick_check(1)", ())[0][0]
        if found != "ok":
            raise JournalCorruptedError(f"The pages of {self.path} must be whole, but SQLite says: {found}.")


def explained(error: BaseException, path: Path) -> BaseException:
    """SQLite's error as one of ours, fresh for each caller that it is raised in."""
    if isinstance(error, JournalError):
        return type(error)(*error.args)
    if not isinstance(error, sqlite3.Error):
        return error
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
