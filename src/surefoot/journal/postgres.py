"""A journal on a PostgreSQL server: several processes drive the same experiment, which keeps one ledger.

A transaction locks its experiment's row (`SELECT ... FOR UPDATE`), reads the true head, and commits. If the server goes
away before the commit is sent, nothing was written. If it goes away during the commit, the journal connects again and
looks: locking the experiment's row waits until the lost commit has ended one way or the other, and then the chain holds
the events or it does not. Only if the server stays away is the outcome unknown.

The tables live in a schema of their own, `surefoot`. Open the journal after a fork, never before.
"""

import threading
import time as clock
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from msgspec.structs import astuple

from surefoot.errors import (
    JournalBusyError,
    JournalError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalUnavailableError,
    OutcomeUnknownError,
)
from surefoot.journal import sql
from surefoot.journal.connection_pool import BEGIN, ConnectionPool, PooledConnection
from surefoot.journal.contract import Journal, Transaction, View, check_unmoved, refuse_nesting
from surefoot.journal.events import JOURNAL, Event, Head
from surefoot.journal.migrations import NEWEST, WITH_PRIVATE, check_readable, check_version, migrate
from surefoot.journal.probed_experiments import ProbedExperiments, ProbedRow
from surefoot.journal.sql import Question
from surefoot.journal.staged import StagedTransaction

T = TypeVar("T")
MANY = 40  # events: fewer are written sooner by statements that share a round trip
EVENTS = (
    ("experiment", "int8"),
    ("number", "int8"),
    ("kind", "text"),
    ("time", "float8"),
    ("payload", "bytea"),
    ("key", "text"),
    ("previous", "text"),
    ("hash", "text"),
)
TEXTS = (
    ("experiment", "int8"),
    ("number", "int8"),
    ("alias", "text"),
    ("person", "text"),
    ("salt", "bytea"),
    ("text", "bytea"),
)
LOCK = " FOR UPDATE"
MIGRATING = 0x53757265  # the advisory lock under which one process at a time changes the tables
# A row that is being created cannot be locked yet, so that a second look waits for this lock as well.
LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"


class PostgresView(sql.SqlView):
    """An experiment's events on a PostgreSQL server."""

    most_values = 48  # psycopg reads a statement of more than 50 anew each time, which costs more than what it writes

    @property
    def id(self) -> int:
        """The experiment's number in the database."""
        return int(self._id)

    @classmethod
    def opening(cls, name: str, experiment: int | None, keys: Sequence[str]) -> list[Question]:
        """What a transaction begins with, so that it takes one round trip.

        First of all the lock: what is read after it is the truth. `experiment` is its number, if that is known: where
        it is another one by now, all else is asked again.
        """
        locked = [BEGIN, (sql.FIND + LOCK, (name,))]
        if experiment is None:
            return locked
        texts = [key for key in keys if isinstance(key, str)]
        return [*locked, (sql.HEAD, (experiment,)), *cls.lookups(experiment, texts)]

    def copy(self, pending: "StagedTransaction[PostgresView]", session: PooledConnection) -> bool:
        """Write many rows that a transaction gathered as a copy; false where there are few, or their order matters."""
        events, texts = pending.events, pending.texts
        # A text that is erased must go before its alias is used again, and a copy has no order of that kind.
        copies = len(events) >= MANY and None not in texts.values()
        if copies:
            session.copy("events", EVENTS, ((self._id, *astuple(event)) for event in events))
        if copies and texts:
            new = ((self._id, number, *astuple(text)) for number, text in texts.items() if text is not None)
            session.copy("private", TEXTS, new)
        return copies


