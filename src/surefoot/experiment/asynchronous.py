"""An experiment in an event loop: callers await their answers, and calls that wait together are written together.

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
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from numpy.typing import ArrayLike

from surefoot.errors import InputError, SurefootError
from surefoot.experiment.experiment import Experiment
from surefoot.linear.actions import Catalogue
from surefoot.rounds import Answer, Receipt
from surefoot.values import Value

T = TypeVar("T")
LARGEST_GROUP, LONGEST_MOMENT = 256, 3e-3


class AsyncExperiment:
    """An experiment whose callers are tasks of one event loop, any number of them at once.

    While one group of calls is being written, new calls wait; they form the next group, written in one transaction with
    one flush. A call that finds nothing in progress starts at once. A caller that is cancelled gets no answer: what
    still waited is not decided, and what was decided stays decided.

    Parameters
    ----------
    experiment : Experiment
        The experiment; several event loops may share it, each through an AsyncExperiment of its own.
    executor : Executor, optional
        Threads in which calls that may block run; by default four of its own.
    most : int, optional
        How many decisions may wait at once, and how many rewards; a call beyond that raises `asyncio.QueueFull`.

    Examples
    --------
    >>> import asyncio, surefoot
    >>> async def visit() -> str:
    ...     journal = surefoot.open_journal("memory:")
    ...     async with AsyncExperiment(Experiment.create(journal, "shop", surefoot.UCB(arms=2))) as shop:
    ...         return (await shop.decide(baseline=0)).source
    >>> asyncio.run(visit())
    'baseline'
    """

    def __init__(self, experiment: Experiment, *, executor: Executor | None = None, most: int | None = None) -> None:
        self.experiment = experiment
        self._threads = executor or ThreadPoolExecutor(4, thread_name_prefix=f"experiment {experiment.name}")
        self._ends_threads = executor is None
        self.decisions = BatchQueue(partial(experiment.submit_asks, executor=self._threads), most)
        self.rewards = BatchQueue(partial(experiment.submit_rewards, executor=self._threads), most)

    async def decide(self, features: ArrayLike | Catalogue | None = None, **request: Any) -> Answer:
        """Decide one round, as `Experiment.decide` does; it is durable before it is returned.

        Parameters
        ----------
        features, request
            As in `Experiment.decide`.

        Returns
        -------
        Answer
            The decision as the journal holds it.

        Raises
        ------
        SurefootError
            As `Experiment.decide`.
        """
        if features is not None:
            request["features"] = features
        result: Answer | SurefootError
        (result,) = await self.decisions.put([self.experiment.read(request)])
        if isinstance(result, SurefootError):
            raise result
        return result

    async def decide_all(self, requests: Iterable[Mapping[str, Any]]) -> list[Answer | SurefootError]:
        """Decide many rounds, in order.

        Parameters
        ----------
        requests : iterable of mapping
            The arguments of `decide`, each by name.

        Returns
        -------
        list of Answer or SurefootError
            One per request; a request that is refused gets its error.
        """
        # Read here, so that an invalid request fails its own caller and not the whole group.
        return await self.decisions.put([self.experiment.read_or_error(request) for request in requests])

    async def reward(self, decision_id: str, value: float | Mapping[str, float]) -> Receipt:
        """Send the reward of a decision.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        value : float or mapping
            The reward; of a guard with several metrics, a number for each by name.

        Returns
        -------
        Receipt
            Whether it was accepted, and why not.
        """
        return (await self.reward_all([(decision_id, value)]))[0]

    async def reward_all(self, rewards: Iterable[tuple[str, float | Mapping[str, float]]]) -> list[Receipt]:
        """Send many rewards, each accepted or refused on its own.

        Parameters
        ----------
        rewards : iterable of (decision_id, value)
            The rewards.

        Returns
        -------
        list of Receipt
            One per reward.
        """
        return await self.rewards.put([self.experiment.read_rewards(*reward) for reward in rewards])

    async def run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call something that may wait for the journal, such as `experiment.status`, in a thread.

        Parameters
        ----------
        call : callable
            What to call.
        args : object
            Its arguments, positional and by keyword.

        Returns
        -------
        object
            What the call returns.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: call(*args, **kwargs))

    async def drain(self) -> None:
        """Wait until no call is waiting."""
        while self.decisions.size + self.rewards.size:
            await asyncio.sleep(0.005)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.drain()
        if self._ends_threads:
            # Joining the threads would block the event loop.
            self._threads.shutdown(wait=False)


class Caller(Value, frozen=True):
    """The entries of one caller, and the future that it awaits."""

    entries: Sequence[Any]
    answers: asyncio.Future[list[Any]]

    def tell(self, error: BaseException) -> None:
        """Fail the caller's future with an error of its own."""
        # A caller that has gone, or whose loop is closed, gets no answer; what was decided stays decided.
        if self.answers.done() or self.answers.get_loop().is_closed():
            return
        if isinstance(error, asyncio.CancelledError):
            self.answers.cancel()
        else:
            # One each: raised in several tasks, a single exception would collect all their tracebacks.
            self.answers.set_exception(type(error)(*error.args) if isinstance(error, SurefootError) else error)


