"""Group commit: one thread writes, and what waits while it flushes is committed together by the next flush.

A lone caller never waits for company. Where several are at work, the flush of one group is the time in which the next
one gathers, and callers who have just been answered get a moment, half a flush at most, to come back and join it.
"""

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from surefoot.errors import JournalUnavailableError
from surefoot.journal.base import refuse_nesting

T = TypeVar("T")
LARGEST_GROUP = 256
LONGEST_MOMENT, GLANCE = 2e-3, 5e-5


class Job:
    """A transaction that waits for its flush, and then its result or error."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.result, self.error = work, None, None  # type: Callable[[], Any], Any, BaseException | None
        self.done = threading.Lock()
        self.done.acquire()


class Writer:
    """Runs `commit` on groups of jobs, in a thread of its own, until it is closed."""

    def __init__(self, commit: Callable[[list[Job]], None], *, name: str) -> None:
        self._commit, self._queue, self._gate = commit, SimpleQueue[Job | None](), threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T]) -> T:
        """Have `work` done in the next group; return or raise what it did, once that is durable."""
        refuse_nesting(self._thread.ident or 0)
        job = Job(work)
        with self._gate:
            if self._is_closed:
                raise JournalUnavailableError("A journal must be open to be used, but this one was closed.")
            self._queue.put(job)
        job.done.acquire()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Finish what is waiting, and end the thread."""
        with self._gate:
            if not self._is_closed:
                self._queue.put(None)
            self._is_closed = True
        self._thread.join()

    def _write(self) -> None:
        while (first := self._queue.get()) is not None:
            jobs, is_last = self._gather(first)
            began = time.perf_counter()
            try:
                self._commit(jobs)
            except BaseException as error:  # a caller must never wait for a thread that is gone
                for job in jobs:
                    job.error = job.error or error
            moment = (time.perf_counter() - began) / 2
            callers = len(jobs) + self._queue.qsize()
            for job in jobs:
                job.done.release()
            if is_last:
                return
            if callers > 1:
                self._await(callers, min(moment, LONGEST_MOMENT))

    def _await(self, callers: int, seconds: float) -> None:
        deadline = time.perf_counter() + seconds
        while self._queue.qsize() < min(callers, LARGEST_GROUP) and time.perf_counter() < deadline:
            time.sleep(GLANCE)

    def _gather(self, first: Job) -> tuple[list[Job], bool]:
        jobs = [first]
        while len(jobs) < LARGEST_GROUP:
            try:
                job = self._queue.get_nowait()
            except Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
        return jobs, False
