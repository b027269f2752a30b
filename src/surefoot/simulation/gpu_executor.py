"""A GPU as an executor: it gathers chunks of runs that belong together, and plays them at once."""

import queue
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from surefoot.simulation.engine import ChunkTask
from surefoot.simulation.gpu_engine import Device, refusal

MOST_RUNS = 1_000  # that are played together, and lost together where somebody stops them
GATHER = 0.05  # seconds without another chunk after which a GPU begins

Job = tuple[ChunkTask, "Future[Any]"]


class GpuExecutor(Executor):
    """Plays chunks of runs on one GPU, and everything that it cannot play on the threads of this machine."""

    is_of_this_process = True

    def __init__(self, index: int = 0) -> None:
        # What was played is handed in by threads of its own, which no cancelled task takes along.
        self._device, self._threads, self._handing_in = Device(index), ThreadPoolExecutor(), ThreadPoolExecutor()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._player = threading.Thread(target=self._play_all, name="surefoot-gpu", daemon=True)
        self._said: set[str] = set()
        self._lock, self._is_closed = threading.Lock(), False
        self._player.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Take a task; chunks of runs wait a moment for others of the same simulation."""
        if not isinstance(fn, ChunkTask) or args or kwargs:
            return self._threads.submit(fn, *args, **kwargs)
        if (why := refusal(fn.world, fn.policies)) is not None:
            self._say(f"A GPU cannot play this, so the CPU does: {why}.")
            return self._threads.submit(fn)
        future: Future[Any] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._jobs.put((fn, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End, once everything is played, or without what has not begun."""
        with self._lock:
            self._is_closed = True
            while cancel_futures and (job := self._next(wait=False)) is not LATER:
                if job is not None:
                    job[1].cancel()
            self._jobs.put(None)
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self._player.join()
        self._handing_in.shutdown(wait)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            warnings.warn(text, RuntimeWarning, stacklevel=3)

    def _play_all(self) -> None:
        left: Job | None = None
        while (first := left or self._jobs.get()) is not None:
            gathered, left = [first], None
            runs = len(first[0].runs)
            while left is None and runs < MOST_RUNS and (job := self._next(wait=True)) is not LATER:
                if job is None:  # the end, after these
                    self._jobs.put(None)
                    break
                if _belong_together(first[0], job[0]):
                    gathered.append(job)
                    runs += len(job[0].runs)
                else:
                    left = job
            self._play([job for job in gathered if job[1].set_running_or_notify_cancel()])

    def _next(self, *, wait: bool) -> Any:
        """The next job, if it is there or comes soon."""
        try:
            return self._jobs.get(timeout=GATHER) if wait else self._jobs.get_nowait()
        except queue.Empty:
            return LATER

    def _play(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        task = jobs[0][0]
        try:
            played = self._device.play(
                task.world,
                task.policies,
                runs=[run for one, _ in jobs for run in one.runs],
                horizon=task.horizon,
                seed=task.seed,
                watched=task.watched,
                checkpoints=task.checkpoints,
            ).counts
        except BaseException as error:
            for _, future in jobs:
                future.set_exception(error)
            return
        start = 0
        for one, future in jobs:
            end = start + len(one.runs)
            counts = [several[start:end] for several in played]
            try:
                self._handing_in.submit(_hand_in, one, counts, future)
            except RuntimeError:  # shut down meanwhile, by somebody who does not wait
                _hand_in(one, counts, future)
            start = end


def _hand_in(task: ChunkTask, counts: list[Any], future: "Future[Any]") -> None:
    try:
        future.set_result(task.hand_in(counts))
    except BaseException as error:
        future.set_exception(error)


LATER: Any = object()  # no job for now


def _belong_together(one: ChunkTask, other: ChunkTask) -> bool:
    """Whether two chunks are runs of one simulation, by the very objects: what only looks equal is played apart."""
    return (
        one.world is other.world
        and len(one.policies) == len(other.policies)
        and all(mine is its for mine, its in zip(one.policies, other.policies, strict=True))
        and (one.horizon, one.seed, tuple(one.watched)) == (other.horizon, other.seed, tuple(other.watched))
        and np.array_equal(one.checkpoints, other.checkpoints)
    )
