"""An experiment in an event loop: callers await their answers, and those who wait together are written together.

>>> import asyncio, surefoot
>>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
>>> async def visits() -> list[int]:
...     async with AsyncExperiment(Experiment.create(surefoot.open_journal("memory:"), "shop", policy)) as shop:
...         answers = await asyncio.gather(*(shop.decide([[0.6, 0.1], [0.9, 0.3]], baseline=0) for _ in range(3)))
...         await shop.reward(answers[0].decision_id, 1.0)
...         return [answer.round for answer in answers]
>>> asyncio.run(visits())
[1, 2, 3]
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from numpy.typing import ArrayLike

from surefoot.errors import SurefootError
from surefoot.experiment.answers import Answer, Receipt, or_raise
from surefoot.experiment.experiment import Experiment
from surefoot.experiment.questions import Question, read_id
from surefoot.experiment.rewarding import read_value
from surefoot.linear.actions import Catalogue

T = TypeVar("T")
LARGEST_GROUP, LONGEST_MOMENT = 256, 3e-3


class AsyncExperiment:
    """An experiment whose callers are tasks of one event loop, any number of them at once.

    While one group of calls is in the journal's hands those that come meanwhile wait; then they are the
    next group, in one transaction and with one flush. Nobody waits for company: a call that finds the way free goes at
    once. A caller who is cancelled is not answered, but what was decided stays decided.
    """

    def __init__(self, experiment: Experiment, *, executor: Executor | None = None) -> None:
        self.experiment = experiment
        self._executor = executor or ThreadPoolExecutor(4, thread_name_prefix=f"experiment {experiment.name}")
        self._owns_executor = executor is None
        self.decisions = Gathered(lambda questions: experiment.submit_decisions(questions, self._executor))
        self.rewards = Gathered(lambda rewards: experiment.submit_rewards(rewards, self._executor))

    async def decide(
        self,
        features: ArrayLike | Catalogue | None = None,
        *,
        baseline: int | str | None = None,
        baseline_reward: float | Sequence[float] | None = None,
        decision_id: str | None = None,
        actions: Sequence[str] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Decide one round, as `Experiment.decide` does; it is durable before it is returned."""
        question = Question(features, baseline, baseline_reward, decision_id, actions, context)
        answer: Answer = or_raise((await self._put(self.decisions, [question]))[0])
        return answer

    async def decide_all(self, questions: Sequence[Question]) -> list[Answer | SurefootError]:
        """Decide many rounds, in order; a question that is refused has its error for an answer."""
        return await self._put(self.decisions, questions)

    async def reward(self, decision_id: str, value: float) -> Receipt:
        """Hand in the reward of a decision."""
        return (await self.reward_all([(decision_id, value)]))[0]

    async def reward_all(self, rewards: Sequence[tuple[str, float]]) -> list[Receipt]:
        """Hand in many rewards, each accepted or refused on its own."""
        # Read here, so that a call that makes no sense is its own caller's error and not that of the whole group.
        ready = [(read_id(decision_id), read_value(value)) for decision_id, value in rewards]
        return await self._put(self.rewards, ready)

    async def run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call something that may wait for the journal, such as `experiment.status`, in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: call(*args, **kwargs))

    def _put(self, waiting: "Gathered", entries: Sequence[Any]) -> asyncio.Future[list[Any]]:
        return waiting.put(entries)

    async def drain(self) -> None:
        """Return when nothing waits any more."""
        while self.decisions.size + self.rewards.size:
            await asyncio.sleep(0.005)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.drain()
        if self._owns_executor:
            self._executor.shutdown(wait=False)


class Gathered:
    """Entries that wait for one verb; `size` is how many have not been answered yet."""

    def __init__(self, verb: Callable[[list[Any]], Future[list[Any]]]) -> None:
        self.size = 0
        self._verb = verb
        self._waiting: list[tuple[Sequence[Any], asyncio.Future[list[Any]]]] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, entries: Sequence[Any]) -> asyncio.Future[list[Any]]:
        """Have the entries done with the next group."""
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
            found = await asyncio.wrap_future(self._verb(entries))
        except Exception as error:
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        finally:
            self.size -= len(entries)
        results = iter(found)
        for some, future in group:
            answers = [next(results) for _ in some]
            if not future.done():  # a caller who has gone is not waited for; what was decided stays decided
                future.set_result(answers)