class PostgresJournal(Journal):
    """Experiments on a PostgreSQL server."""

    def __init__(self, url: str, *, read_only: bool = False, sessions: int = 8, patience: float = 10.0) -> None:
        self._read_only, self._patience, self._version = read_only, patience, NEWEST
        self._sessions = ConnectionPool(url, read_only=read_only, most=sessions)
        self._locks = [threading.Lock() for _ in range(256)]  # an experiment's is found by the hash of its name
        self._owners = set[int]()
        self._ids = dict[str, int]()  # of experiments that were written to
        self._probed, self._probing = ProbedExperiments(), threading.Lock()
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment."""
        with self._alone(name), self._sessions.lend(BEGIN) as session:
            session.query(LOCK_NAME, (name,))
            event = sql.create(session.query, name, payload, time)
            self._commit(session, name, event.head)
            return event

    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """Run `work` while the experiment's row is locked, and return when the server has flushed its commit."""
        sql.refuse_name(name)
        opening = PostgresView.opening(name, self._ids.get(name), keys)
        with self._alone(name), self._sessions.lend(*opening) as session:
            view = PostgresView(name, session.query, lock=LOCK)
            self._ids[name] = view.id
            pending = StagedTransaction(view)
            pending.expect(keys)
            result = work(pending)
            pending.finish()
            # Otherwise the session's ROLLBACK ends it, and saves a flush.
            if pending.events or pending.attachments or pending.texts:
                has_rows = view.copy(pending, session)
                self._commit(session, name, pending.head, lambda write: view.keep(pending, write, has_rows=has_rows))
            return result

    def remove(self, name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        """Delete an experiment while its row is locked, and note that in the same commit."""
        with self._alone(name), self._sessions.lend(BEGIN) as session:
            session.query(LOCK_NAME, (name,))
            view = PostgresView(name, session.query, lock=LOCK)
            check_unmoved(view, head)
            # Nobody else locks two rows, so that nobody waits for this one while it waits.
            own = PostgresView(JOURNAL, session.query, lock=LOCK)
            pending = StagedTransaction(own)
            note(pending)
            pending.finish()
            own.keep(pending)
            view.remove()
            self._commit(session, JOURNAL, pending.head)

    def names(self) -> list[str]:
        """The experiments, sorted."""
        return [row[0] for row in self._read(sql.NAMES, ())]

    def probe(self) -> dict[str, str]:
        """Commit a new version of one experiment's row, with what it held; nothing where there is none yet.

        Before it an event of each experiment whose turn it is is sent as all are, and taken back, since a server may
        refuse events alone, or those of one experiment.
        """
        with self._probing:
            rows = [ProbedRow(*row) for row in self._read("SELECT id, name, number FROM experiments", ())]
            chosen = self._probed.chosen(rows)
            tried, refused = self._try(chosen)
            if refused and len(refused) == len(tried):
                raise next(iter(refused.values()))
            locked = [row for row in chosen if row not in tried]
            found = self._probed.note(tried, {name: str(error) for name, error in refused.items()}, locked)
            with self._sessions.lend(BEGIN) as session:
                willing = [row.id for row in tried if row.name not in refused][:1]
                session.query("UPDATE experiments SET number = number WHERE id = ANY(?)", (willing,))
                session.commit()
        return found

    def _try(self, rows: list[ProbedRow]) -> tuple[list[ProbedRow], dict[str, JournalError]]:
        """Those that nobody has locked, and of these the ones that take no event."""
        try:
            return self._append_nothing(rows), {}
        except JournalError as error:
            if len(rows) == 1:
                return rows, {rows[0].name: error}
        self._read("SELECT 1", ())  # a server that is away is asked once, and not for each
        each = [self._try([row]) for row in rows]  # one of them
        return [row for tried, _ in each for row in tried], {
            name: error for _, one in each for name, error in one.items()
        }

    def _append_nothing(self, rows: list[ProbedRow]) -> list[ProbedRow]:
        with self._sessions.lend(BEGIN) as session:
            # Without waiting: a row that is locked is being written to.
            lock = "SELECT id, number FROM experiments WHERE id = ANY(?) ORDER BY id FOR UPDATE SKIP LOCKED"
            free: dict[int, int] = dict(session.query(lock, ([row.id for row in rows],)))
            with session.together() as write:
                for row, number in free.items():
                    write("SAVEPOINT probe", ())
                    write(sql.insert_many(1), (row, number + 1, "probe", 0.0, b"", None, "", ""))
                    write("ROLLBACK TO SAVEPOINT probe", ())
        return [row for row in rows if row.id in free]

    def clock(self) -> float | None:
        """The server's clock."""
        return float(self._read("SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8", ())[0][0])

    def view(self, name: str) -> View:
        """The experiment's durable events."""
        return PostgresView(name, self._read, has_private=self._version >= WITH_PRIVATE)

    def close(self) -> None:
        """Close the connections."""
        self._sessions.close()

    def _prepare(self) -> None:
        with self._sessions.lend(BEGIN) as session:
            exists = session.query("SELECT to_regclass('surefoot.schema') IS NOT NULL", ())[0][0]
            if self._read_only and not exists:
                raise JournalNotFoundError("There must be a journal in the database, but it has no such tables.")
            if self._read_only:
                self._version = check_readable(session.query)
            elif not exists or check_version(session.query, "written") < NEWEST:
                self._migrate(session)

    def _migrate(self, session: PooledConnection) -> None:
        # `migrate` looks at the version again behind this lock: another process may have been quicker.
        session.query("SELECT pg_advisory_xact_lock(?)", (MIGRATING,))
        session.query("CREATE SCHEMA IF NOT EXISTS surefoot", ())
        migrate(session.query, dialect="postgres")
        session.commit()

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """One transaction of an experiment at a time in this process, even if the server forgets its lock."""
        if self._read_only:
            raise JournalReadOnlyError("A journal must be open for writing, but this one was opened to be read.")
        refuse_nesting(threading.get_ident() if threading.get_ident() in self._owners else 0)
        # Two experiments may share a lock, which costs time and nothing else.
        with self._locks[hash(name) % len(self._locks)]:
            self._owners.add(threading.get_ident())
            try:
                yield
            finally:
                self._owners.discard(threading.get_ident())

    def _read(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        question = (statement, tuple(values))
        with self._sessions.lend(question) as session:
            return session.query(*question)

    def _commit(
        self, session: PooledConnection, name: str, head: Head, write: Callable[[sql.Query], None] | None = None
    ) -> None:
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
                return self._look_up(name, head)
            except (JournalUnavailableError, JournalBusyError):
                if clock.monotonic() > deadline:
                    raise OutcomeUnknownError(
                        f"{error} Whether event {head.number} of {name!r} was written is not known, since the server "
                        f"did not come back within {self._patience:g} s. Look it up by its key before you try again."
                    ) from error
            clock.sleep(0.1)

    def _look_up(self, name: str, head: Head) -> bool:
        # Not a lent one: this thread holds one already, and waiting for another could wait forever.
        with closing(self._sessions.connect()) as session:
            session.query("BEGIN", ())
            session.query(LOCK_NAME, (name,))
            try:
                return PostgresView(name, session.query, lock=LOCK).follows(head)
            except JournalNotFoundError:
                return False
