"""Group commit: transactions that wait while the disk or the server flushes share the next flush.

Threads of the journal's own run the transactions, one group of a lane at a time: a file has one lane, a server one for
each experiment. A single caller never waits for others. With several, the next group gathers during the flush of the
last one, and callers that were just answered get a moment, at most half a flush, to come back and join it.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from surefoot.errors import JournalError
from surefoot.journal.contract import Transaction, View, closed, refuse_nesting

T = TypeVar("T")
V = TypeVar("V", bound=View)
LARGEST_GROUP = 256
LONGEST_MOMENT = 2e-3


class Job:
    """What a caller wants done: a transaction, or a call that runs alone; then its result or error."""

    __slots__ = ("answer", "error", "keys", "name", "result", "work")

    def __init__(
        self, name: str, work: Callable[..., Any], keys: Sequence[str] | None, answer: "Callable[[Job], object]"
    ) -> None:
        self.name, self.work, self.keys, self.answer = name, work, keys, answer  # without keys: a call
        self.result, self.error = None, None  # type: Any, BaseException | None


class Lane:
    """Jobs that are done one group after the other."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.is_served = False
        self.began: float | None = None  # when the group that is being committed was taken
        # Until then, the next group waits for as many jobs as may come; the bell is released when they are there.
        self.until, self.expected, self.wanted, self.bell = 0.0, 1, 0, threading.Lock()
        self.bell.acquire()

    def take(self) -> list[Job]:
        """The next group: transactions that follow each other, or one call."""
        size = 1
        if self.jobs[0].keys is not None:
            while size < min(len(self.jobs), LARGEST_GROUP) and self.jobs[size].keys is not None:
                size += 1
        group, self.jobs = self.jobs[:size], self.jobs[size:]
        return group


class GroupCommit:
    """Runs `commit` on groups of transactions, until it is closed; with several threads, each experiment has a lane."""

    def __init__(self, commit: Callable[[list[Job]], None], *, name: str, threads: int = 1) -> None:
        self._commit, self._name, self._most = commit, name, threads
        self._gate, self._is_closed = threading.Lock(), False
        self._lanes, self._ready = dict[str, Lane](), SimpleQueue[Lane | None]()
        self._threads: list[threading.Thread] = []
        self._idents = set[int]()

    def transact(self, name: str, work: Callable[[Transaction], T], keys: Sequence[str]) -> T:
        """Run a transaction in the next group; return or raise what it did, once that is durable."""
        result: T = self._wait(name, work, keys)
        return result

    def alone(self, name: str, call: Callable[[], T]) -> T:
        """Run a call between two groups of the experiment's lane."""
        result: T = self._wait(name, call, None)
        return result

    def submit(self, name: str, work: Callable[[Transaction], T], keys: Sequence[str]) -> "Future[T]":
        """`transact` as a future."""
        future = Future[T]()
        future.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        self._put(Job(name, work, keys, partial(_settle, future)))
        return future

    def waits(self) -> dict[str, float]:
        """For how many seconds the groups that are being committed have been, by experiment or, with one lane, ''."""
        with self._gate:
            return {name: monotonic() - lane.began for name, lane in self._lanes.items() if lane.began is not None}

    def close(self) -> None:
        """Finish what is waiting, and end the threads."""
        with self._gate:
            self._is_closed = True
            self._end_threads()
        for thread in self._threads:
            thread.join()

    def _wait(self, name: str, work: Callable[..., Any], keys: Sequence[str] | None) -> Any:
        done = threading.Lock()
        done.acquire()
        job = Job(name, work, keys, lambda _: done.release())
        self._put(job)
        done.acquire()
        if job.error is not None:
            raise job.error
        return job.result

    def _put(self, job: Job) -> None:
        if (caller := threading.get_ident()) in self._idents:
            refuse_nesting(caller)
        with self._gate:
            if self._is_closed:
                raise closed()
            name = job.name if self._most > 1 else ""
            lane = self._lanes.get(name) or self._lanes.setdefault(name, Lane())
            lane.jobs.append(job)
            if not lane.is_served:
                lane.is_served = True
                self._ready.put(lane)
                if len(self._threads) < min(len(self._lanes), self._most):
                    self._threads.append(threading.Thread(target=self._serve, name=self._name, daemon=True))
                    self._threads[-1].start()
            elif 0 < lane.wanted <= len(lane.jobs):
                lane.wanted = 0
                lane.bell.release()

    def _serve(self) -> None:
        self._idents.add(threading.get_ident())
        while (lane := self._ready.get()) is not None:
            group = self._gather(lane)
            began = lane.began = monotonic()
            self._run(group)
            lane.until = monotonic() + min((monotonic() - began) / 2, LONGEST_MOMENT)
            with self._gate:
                lane.began = None
                # Whoever is answered now may come back at once, and join those who wait already.
                lane.expected, lane.is_served = min(len(group) + len(lane.jobs), LARGEST_GROUP), bool(lane.jobs)
                if lane.jobs:
                    self._ready.put(lane)
                self._end_threads()
            for job in group:
                job.answer(job)
        self._idents.discard(threading.get_ident())

    def _gather(self, lane: Lane) -> list[Job]:
        """The next group: for a moment it may grow as large as the last one."""
        with self._gate:
            waits = lane.until - monotonic() if len(lane.jobs) < lane.expected else 0.0
            lane.wanted = lane.expected if waits > 0 else 0
        if waits > 0:
            lane.bell.acquire(timeout=waits)
        with self._gate:
            lane.wanted = 0
            lane.bell.acquire(blocking=False)  # it may have rung just after the wait was over
            return lane.take()

    def _run(self, group: list[Job]) -> None:
        try:
            if group[0].keys is None:
                group[0].result = group[0].work()
            else:
                self._commit(group)
        except BaseException as error:  # a caller must never wait for a thread that has ended
            for job in group:
                # One each: raised in several threads, a single exception would collect all their tracebacks.
                job.error = job.error or (type(error)(*error.args) if isinstance(error, JournalError) else error)

    def _end_threads(self) -> None:
        # A lane that is served may have got jobs before the journal was closed.
        if self._is_closed and not any(lane.is_served for lane in self._lanes.values()):
            for _ in self._threads:
                self._ready.put(None)


def stage(group: Sequence[Job], view: Callable[[str], V]) -> list[tuple[V, Transaction]]:
    """Run the transactions of a group, each over those before it; what to write to each experiment, if they did.

    A transaction that raises leaves nothing behind, and hurts no other.
    """
    staged: dict[str, tuple[V, Transaction]] = {}
    for job in group:
        try:
            if job.name not in staged:
                stored = view(job.name)
                over = Transaction(stored)
                over.expect([key for each in group if each.name == job.name for key in each.keys or ()])
                staged[job.name] = stored, over
            _, over = staged[job.name]
            transaction = Transaction(over)
            job.result = job.work(transaction)
            transaction.finish()
            over.absorb(transaction)
        except BaseException as error:
            job.error = error
    return list(staged.values())


def _settle(future: Future[Any], job: Job) -> None:
    with suppress(BaseException):  # a callback of a future must not end the thread that all others wait for
        if job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)
