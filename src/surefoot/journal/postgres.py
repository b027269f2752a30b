"""A journal on a PostgreSQL server: several processes drive the same experiment, which keeps one ledger.

Transactions of an experiment that wait together are one transaction of the server: it locks the experiment's row
(`SELECT ... FOR UPDATE`), reads the true head, and commits. If the server goes away before the commit is sent, nothing
was written. If it goes away during the commit, the journal connects again and looks: locking the experiment's row waits
until the lost commit has ended one way or the other, and then the chain holds the events or it does not. Only if the
server stays away is the outcome unknown.

No answer is waited for longer than `patience`: a session that hangs counts as lost, on both sides. The server ends one
that hangs inside a transaction, so that its lock stops nobody for longer.

The tables live in a schema of their own, `surefoot`. Open the journal after a fork, never before.
"""

import math
import threading
import time as clock
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import astuple

from surefoot.errors import (
    ConfigError,
    JournalBusyError,
    JournalConflictError,
    JournalCorruptedError,
    JournalError,
    JournalFullError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalUnavailableError,
    MissingPackageError,
    OutcomeUnknownError,
)
from surefoot.journal import sql
from surefoot.journal.contract import Journal, Transaction, View, check_unmoved, closed
from surefoot.journal.events import JOURNAL, Event, Head
from surefoot.journal.group_commit import GroupCommit, Job, stage
from surefoot.journal.sql import ExperimentRow, Query, Statement

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import TransactionStatus
except ImportError as error:
    raise MissingPackageError(
        "A journal on PostgreSQL needs psycopg. Install it with: pip install 'surefoot[postgres]'"
    ) from error