class BatchQueue:
    """Callers of one verb, in the event loop that makes the calls; `most` entries wait at once."""

    def __init__(self, verb: Callable[[list[Any]], Future[list[Any]]], most: int | None = None) -> None:
        self._verb, self._most = verb, most
        self._loop: asyncio.AbstractEventLoop | None = None
        self._size, self._waiting = 0, deque[Caller]()
        self._worker: Coroutine[Any, Any, None] | None = None  # of the task, or of the last one
        self._task: asyncio.Task[None] | None = None
        # Rings when as many callers wait as the next group is to have.
        self._wanted, self._bell = 0, None  # type: int, asyncio.Future[None] | None

    @property
    def size(self) -> int:
        """How many entries have not been answered yet; those of a closed loop do not count."""
        return 0 if self._loop is None or self._loop.is_closed() else self._size

    def put(self, entries: Sequence[Any]) -> asyncio.Future[list[Any]]:
        """Queue entries for the next group; cancelled while they wait, nothing is done.

        Raises
        ------
        asyncio.QueueFull
            If too many wait.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        if self._most is not None and self._size + len(entries) > self._most:
            raise asyncio.QueueFull(f"{self._size} requests wait for this experiment already.")
        answers: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting.append(Caller(entries, answers))
        self._size += len(entries)
        if self._task is None:
            self._worker = self._work()
            self._task = loop.create_task(self._worker)
        elif self._bell is not None and self._has(self._wanted):
            _ring(self._bell)
        return answers

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None and not self._loop.is_closed():
            raise InputError(
                "An AsyncExperiment must be used in one event loop, but another one that is still open has used it. "
                "Make one for each loop: they may share the experiment."
            )
        if self._worker is not None:
            # Now, and not when it is collected: what it leaves behind would be taken from this loop's callers.
            self._worker.close()
        self._loop, self._size, self._task, self._bell = loop, 0, None, None
        self._waiting.clear()

    async def _work(self) -> None:
        try:
            while self._waiting:
                group = self._take()
                began = time.perf_counter()
                await self._do(group)
                if len(group) > 1:
                    # With those who wait already: two halves that take turns would pay for each commit twice.
                    callers = min(len(group) + len(self._waiting), LARGEST_GROUP)
                    await self._gather(callers, time.perf_counter() - began)
        except BaseException as error:  # the loop is about to end, and callers must not wait for it
            for each in self._waiting:
                each.tell(error)
            self._size = 0
            self._waiting.clear()
            raise
        finally:
            self._task = None

    def _has(self, callers: int) -> bool:
        """Whether so many wait for the next group, or as many as it can take."""
        return len(self._waiting) >= callers or self._size >= LARGEST_GROUP

    async def _gather(self, callers: int, seconds: float) -> None:
        """Give callers that were just answered a moment to come back, so that they form one group again."""
        # The moment begins when their answers are made and sent, each in a turn of the loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if self._has(callers):
            return
        # Asleep meanwhile: to look again and again would take the core from those who are to come back.
        self._wanted, self._bell = callers, asyncio.get_running_loop().create_future()
        timer = self._bell.get_loop().call_later(min(seconds, LONGEST_MOMENT), _ring, self._bell)
        try:
            await self._bell
        finally:
            timer.cancel()
            self._bell = None

    def _take(self) -> list[Caller]:
        group, total = list[Caller](), 0
        while self._waiting:
            caller = self._waiting[0]
            if caller.answers.done():  # whoever has gone
                self._size -= len(caller.entries)
            # A caller's entries stay together, so the first caller may exceed the limit.
            elif not group or total + len(caller.entries) <= LARGEST_GROUP:
                total += len(caller.entries)
                group.append(caller)
            else:
                break
            self._waiting.popleft()
        return group

    async def _do(self, group: list[Caller]) -> None:
        entries = list[Any]()
        for each in group:
            entries += each.entries
        try:
            answers = await asyncio.wrap_future(self._verb(entries))
        except BaseException as error:
            for each in group:
                each.tell(error)
            # A cancellation ends the loop itself; any other error was told to its callers.
            if not isinstance(error, Exception):
                raise
            return
        finally:
            self._size -= len(entries)
        at = 0
        for each in group:
            until = at + len(each.entries)
            # A caller that was cancelled waits no more.
            if not each.answers.done():
                each.answers.set_result(answers[at:until])
            at = until


def _ring(bell: asyncio.Future[None]) -> None:
    if not bell.done():
        bell.set_result(None)
