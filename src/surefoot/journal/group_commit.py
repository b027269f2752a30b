"""Group commit: one thread writes, and what waits while it flushes is committed together by the next flush.

A single caller never waits for others. With several, the next group gathers during the flush of the last one, and
callers that were just answered get a moment, at most half a flush, to come back and join it.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from surefoot.errors import JournalUnavailableError
from surefoot.journal.contract import refuse_nesting

T = TypeVar("T")
LARGEST_GROUP = 256
LONGEST_MOMENT = 2e-3


class Job:
    """A transaction that waits for its flush, and then its result or error; `tell` is called with it then."""

    __slots__ = ("error", "result", "tell", "work")

    def __init__(self, work: Callable[[], Any], tell: "Callable[[Job], object]") -> None:
        self.work, self.tell = work, tell
        self.result, self.error = None, None  # type: Any, BaseException | None


class Writer:
    """Runs `commit` on groups of jobs, in a thread of its own, until it is closed."""

    def __init__(self, commit: Callable[[list[Job]], None], *, name: str) -> None:
        self._commit, self._gate, self._is_closed = commit, threading.Lock(), False
        # The bell rings, by being released, when as many jobs wait as the thread is waiting for: it sleeps till then.
        self._jobs, self._wanted, self._bell = list[Job](), 1, threading.Lock()
        self._bell.acquire()
        self._thread = threading.Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T]) -> T:
        """Have `work` done in the next group; return or raise what it did, once that is durable."""
        done = threading.Lock()
        done.acquire()
        job = Job(work, lambda _: done.release())
        self._put(job)
        done.acquire()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Have `work` done in the next group; the future has what it did, once that is durable."""
        future = Future[T]()
        future.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        self._put(Job(work, partial(_settle, future)))
        return future

    def close(self) -> None:
        """Finish what is waiting, and end the thread."""
        with self._gate:
            self._is_closed = True
            self._ring()
        self._thread.join()

    def _put(self, job: Job) -> None:
        refuse_nesting(self._thread.ident or 0)
        with self._gate:
            if self._is_closed:
                raise JournalUnavailableError("A journal must be open to be used, but this one was closed.")
            self._jobs.append(job)
            self._ring()

    def _ring(self) -> None:
        # Always under the gate: a lock that is released twice raises.
        if (len(self._jobs) >= self._wanted or self._is_closed) and self._bell.locked():
            self._bell.release()

    def _write(self) -> None:
        callers, moment = 1, 0.0
        while jobs := self._gather(callers, moment):
            began = time.perf_counter()
            try:
                self._commit(jobs)
            except BaseException as error:  # a caller must never wait for a thread that has ended
                for job in jobs:
                    job.error = job.error or error
            moment = min((time.perf_counter() - began) / 2, LONGEST_MOMENT)
            # Whoever is answered now may come back at once, and join those who wait already.
            callers = len(jobs) + len(self._jobs)
            for job in jobs:
                job.tell(job)

    def _gather(self, callers: int, moment: float) -> list[Job]:
        """The next group: for a moment it may grow as large as the last; then one job is enough. Empty at the end."""
        if callers > 1:
            self._await(min(callers, LARGEST_GROUP), moment)
        self._await(1, -1)
        with self._gate:
            jobs, self._jobs = self._jobs[:LARGEST_GROUP], self._jobs[LARGEST_GROUP:]
            return jobs

    def _await(self, wanted: int, seconds: float) -> None:
        with self._gate:
            # A bell that rang too late for the last wait must not end this one.
            self._bell.acquire(blocking=False)
            self._wanted = wanted
            self._ring()
        self._bell.acquire(timeout=seconds)


def _settle(future: Future[Any], job: Job) -> None:
    with suppress(BaseException):  # a callback of a future must not end the thread that all others wait for
        if job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)