T = TypeVar("T")
Rows: TypeAlias = list[tuple[Any, ...]]
BEGIN: Statement = ("BEGIN", ())
LOCK = " FOR UPDATE"
CREATING = 0x53757265  # the advisory lock under which one process at a time makes the tables
# A row that is being created cannot be locked yet, so that a second look waits for this lock as well.
LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
# By a query: a look at the name alone may be answered from what the session remembers.
HAS_TABLES: Statement = (
    "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = ? AND tablename = ?)",
    ("surefoot", "schema"),
)
TABLES = sql.tables(
    id_="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    text='TEXT COLLATE "C"',  # by bytes, as SQLite compares
    integer="BIGINT",
    real="DOUBLE PRECISION",
    data="BYTEA",
)
MANY = 40  # events: fewer are written sooner by statements that share a round trip
EVENTS = ("experiment", *sql.COLUMNS.split(", "))
TEXTS = ("experiment", "number", "alias", "person", "salt", "text")
TYPES = {"experiment": "int8", "number": "int8", "time": "float8", "payload": "bytea", "salt": "bytea", "text": "bytea"}
# Read committed, so that whoever waited for a lock sees the newest head. A server set to answer before it has flushed
# is made to flush, as the contract asks; stricter settings stay.
SETTINGS = """
SELECT set_config('search_path', 'surefoot', false),
       set_config('lock_timeout', %(wait)s, false),
       set_config('idle_in_transaction_session_timeout', %(wait)s, false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('default_transaction_read_only', %(read_only)s, false),
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


class PostgresJournal(Journal):
    """Experiments on a PostgreSQL server.

    sessions: how many connections may be open at most
    patience: seconds to wait for an answer, and for a server that went away to come back
    """

    def __init__(self, url: str, *, read_only: bool = False, sessions: int = 8, patience: float = 10.0) -> None:
        self._read_only, self._patience = read_only, patience
        self._sessions = SessionPool(url, read_only=read_only, most=sessions, patience=patience)
        self._ids = dict[str, int]()  # of experiments that were written to
        self._probed, self._probing = sql.Probe(), threading.Lock()
        # Two sessions are left for readers and the probe, whatever the writers wait for.
        self._group = GroupCommit(self._commit, name="journal", threads=max(2, sessions - 2))
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment."""
        return self._alone(name, lambda: self._create(name, payload, time))

    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """Run `work` while the experiment's row is locked, and return when the server has flushed its commit."""
        return self._writing().transact(name, work, keys)

    def submit(
        self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = (), executor: Executor
    ) -> "Future[T]":
        """Run `work` in a thread of the journal's own; no other thread waits for it."""
        return self._writing().submit(name, work, keys)

    def remove(self, name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        """Delete an experiment while its row is locked, and note that in the same commit."""
        self._alone(name, lambda: self._remove(name, head, note))

    def names(self) -> list[str]:
        """The experiments, sorted."""
        return [row[0] for row in self._read(sql.NAMES, ())]

    def view(self, name: str) -> View:
        """The experiment's durable events."""
        return PostgresView(name, self._read)

    def clock(self) -> float | None:
        """The server's clock."""
        return float(self._read("SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8", ())[0][0])

    def probe(self) -> dict[str, str]:
        """Commit a new version of one experiment's row, with what it held; nothing where there is none yet.

        Before it an event of each experiment whose turn it is is sent as all are, and taken back, since a server may
        refuse events alone, or those of one experiment. One whose last commit is not answered takes none either.
        """
        with self._probing:
            rows = self._probed.choose(self._read(sql.EXPERIMENTS, ()))
            tried, refusals = self._try(rows)
            refusing = self._probed.note(tried, refusals, [row for row in rows if row not in tried])
            with self._sessions.lend(BEGIN) as session:
                willing = [row.id for row in tried if row.name not in refusals][:1]
                session.query("UPDATE experiments SET number = number WHERE id = ANY(?)", (willing,))
                session.commit()
        hanging = {name: waits for name, waits in self._group.waits().items() if waits > self._patience / 2}
        return refusing | {
            name: f"The server has not answered its commit for {waits:.0f} s." for name, waits in hanging.items()
        }

    def close(self) -> None:
        """Finish what is waiting, and close the connections."""
        self._group.close()
        self._sessions.close()

    def _prepare(self) -> None:
        with self._sessions.lend(BEGIN) as session:
            if session.query(*HAS_TABLES)[0][0]:
                sql.check_version(session.query)
            elif self._read_only:
                raise JournalNotFoundError("There must be a journal in the database, but it has no such tables.")
            else:
                self._create_tables(session)

    def _create_tables(self, session: "Session") -> None:
        session.query("SELECT pg_advisory_xact_lock(?)", (CREATING,))
        # Behind the lock, for another process may have been quicker.
        if not session.query(*HAS_TABLES)[0][0]:
            for statement in ("CREATE SCHEMA IF NOT EXISTS surefoot", *TABLES):
                session.query(statement, ())
            session.commit()

    def _writing(self) -> GroupCommit:
        if self._read_only:
            raise JournalReadOnlyError("A journal must be open for writing, but this one was opened to be read.")
        return self._group

    def _alone(self, name: str, call: Callable[[], T]) -> T:
        return self._writing().alone(name, call)

    def _create(self, name: str, payload: bytes, time: float) -> Event:
        with self._sessions.lend(BEGIN) as session:
            session.query(LOCK_NAME, (name,))
            event = sql.create(session.query, name, payload, time)
            self._flush(session, name, event.head)
            return event

    def _commit(self, group: list[Job]) -> None:
        """Run transactions of one experiment, and commit them together."""
        name = group[0].name
        sql.refuse_name(name)
        keys = [key for job in group for key in job.keys or () if isinstance(key, str)]
        with self._sessions.lend(*PostgresView.opening(name, self._ids.get(name), keys)) as session:
            view = PostgresView(name, session.query, lock=LOCK)
            self._ids[name] = view.id
            for _, staged in stage(group, lambda _: view):
                self._keep(session, view, staged)

    def _keep(self, session: "Session", view: "PostgresView", staged: Transaction) -> None:
        # Otherwise the session's ROLLBACK ends it, and saves a flush.
        if staged.events or staged.attachments or staged.texts:
            has_rows = view.copy(staged, session)
            self._flush(session, view.name, staged.head, lambda write: view.keep(staged, write, has_rows=has_rows))

    def _remove(self, name: str, head: Head, note: Callable[[Transaction], object]) -> None:
        with self._sessions.lend(BEGIN) as session:
            session.query(LOCK_NAME, (name,))
            view = PostgresView(name, session.query, lock=LOCK)
            check_unmoved(view, head)
            # Nobody else locks two rows, so that nobody waits for this one while it waits.
            own = PostgresView(JOURNAL, session.query, lock=LOCK)
            transaction = Transaction(own)
            note(transaction)
            transaction.finish()
            own.keep(transaction)
            view.remove()
            self._flush(session, JOURNAL, transaction.head)

    def _read(self, statement: str, values: Sequence[object]) -> Rows:
        question = (statement, tuple(values))
        with self._sessions.lend(question) as session:
            return session.query(*question)

    def _flush(self, session: "Session", name: str, head: Head, write: Callable[[Query], None] | None = None) -> None:
        """Commit, with what `write` sends; where the answer is lost, look whether it was written."""
        try:
            session.commit(write)
        except JournalError as error:
            # A server that answers with an error has not written.
            if not session.is_lost:
                raise
            if not self._was_written(name, head, error):
                raise JournalUnavailableError(f"{error} The commit was lost with it: nothing was written.") from error

    def _was_written(self, name: str, head: Head, error: JournalError) -> bool:
        deadline = clock.monotonic() + self._patience
        while True:
            try:
                return self._has(name, head)
            except (JournalUnavailableError, JournalBusyError):
                if clock.monotonic() > deadline:
                    raise OutcomeUnknownError(
                        f"{error} Whether event {head.number} of {name!r} was written is not known, since the server "
                        f"did not come back within {self._patience:g} s. Look it up by its key before you try again."
                    ) from error
            clock.sleep(0.1)

    def _has(self, name: str, head: Head) -> bool:
        """Whether a chain holds what was to be committed, once the lost session has ended."""
        # Not a lent one: this thread holds one already, and waiting for another could wait forever.
        session = self._sessions.connect()
        try:
            session.query("BEGIN", ())
            session.query(LOCK_NAME, (name,))
            return PostgresView(name, session.query, lock=LOCK).follows(head)
        except JournalNotFoundError:
            return False
        finally:
            session.close()

    def _try(self, rows: list[ExperimentRow]) -> tuple[list[ExperimentRow], dict[str, BaseException]]:
        """Those that nobody has locked, and of these the ones that take no event."""
        try:
            return self._append_probes(rows), {}
        except JournalError as error:
            if len(rows) == 1:
                return rows, {rows[0].name: error}
        self._read("SELECT 1", ())  # a server that is away is asked once, and not for each
        each = [self._try([row]) for row in rows]  # one of them
        refusals = {name: error for _, part in each for name, error in part.items()}
        return [row for tried, _ in each for row in tried], refusals

    def _append_probes(self, rows: list[ExperimentRow]) -> list[ExperimentRow]:
        with self._sessions.lend(BEGIN) as session:
            # Without waiting: a row that is locked is being written to.
            lock = "SELECT id, number FROM experiments WHERE id = ANY(?) ORDER BY id FOR UPDATE SKIP LOCKED"
            free: dict[int, int] = dict(session.query(lock, ([row.id for row in rows],)))
            unlocked = [row._replace(number=free[row.id]) for row in rows if row.id in free]
            with session.together() as send:
                for row in unlocked:
                    send("SAVEPOINT probe", ())
                    sql.append_probe(lambda statement, values: _nothing(send(statement, values)), row)
                    send("ROLLBACK TO SAVEPOINT probe", ())
        return [row for row in rows if row.id in free]


class PostgresView(sql.SqlView):
    """An experiment's events on a PostgreSQL server."""

    most_values = 48  # psycopg reads a statement of more than 50 anew each time, which costs more than what it writes

    @classmethod
    def opening(cls, name: str, experiment: int | None, keys: Sequence[str]) -> list[Statement]:
        """What a transaction begins with, so that it takes one round trip.

        First of all the lock: what is read after it is the truth. `experiment` is its number, if that is known: where
        it is another one by now, all else is asked again.
        """
        locked = [BEGIN, (sql.FIND + LOCK, (name,))]
        if experiment is None:
            return locked
        return [*locked, (sql.HEAD, (experiment,)), *cls.lookups(experiment, keys)]

    def copy(self, staged: Transaction, session: "Session") -> bool:
        """Write many rows that transactions gathered as a copy; false where there are few, or their order matters."""
        events, texts = staged.events, staged.texts
        # A text that is erased must go before its alias is used again, and a copy has no order of that kind.
        copies = len(events) >= MANY and None not in texts.values()
        if copies:
            session.copy("events", EVENTS, ((self.id, *astuple(event)) for event in events))
        if copies and texts:
            new = ((self.id, number, *astuple(text)) for number, text in texts.items() if text is not None)
            session.copy("private", TEXTS, new)
        return copies


class NoAnswerError(psycopg.OperationalError):
    """A server that does not answer, on a connection that looks alive."""


class PatientConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for no answer longer than `patience`.

    Keepalives and `tcp_user_timeout` notice a peer that is gone. They do not notice one whose system still
    acknowledges what it never reads, such as a stuck proxy or server.
    """

    patience = math.inf

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        """Consume a generator of psycopg's, as long as that may take."""
        return super().wait(self._in_time(gen), *args, **kwargs)

    def _in_time(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        deadline = clock.monotonic() + self.patience
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted  # nothing is ready: the interval is over, a tenth of a second
                if not ready and clock.monotonic() > deadline:
                    self.pgconn.finish()  # or psycopg would wait once more, to leave its pipeline in good order
                    raise NoAnswerError(f"the server has not answered for {self.patience:g} s")
                wanted = gen.send(ready)
        except StopIteration as stop:
            result: T = stop.value
            return result


class Session:
    """One connection, on which nothing is committed before COMMIT."""

    def __init__(self, parameters: dict[str, Any], *, read_only: bool, patience: float) -> None:
        settings = {"wait": f"{int(800 * patience)}ms", "read_only": "on" if read_only else "off"}
        with explaining():
            # psycopg would otherwise begin transactions of its own.
            self._connection = PatientConnection.connect(**parameters, autocommit=True)
            self._connection.patience = patience
            self._connection.execute(SETTINGS, settings)
        self._is_in_doubt = self.is_hanging = False
        self._ahead = dict[Statement, Rows]()

    def query(self, statement: str, values: Sequence[object]) -> Rows:
        """Run a statement with `?` for its values, and return all rows."""
        rows = self._ahead.pop((statement, tuple(values)), None) if self._ahead else None
        if rows is not None:
            return rows
        return _rows(self._execute(statement, values))

    def ask_ahead(self, questions: Sequence[Statement]) -> None:
        """Run statements in one round trip; `query` gives out the rows of each, once."""
        if len(questions) == 1:  # sooner without a pipeline
            cursors = [self._execute(*questions[0])]
        else:
            with self.together() as send:
                cursors = [send(statement, values) for statement, values in questions]
        answers = zip(questions, cursors, strict=True)
        self._ahead = {question: _rows(cursor) for question, cursor in answers if cursor.description}

    @contextmanager
    def together(self) -> Iterator[Callable[[str, Sequence[object]], psycopg.Cursor[Any]]]:
        """Statements are sent together: one round trip in place of one each. Their rows are there at the end.

        What the server refuses is raised at the end, and the session is not lent again: the server skips whatever
        follows, also what psycopg then believes to be prepared. After anything else than a refusal it is lost: a server
        that ends a session may have done what it was sent, and psycopg may not have heard of the end yet.
        """
        self._is_in_doubt = True
        with self._losing(), self._connection.pipeline():
            yield self._execute
        self._is_in_doubt = False

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write many rows: not one statement for a few of them each."""
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self._losing(), self._connection.cursor() as cursor, cursor.copy(statement) as sink:
            sink.set_types([TYPES.get(column, "text") for column in columns])
            for row in rows:
                sink.write_row(row)

    def commit(self, write: Callable[[Query], None] | None = None) -> None:
        """Commit, in one round trip with what `write` sends; a server that had aborted answers ROLLBACK, no error."""
        with self.together() as send:
            if write is not None:
                write(lambda statement, values: _nothing(send(statement, values)))
            answer = send("COMMIT", ())
        if answer.statusmessage != "COMMIT":
            raise JournalUnavailableError(
                f"The server answered a commit with {answer.statusmessage}: nothing was written."
            )

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone."""
        return bool(self._connection.closed)

    def rest(self) -> bool:
        """End an open transaction, and tell whether the session can be used again."""
        self._ahead = {}
        if not self.is_lost and self._connection.info.transaction_status != TransactionStatus.IDLE:
            with suppress(JournalError), self._losing():
                self._connection.execute("ROLLBACK")
        if self.is_lost or self._is_in_doubt:
            return False
        return self._connection.info.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        """Close the connection."""
        with suppress(psycopg.Error):
            self._connection.close()

    def _execute(self, statement: str, values: Sequence[object]) -> psycopg.Cursor[Any]:
        with self._losing():
            return self._connection.execute(statement.replace("?", "%s"), values)

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Raise psycopg's errors as ours; whatever is more than the refusal of a statement ends the session."""
        try:
            with explaining():
                yield
        except JournalError as error:
            cause = error.__cause__
            self.is_hanging = self.is_hanging or isinstance(cause, NoAnswerError)
            if isinstance(cause, psycopg.OperationalError) and cause.diag.severity_nonlocalized != "ERROR":
                self.close()
            raise


class SessionPool:
    """Up to `most` sessions, lent one by one, and replaced when the server drops them.

    Not psycopg_pool: while the server is away a caller there waits for its whole timeout and does not learn why; here
    it is refused at once, with the reason, so that clients play the baseline. And the first statements of a transaction
    tell whether a connection is alive, so that no other has to.
    """

    def __init__(self, url: str, *, read_only: bool, most: int, patience: float) -> None:
        self._parameters, self._read_only, self._patience = _parameters(url, patience), read_only, patience
        self._idle: list[Session] = []
        self._free, self._is_closed = threading.BoundedSemaphore(most), False

    @contextmanager
    def lend(self, *opening: Statement) -> Iterator[Session]:
        """A session that has run its first statements, in one round trip, so that it is known to be alive."""
        if not self._free.acquire(timeout=self._patience):
            raise JournalBusyError("PostgreSQL: every session has been waiting for the server for too long.")
        try:
            session = self._opened(opening)
            try:
                yield session
            finally:
                self._take_back(session)
        finally:
            self._free.release()

    def connect(self) -> Session:
        """A new session."""
        if self._is_closed:
            raise closed()
        return Session(self._parameters, read_only=self._read_only, patience=self._patience)

    def close(self) -> None:
        """Close the sessions that are not lent; the others are closed when they come back."""
        self._is_closed = True
        self._close_idle()

    def _opened(self, opening: Sequence[Statement]) -> Session:
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
                if session.is_hanging:
                    self._close_idle()  # they would hang as well, one after the other
                    raise
                # Another one may still be alive; what a server refuses it would refuse again.
                if is_new or not was_lost:
                    raise

    def _idle_one(self) -> Session | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may have been quicker
            return None

    def _close_idle(self) -> None:
        while (session := self._idle_one()) is not None:
            session.close()

    def _take_back(self, session: Session) -> None:
        if session.rest() and not self._is_closed:
            self._idle.append(session)
        else:
            session.close()


def _parameters(url: str, patience: float) -> dict[str, Any]:
    """What the address says, of either form, and how soon a peer that is gone is noticed where it does not say that."""
    seconds = max(2, math.ceil(patience))
    noticed = {
        "connect_timeout": seconds,
        "keepalives_idle": seconds,
        "keepalives_interval": max(1, seconds // 4),
        "keepalives_count": 3,
        "tcp_user_timeout": 1000 * seconds,
    }
    try:
        return noticed | conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise ConfigError(f"A journal's address must be one that PostgreSQL's own tools take, but: {error}.") from None


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
