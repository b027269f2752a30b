"""Sessions on a PostgreSQL server: a few connections that are reused, and replaced when the server drops them.

By hand, and not by psycopg_pool: while the server is away a caller there waits for its whole timeout and is not told
why; here it is refused at once, with the reason, so that clients play the baseline. And the first statement of a
transaction says whether a connection is alive, so that no other has to.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from surefoot.errors import (
    JournalBusyError,
    JournalConflictError,
    JournalCorruptedError,
    JournalError,
    JournalFullError,
    JournalReadOnlyError,
    JournalUnavailableError,
)
from surefoot.journal.sql import Query

try:
    import psycopg
    from psycopg.pq import TransactionStatus
except ImportError as error:
    raise ImportError(
        "A journal on PostgreSQL needs psycopg. Install it with: pip install 'surefoot[postgres]'"
    ) from error

# A process that hangs inside a transaction must not hold an experiment forever: the server ends it after a minute.
# Read committed, so that whoever waited for a lock sees the newest head. A server set to answer before it has flushed
# is told to flush, as the contract asks; stricter settings stay.
SETTINGS = """
SELECT set_config('search_path', 'surefoot', false),
       set_config('lock_timeout', '30s', false),
       set_config('idle_in_transaction_session_timeout', '60s', false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('default_transaction_read_only', %s, false),
       set_config('synchronous_commit',
                  CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                  ELSE current_setting('synchronous_commit') END, false)
"""
ERRORS: tuple[tuple[type[psycopg.Error], type[JournalError]], ...] = (
    (psycopg.errors.DiskFull, JournalFullError),
    (psycopg.errors.InsufficientPrivilege, JournalReadOnlyError),
    (psycopg.errors.ReadOnlySqlTransaction, JournalReadOnlyError),
    (psycopg.errors.LockNotAvailable, JournalBusyError),
    (psycopg.errors.DeadlockDetected, JournalBusyError),
    (psycopg.errors.QueryCanceled, JournalBusyError),
    (psycopg.errors.DataCorrupted, JournalCorruptedError),
    (psycopg.errors.IndexCorrupted, JournalCorruptedError),
    (psycopg.errors.UniqueViolation, JournalConflictError),
)


class PooledConnection:
    """One connection, on which nothing is committed before COMMIT."""

    def __init__(self, url: str, *, read_only: bool) -> None:
        with explaining():
            # psycopg would otherwise begin transactions of its own.
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
            self._connection.execute(SETTINGS, ("on" if read_only else "off",))
        self._is_in_doubt = False

    def query(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run a statement with `?` for its values, and return all rows."""
        with explaining():
            cursor = self._connection.execute(statement.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def together(self) -> Iterator[Query]:
        """Statements whose rows nobody needs are sent together: one round trip in place of one each.

        What the server refuses is raised at the end, and the session is not lent again: the server skips whatever
        follows, also what psycopg then believes to be prepared.
        """
        self._is_in_doubt = True
        with explaining(), self._connection.pipeline():
            yield self._send
        self._is_in_doubt = False

    def copy(self, table: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[object]]) -> None:
        """Write many rows, of columns with these names and types: not one statement for a few of them each."""
        statement = f"COPY {table} ({', '.join(name for name, _ in columns)}) FROM STDIN (FORMAT BINARY)"
        with explaining(), self._connection.cursor() as cursor, cursor.copy(statement) as copied:
            copied.set_types([type_ for _, type_ in columns])
            for row in rows:
                copied.write_row(row)

    def _send(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        self._connection.execute(statement.replace("?", "%s"), values)
        return []

    def commit(self) -> None:
        """Commit; a server that had aborted the transaction answers ROLLBACK instead of an error."""
        with explaining():
            answer = self._connection.execute("COMMIT").statusmessage
        if answer != "COMMIT":
            raise JournalUnavailableError(f"The server answered a commit with {answer}: nothing was written.")

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone."""
        return bool(self._connection.closed)

    def rest(self) -> bool:
        """End an open transaction, and tell whether the session can be used again."""
        if not self.is_lost and self._connection.info.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                self._connection.execute("ROLLBACK")
        if self.is_lost or self._is_in_doubt:
            return False
        return self._connection.info.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        """Close the connection."""
        with suppress(psycopg.Error):
            self._connection.close()


class ConnectionPool:
    """Up to `most` sessions, lent one by one."""

    def __init__(self, url: str, *, read_only: bool, most: int) -> None:
        self._url, self._read_only = url, read_only
        self._idle: list[PooledConnection] = []
        self._free, self._is_closed = threading.BoundedSemaphore(most), False

    @contextmanager
    def lend(self, greeting: str) -> Iterator[PooledConnection]:
        """A session that has answered a first statement, so that it is known to be alive."""
        with self._free:
            session = self._greeted(greeting)
            try:
                yield session
            finally:
                self._take_back(session)

    def connect(self) -> PooledConnection:
        """A new session."""
        if self._is_closed:
            raise JournalUnavailableError("A journal must be open to be used, but this one was closed.")
        return PooledConnection(self._url, read_only=self._read_only)

    def close(self) -> None:
        """Close the sessions that are not lent; the others are closed when they come back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _greeted(self, greeting: str) -> PooledConnection:
        while self._idle:
            with suppress(IndexError):  # another thread may have been quicker
                session = self._idle.pop()
                with suppress(JournalError):
                    session.query(greeting, ())
                    return session
                session.close()
        session = self.connect()
        session.query(greeting, ())
        return session

    def _take_back(self, session: PooledConnection) -> None:
        if session.rest() and not self._is_closed:
            self._idle.append(session)
        else:
            session.close()


@contextmanager
def explaining() -> Iterator[None]:
    """Raise psycopg's errors as ours."""
    try:
        yield
    except psycopg.Error as error:
        kind = next((ours for theirs, ours in ERRORS if isinstance(error, theirs)), JournalUnavailableError)
        # One line, whatever the server's message has.
        raise kind(f"PostgreSQL: {' '.join(str(error).split()) or type(error).__name__}") from error
