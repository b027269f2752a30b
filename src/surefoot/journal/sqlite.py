"""A journal in one SQLite file: nothing to install, one process that writes, any number that read.

WAL mode with `synchronous=FULL`: a commit is one flush of the log, and readers never wait for it. One thread writes,
and commits together what waits together (`surefoot.journal.group_commit`); what a transaction appends waits in memory
until it has succeeded. The writing process holds a lock on an empty SQLite file beside the journal, `<path>-writer`,
which the operating system releases when the process ends, however it ends.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder, SqliteJournal(Path(folder) / "shop.journal") as journal:
...     created = journal.create("shop", b'{"alpha":0.05}', time=0.0)
...     journal.transact("shop", lambda t: t.append("decision", b'{"action":3}', time=1.0)).number
2
"""

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from surefoot.errors import (
    JournalError,
    JournalReadOnlyError,
    JournalUnavailableError,
    OutcomeUnknownError,
)
from surefoot.journal import sql
from surefoot.journal.contract import Journal, Transaction, View, check_unmoved
from surefoot.journal.events import JOURNAL, Event, Head
from surefoot.journal.group_commit import Job, Writer
from surefoot.journal.migrations import WITH_PRIVATE
from surefoot.journal.probed_experiments import ProbedExperiments, ProbedRow
from surefoot.journal.sqlite_file import SqliteFile, code_of, explained
from surefoot.journal.staged import StagedTransaction
from surefoot.values import Value

T = TypeVar("T")
EMPTY_SECONDS = 1.0  # between two attempts to empty a log that somebody reads


class Request(Value, frozen=True):
    """A transaction that waits for its turn; the keys it will look up are fetched with those of its group."""

    run: Callable[["Request"], Any]
    name: str
    work: Callable[[Transaction], Any]
    keys: tuple[str, ...]

    def __call__(self) -> Any:
        """Run it."""
        return self.run(self)


class _TakenBack(Exception):  # noqa: N818
    """Ends a write that was only to be tried."""


