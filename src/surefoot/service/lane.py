"""A lane: one experiment's decisions and rewards, gathered while the last ones are flushed, and written together.

Requests arrive one by one in the event loop. While a group of them is in the journal's hands, in a thread of its own,
those that arrive meanwhile wait; then they are the next group, in one transaction and with one flush. Nobody waits for
company: a request that finds the lane free goes at once.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from surefoot.errors import SurefootError
from surefoot.experiment import Answer, Experiment, Question, Receipt
from surefoot.service.problems import ProblemError

T = TypeVar("T")
LARGEST_GROUP, LONGEST_MOMENT = 256, 3e-3


class Lane:
    """The way to one experiment."""

    def __init__(self, experiment: Experiment, executor: Executor, *, most: int) -> None:
        self.experiment, self.version = experiment, 0
        self._executor, self._most = executor, most
        self._decisions = _Gathered(self, experiment.decide_all, most)
        self._rewards = _Gathered(self, experiment.reward_all, most)

    @property
    def waiting(self) -> int:
        """Requests that have not been answered yet."""
        return self._decisions.size + self._rewards.size

    async def decide(self, questions: Sequence[Question]) -> list[Answer | SurefootError]:
        """Decide, durably."""
        found: list[Answer | SurefootError] = await self._decisions.put(questions)
        return found

    async def reward(self, rewards: Sequence[tuple[str, float]]) -> list[Receipt]:
        """Hand rewards in."""
        found: list[Receipt] = await self._rewards.put(rewards)
        return found

    async def run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call something that may wait for the journal, in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: call(*args, **kwargs))

    async def drain(self) -> None:
        """Return when nothing waits any more."""
        while self.waiting:
            await asyncio.sleep(0.005)


class _Gathered:
    """What waits for one verb."""

    def __init__(self, lane: Lane, verb: Callable[[Any], list[Any]], most: int) -> None:
        self._lane, self._verb, self._most = lane, verb, most
        self._waiting: list[tuple[Sequence[Any], asyncio.Future[list[Any]]]] = []
        self._task: asyncio.Task[None] | None = None
        self.size = 0

    def put(self, entries: Sequence[Any]) -> asyncio.Future[list[Any]]:
        """Have the entries done with the next group."""
        if self.size + len(entries) > self._most:
            raise ProblemError("busy", f"{self.size} requests wait for this experiment already.", Retry_After="1")
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((entries, future))
        self.size += len(entries)
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return future

    async def _work(self) -> None:
        try:
            while self._waiting:
                group = self._take()
                began = time.perf_counter()
                await self._do(group)
                if len(group) > 1:
                    await self._gather(len(group), (time.perf_counter() - began) / 2)
        finally:
            self._task = None

    async def _gather(self, callers: int, seconds: float) -> None:
        """Callers who have just been answered get a moment to come back, so that they are one group again."""
        deadline = time.perf_counter() + min(seconds, LONGEST_MOMENT)
        while len(self._waiting) < callers and time.perf_counter() < deadline:
            await asyncio.sleep(0)

    def _take(self) -> list[tuple[Sequence[Any], asyncio.Future[list[Any]]]]:
        count, total = 0, 0
        while count < len(self._waiting) and (count == 0 or total + len(self._waiting[count][0]) <= LARGEST_GROUP):
            total += len(self._waiting[count][0])
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _do(self, group: list[tuple[Sequence[Any], asyncio.Future[list[Any]]]]) -> None:
        entries = [entry for some, _ in group for entry in some]
        try:
            results = iter(await self._lane.run(self._verb, entries))
        except Exception as error:
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        finally:
            self.size -= len(entries)
        self._lane.version += 1
        for some, future in group:
            answers = [next(results) for _ in some]
            if not future.done():  # a caller who has gone is not waited for; what was decided stays decided
                future.set_result(answers)
