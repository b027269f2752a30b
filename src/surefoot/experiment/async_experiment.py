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
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from numpy.typing import ArrayLike

from surefoot.errors import InputError, SurefootError
from surefoot.experiment.answer import Answer, Receipt, or_raise
from surefoot.experiment.experiment import Experiment
from surefoot.experiment.question import Question, read, read_or_error
from surefoot.experiment.reward import read_reward
from surefoot.linear.actions import Catalogue
from surefoot.values import Value

T = TypeVar("T")
LARGEST_GROUP, LONGEST_MOMENT = 256, 3e-3


class AsyncExperiment:
    """An experiment whose callers are tasks of one event loop, any number of them at once.

    While one group of calls is in the journal's hands, those that come meanwhile wait; then they are the next group, in
    one transaction and with one flush. Nobody waits for company: a call that finds the way free goes at once. A caller
    who is cancelled is not answered, but what was decided stays decided.
    """

    def __init__(self, experiment: Experiment, *, executor: Executor | None = None) -> None:
        self.experiment, self._executor = experiment, executor
        self._own_executor: ThreadPoolExecutor | None = None
        self.decisions = BatchQueue(lambda ready: experiment.submit_decisions(ready, self._threads()))
        self.rewards = BatchQueue(lambda ready: experiment.submit_rewards(ready, self._threads()))

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
        return await self.ask(Question(features, baseline, baseline_reward, decision_id, actions, context))

    async def ask(self, question: Question) -> Answer:
        """Decide one round, given as a question."""
        answer: Answer = or_raise((await self._put(self.decisions, [read(question)]))[0])
        return answer

    async def decide_all(self, questions: Iterable[Question]) -> list[Answer | SurefootError]:
        """Decide many rounds, in order; a question that is refused has its error for an answer."""
        # Read here, so that a call that makes no sense is its own caller's error and not that of the whole group.
        return await self._put(self.decisions, [read_or_error(question) for question in questions])

    async def reward(self, decision_id: str, value: float) -> Receipt:
        """Hand in the reward of a decision."""
        return (await self.reward_all([(decision_id, value)]))[0]

    async def reward_all(self, rewards: Iterable[tuple[str, float]]) -> list[Receipt]:
        """Hand in many rewards, each accepted or refused on its own."""
        return await self._put(self.rewards, [read_reward(*reward) for reward in rewards])

    async def run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call something that may wait for the journal, such as `experiment.status`, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads(), lambda: call(*args, **kwargs))

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
        if self._own_executor is not None:
            self._own_executor.shutdown(wait=False)
            self._own_executor = None

    def _put(self, waiting: "BatchQueue", ready: list[Any]) -> asyncio.Future[list[Any]]:
        return waiting.put(ready)

    def _threads(self) -> Executor:
        if self._executor is not None:
            return self._executor
        if self._own_executor is None:
            self._own_executor = ThreadPoolExecutor(4, thread_name_prefix=f"experiment {self.experiment.name}")
        return self._own_executor


class Caller(Value, frozen=True):
    """What one caller brought, and waits for."""

    ready: list[Any]
    answers: asyncio.Future[list[Any]]

    def tell(self, error: BaseException) -> None:
        """There will be no answers; each caller has an error of its own."""
        # A caller who has gone is not waited for, nor is one whose loop is closed; what was decided stays decided.
        if self.answers.done() or self.answers.get_loop().is_closed():
            return
        if isinstance(error, asyncio.CancelledError):
            self.answers.cancel()
        else:
            self.answers.set_exception(type(error)(*error.args) if isinstance(error, SurefootError) else error)


class BatchQueue:
    """What waits for one verb, in the event loop that calls it."""

    def __init__(self, verb: Callable[[list[Any]], Future[list[Any]]]) -> None:
        self._verb = verb
        self._line: EventLoopQueue | None = None

    @property
    def size(self) -> int:
        """How many entries have not been answered yet; who waited in a loop that is closed waits no more."""
        return 0 if self._line is None or self._line.loop.is_closed() else self._line.size

    def put(self, ready: list[Any]) -> asyncio.Future[list[Any]]:
        """Have the entries done with the next group."""
        line = self._line
        if line is None or line.loop is not asyncio.get_running_loop():
            line = self._line = self._begin()
        return line.put(ready)

    def _begin(self) -> "EventLoopQueue":
        if self._line is not None and not self._line.loop.is_closed():
            raise InputError(
                "An AsyncExperiment must be used in one event loop, but another one has called it before and is still "
                "open. Make one for each loop: they may share the experiment."
            )
        return EventLoopQueue(self._verb, asyncio.get_running_loop())


class EventLoopQueue:
    """Callers of one verb in one event loop; `size` is how many entries they have brought."""

    def __init__(self, verb: Callable[[list[Any]], Future[list[Any]]], loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.size = loop, 0
        self._verb = verb
        self._waiting: list[Caller] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, ready: list[Any]) -> asyncio.Future[list[Any]]:
        """Have the entries done with the next group."""
        answers: asyncio.Future[list[Any]] = self.loop.create_future()
        self._waiting.append(Caller(ready, answers))
        self.size += len(ready)
        if self._task is None:
            self._task = self.loop.create_task(self._work())
        return answers

    async def _work(self) -> None:
        try:
            while self._waiting:
                group = self._take()
                began = time.perf_counter()
                await self._do(group)
                if len(group) > 1:
                    await self._gather(len(group), (time.perf_counter() - began) / 2)
        except BaseException as error:  # the loop is about to end, and nobody else would tell them
            for each in self._waiting:
                each.tell(error)
            self.size, self._waiting = 0, []
            raise
        finally:
            self._task = None

    async def _gather(self, callers: int, seconds: float) -> None:
        """Callers who have just been answered get a moment to come back, so that they are one group again."""
        deadline = time.perf_counter() + min(seconds, LONGEST_MOMENT)
        while len(self._waiting) < callers and time.perf_counter() < deadline:
            await asyncio.sleep(0)

    def _take(self) -> list[Caller]:
        count, total = 0, 0
        while count < len(self._waiting) and (count == 0 or total + len(self._waiting[count].ready) <= LARGEST_GROUP):
            total += len(self._waiting[count].ready)
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _do(self, group: list[Caller]) -> None:
        entries = [entry for each in group for entry in each.ready]
        try:
            found = await asyncio.wrap_future(self._verb(entries))
        except BaseException as error:
            for each in group:
                each.tell(error)
            if not isinstance(error, Exception):
                raise
            return
        finally:
            self.size -= len(entries)
        results = iter(found)
        for each in group:
            answers = [next(results) for _ in each.ready]
            if not each.answers.done():
                each.answers.set_result(answers)