class SqliteJournal(Journal):
    """Experiments in a SQLite file."""

    def __init__(self, path: Path | str, *, read_only: bool = False, busy_seconds: float = 5.0) -> None:
        self.path = Path(path)
        self._file = SqliteFile(self.path, read_only=read_only, busy_seconds=busy_seconds)
        self._group, self._requests = dict[str, StagedTransaction[sql.SqlView]](), list[Request]()
        self._broken: str | None = None
        self._probed = ProbedExperiments()
        # From when on the log is to be emptied, which may hold what was erased; also what a killed process has left.
        left = not read_only and self._file.has_log
        self._empties: float | None = 0.0 if left else None
        self._writer = None if read_only else Writer(self._commit, name=f"journal {self.path.name}")

    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment."""
        return self._writing().run(lambda: self._create(name, payload, time))

    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """Run `work` in the writing thread, and return when the group that it belongs to has been flushed."""
        result: T = self._writing().run(Request(self._transact, name, work, tuple(keys)))
        return result

    def submit(
        self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = (), executor: Executor
    ) -> "Future[T]":
        """Run `work` in the writing thread; no other thread waits for it."""
        return self._writing().submit(Request(self._transact, name, work, tuple(keys)))

    def remove(self, name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        """Delete an experiment and note that in one commit; then what is left of it in the log."""
        self._writing().run(lambda: self._remove(name, head, note))
        self.forget()

    def forget(self) -> None:
        """Move the log into the file and empty it, so that nothing that was erased is left there."""
        self._empties = 0.0
        self._writing().run(lambda: None)  # the writing thread empties it after its commit

    @property
    def is_forgetting(self) -> bool:
        """Whether a reader keeps the log from being emptied."""
        return self._empties is not None

    def names(self) -> list[str]:
        """The experiments, sorted."""
        return [row[0] for row in self._file.read(sql.NAMES, ())]

    def view(self, name: str) -> View:
        """The experiment's durable events."""
        return sql.SqlView(name, self._file.read, has_private=self._file.version >= WITH_PRIVATE)

    def close(self) -> None:
        """Finish what is waiting, move the log into the file, and release the lock."""
        if self._writer is not None:
            self._writer.close()
        self._file.close()

    def probe(self) -> dict[str, str]:
        """Commit a change of a number in the file's header that means nothing.

        With it an event of each experiment whose turn it is is written, and taken back: pages may be damaged that hold
        those of one experiment.
        """
        return self._writing().run(self._probe)

    def _probe(self) -> dict[str, str]:
        before = int(self._file.write("PRAGMA user_version", ())[0][0])
        self._file.write(f"PRAGMA user_version = {(before + 1) % 2**31}", ())
        rows = self._file.write("SELECT id, name, number FROM experiments", ())
        tried, refused = self._probed.chosen(ProbedRow(*row) for row in rows), dict[str, BaseException]()
        for row in tried:
            try:
                self._whole(lambda row=row: self._append_nothing(row))  # type: ignore[misc]
            except _TakenBack:
                continue
            except (sqlite3.Error, JournalError) as error:
                if not self._file.connection.in_transaction:
                    raise  # it is not this experiment's fault
                refused[row.name] = explained(error, self.path)
        if refused and len(refused) == len(tried):
            raise next(iter(refused.values()))
        return self._probed.note(tried, {name: str(error) for name, error in refused.items()})

    def _append_nothing(self, row: ProbedRow) -> None:
        self._file.write(sql.insert_many(1), (row.id, row.number + 1, "probe", 0.0, b"", None, "", ""))
        raise _TakenBack

    def _writing(self) -> Writer:
        if self._writer is None:
            raise JournalReadOnlyError(f"A journal must be open for writing, but {self.path} was opened to be read.")
        return self._writer

    def _commit(self, jobs: list[Job]) -> None:
        self._requests = [job.work for job in jobs if isinstance(job.work, Request)]
        try:
            self._heal()
            # It locks at once: a transaction that begins by reading may be refused when it comes to write.
            self._file.connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._run(job)
            for waiting in self._group.values():
                waiting.over.keep(waiting)
            self._flush()
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._file.connection.rollback()
            for job in jobs:
                job.error = job.error or explained(error, self.path)
        finally:
            self._group, self._requests = {}, []
        # Not after a failed flush: then nobody knows what the log holds.
        if self._empties is not None and self._broken is None and monotonic() >= self._empties:
            self._empties = None if self._file.empty_log() else monotonic() + EMPTY_SECONDS

    def _heal(self) -> None:
        """Open the file again after a failed flush: what this connection holds in memory may not be on the disk."""
        if self._broken is None:
            return
        try:
            self._file.reopen()
        except JournalError as error:
            raise JournalUnavailableError(f"{self._broken} It cannot be opened again: {error}") from error
        self._broken = None

    def _transact(self, request: Request) -> Any:
        waiting = self._group.get(request.name) or self._begin(request.name)
        transaction = StagedTransaction(waiting)
        result = request.work(transaction)
        transaction.finish()
        waiting.absorb(transaction)
        return result

    def _begin(self, name: str) -> StagedTransaction[sql.SqlView]:
        """What the group adds to this experiment."""
        waiting = StagedTransaction(sql.SqlView(name, self._file.write))
        waiting.expect([key for request in self._requests if request.name == name for key in request.keys])
        self._group[name] = waiting
        return waiting

    def _run(self, job: Job) -> None:
        try:
            job.result = job.work()
        except BaseException as error:
            job.error = error
        # SQLite may have rolled everything back, with the experiments that this group created. Later statements would
        # be committed on their own.
        if not self._file.connection.in_transaction:
            raise JournalUnavailableError(f"{self.path}: the transaction was undone ({job.error}).") from job.error

    def _create(self, name: str, payload: bytes, time: float) -> Event:
        return self._whole(lambda: sql.create(self._file.write, name, payload, time))

    def _whole(self, write: Callable[[], T]) -> T:
        # A failure must undo this alone, and not what else the group has written.
        self._file.write("SAVEPOINT experiment", ())
        try:
            return write()
        except BaseException:
            self._file.write("ROLLBACK TO experiment", ())
            raise
        finally:
            self._file.write("RELEASE experiment", ())

    def _remove(self, name: str, head: Head, note: Callable[[Transaction], object]) -> None:
        view = sql.SqlView(name, self._file.write)
        # Where the group has written to it, that is not in the tables yet.
        check_unmoved(self._group.get(name, view), head)
        own = self._group.get(JOURNAL) or self._begin(JOURNAL)
        transaction = StagedTransaction(own)
        note(transaction)
        transaction.finish()
        self._whole(view.remove)
        self._group.pop(name, None)
        own.absorb(transaction)  # last, for it cannot fail: both or neither

    def _flush(self) -> None:
        try:
            self._file.connection.execute("COMMIT")
        except sqlite3.Error as error:
            # Then nothing was written, and the journal can go on.
            if code_of(error) == sqlite3.SQLITE_FULL:
                raise
            # After a failed flush it is unknown what the disk holds, and later writes could contradict it.
            self._broken = f"A commit to {self.path} failed ({error})."
            raise OutcomeUnknownError(f"{self._broken} Look up what you wrote by its key.") from error
