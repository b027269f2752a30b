"""Sessions on a PostgreSQL server: a few connections that are reused, and replaced when the server drops them.

By hand, and not by psycopg_pool: while the server is away a caller there waits for its whole timeout and is not told
why; here it is refused at once, with the reason, so that clients play the baseline. And the first statements of a
transaction say whether a connection is alive, so that no other has to.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from surefoot.errors import (
    JournalBusyError,
    JournalConflictError,
    JournalCorruptedError,
    JournalError,
    JournalFullError,
    JournalReadOnlyError,
    JournalUnavailableError,
)
from surefoot.journal.sql import Query, Question

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


Rows: TypeAlias = list[tuple[Any, ...]]
BEGIN: Question = ("BEGIN", ())


class PooledConnection:
    """One connection, on which nothing is committed before COMMIT."""

    def __init__(self, url: str, *, read_only: bool) -> None:
        with explaining():
            # psycopg would otherwise begin transactions of its own.
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
            self._connection.execute(SETTINGS, ("on" if read_only else "off",))
        self._is_in_doubt = False
        self._ahead = dict[Question, Rows]()

    def query(self, statement: str, values: Sequence[object]) -> Rows:
        """Run a statement with `?` for its values, and return all rows."""
        found = self._ahead.pop((statement, tuple(values)), None) if self._ahead else None
        if found is not None:
            return found
        with explaining():
            return _rows(self._connection.execute(statement.replace("?", "%s"), values))

    def ask_ahead(self, questions: Sequence[Question]) -> None:
        """Run statements in one round trip; `query` gives out the rows of each, once."""
        with self.together() as send:
            cursors = [send(statement, values) for statement, values in questions]
        found = zip(questions, cursors, strict=True)
        self._ahead = {question: _rows(cursor) for question, cursor in found if cursor.description}

    @contextmanager
    def together(self) -> Iterator[Callable[[str, Sequence[object]], psycopg.Cursor[Any]]]:
        """Statements are sent together: one round trip in place of one each. Their rows are there at the end.

        What the server refuses is raised at the end, and the session is not lent again: the server skips whatever
        follows, also what psycopg then believes to be prepared. After anything else than a refusal it is lost: a server
        that ends a session may have done what it was sent, and psycopg may not have heard of the end yet.
        """
        self._is_in_doubt = True
        try:
            with explaining(), self._connection.pipeline():
                yield lambda statement, values: self._connection.execute(statement.replace("?", "%s"), values)
        except JournalError as error:
            if _ends_session(error.__cause__):
                self.close()
            raise
        self._is_in_doubt = False

    def copy(self, table: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[object]]) -> None:
        """Write many rows, of columns with these names and types: not one statement for a few of them each."""
        statement = f"COPY {table} ({', '.join(name for name, _ in columns)}) FROM STDIN (FORMAT BINARY)"
        with explaining(), self._connection.cursor() as cursor, cursor.copy(statement) as copied:
            copied.set_types([type_ for _, type_ in columns])
            for row in rows:
                copied.write_row(row)

    def commit(self, write: Callable[[Query], None] | None = None) -> None:
        """Commit, in one round trip with what `write` sends; a server that had aborted answers ROLLBACK, no error."""
        with self.together() as send:
            if write is not None:
                write(lambda statement, values: _nothing(send(statement, values)))
            committed = send("COMMIT", ())
        if committed.statusmessage != "COMMIT":
            raise JournalUnavailableError(
                f"The server answered a commit with {committed.statusmessage}: nothing was written."
            )

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone."""
        return bool(self._connection.closed)

    def rest(self) -> bool:
        """End an open transaction, and tell whether the session can be used again."""
        self._ahead = {}
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
    def lend(self, *opening: Question) -> Iterator[PooledConnection]:
        """A session that has run its first statements, in one round trip, so that it is known to be alive."""
        with self._free:
            session = self._opened(opening)
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

    def _opened(self, opening: Sequence[Question]) -> PooledConnection:
        while True:
            session = self._idle_one()
            is_new = session is None
            if session is None:
                session = self.connect()
            try:
                session.ask_ahead(opening)
                return session
            except BaseException as error:
                was_lost = isinstance(error, JournalError) and session.is_lost
                session.close()
                # Another one may still be alive; what a server refuses it would refuse again.
                if is_new or not was_lost:
                    raise

    def _idle_one(self) -> PooledConnection | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may have been quicker
            return None

    def _take_back(self, session: PooledConnection) -> None:
        if session.rest() and not self._is_closed:
            self._idle.append(session)
        else:
            session.close()


def _ends_session(error: BaseException | None) -> bool:
    """Whether it is more than the refusal of a statement by a server that goes on."""
    return isinstance(error, psycopg.OperationalError) and error.diag.severity_nonlocalized != "ERROR"


def _rows(cursor: psycopg.Cursor[Any]) -> Rows:
    return cursor.fetchall() if cursor.description else []


def _nothing(_: object) -> Rows:
    """What is written has no rows."""
    return []


@contextmanager
def explaining() -> Iterator[None]:
    """Raise psycopg's errors as ours."""
    try:
        yield
    except psycopg.Error as error:
        kind = next((ours for theirs, ours in ERRORS if isinstance(error, theirs)), JournalUnavailableError)
        # One line, whatever the server's message has.
        raise kind(f"PostgreSQL: {' '.join(str(error).split()) or type(error).__name__}") from error
