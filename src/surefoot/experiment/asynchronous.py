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
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from numpy.typing import ArrayLike

from surefoot.errors import InputError, SurefootError
from surefoot.experiment.experiment import Experiment
from surefoot.experiment.kinds import Ask
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

    def __init__(self, experiment: Experiment, *, executor: Executor | None = None) -> None:
        self.experiment, self._executor = experiment, executor
        self._own_executor: ThreadPoolExecutor | None = None
        self.decisions = BatchQueue(lambda ready: experiment.submit_asks(ready, self._threads()))
        self.rewards = BatchQueue(lambda ready: experiment.submit_rewards(ready, self._threads()))

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
        """
        if features is not None:
            request["features"] = features
        return await self.answer(self.experiment.read(request))

    async def answer(self, ask: Ask) -> Answer:
        """Decide one round whose request was read before.

        Parameters
        ----------
        ask : Ask
            What `Experiment.read` returned.

        Returns
        -------
        Answer
            The decision as the journal holds it.

        Raises
        ------
        SurefootError
            If the request is refused; nothing was decided.
        """
        result = (await self.submit(ask))[0]
        if isinstance(result, SurefootError):
            raise result
        return result

    def submit(self, ask: Ask) -> asyncio.Future[list[Answer | SurefootError]]:
        """Queue one round whose request was read before.

        Parameters
        ----------
        ask : Ask
            What `Experiment.read` returned.

        Returns
        -------
        Future
            A list with the decision, or why it was refused; cancelled while it waits, nothing is decided.
        """
        return self._put(self.decisions, [ask])

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
        return await self.answer_all([self.experiment.read_or_error(request) for request in requests])

    async def answer_all(self, asks: Sequence[Ask | SurefootError]) -> list[Answer | SurefootError]:
        """Decide many rounds whose requests were read before.

        Parameters
        ----------
        asks : sequence of Ask or SurefootError
            What `Experiment.read_or_error` returned.

        Returns
        -------
        list of Answer or SurefootError
            One per request.
        """
        return await self._put(self.decisions, list(asks))

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
        return await self._put(self.rewards, [self.experiment.read_rewards(*reward) for reward in rewards])

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
        return await asyncio.get_running_loop().run_in_executor(self._threads(), lambda: call(*args, **kwargs))

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
        if self._own_executor is not None:
            # Joining the threads would block the event loop.
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
    """The entries of one caller, and the future that it awaits."""

    ready: list[Any]
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
    """Calls that wait for one verb, in the event loop that makes them."""

    def __init__(self, verb: Callable[[list[Any]], Future[list[Any]]]) -> None:
        self._verb = verb
        self._line: EventLoopQueue | None = None

    @property
    def size(self) -> int:
        """How many entries have not been answered yet; those of a closed loop do not count."""
        return 0 if self._line is None or self._line.loop.is_closed() else self._line.size

    def put(self, ready: list[Any]) -> asyncio.Future[list[Any]]:
        """Queue entries for the next group."""
        line = self._line
        if line is None or line.loop is not asyncio.get_running_loop():
            line = self._line = self._begin()
        return line.put(ready)

    def _begin(self) -> "EventLoopQueue":
        if self._line is not None and not self._line.loop.is_closed():
            raise InputError(
                "An AsyncExperiment must be used in one event loop, but another one that is still open has used it. "
                "Make one for each loop: they may share the experiment."
            )
        return EventLoopQueue(self._verb, asyncio.get_running_loop())


class EventLoopQueue:
    """Callers of one verb in one event loop; `size` counts their entries."""

    def __init__(self, verb: Callable[[list[Any]], Future[list[Any]]], loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.size = loop, 0
        self._verb = verb
        self._waiting: list[Caller] = []
        self._task: asyncio.Task[None] | None = None
        # Rings when as many callers wait as the next group is to have.
        self._wanted, self._bell = 0, None  # type: int, asyncio.Future[None] | None

    def put(self, ready: list[Any]) -> asyncio.Future[list[Any]]:
        """Queue entries for the next group."""
        answers: asyncio.Future[list[Any]] = self.loop.create_future()
        self._waiting.append(Caller(ready, answers))
        self.size += len(ready)
        if self._task is None:
            self._task = self.loop.create_task(self._work())
        elif self._bell is not None and self._has(self._wanted):
            _ring(self._bell)
        return answers

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
            self.size, self._waiting = 0, []
            raise
        finally:
            self._task = None

    def _has(self, callers: int) -> bool:
        """Whether so many wait for the next group, or as many as it can take."""
        return len(self._waiting) >= callers or self.size >= LARGEST_GROUP

    async def _gather(self, callers: int, seconds: float) -> None:
        """Give callers that were just answered a moment to come back, so that they form one group again."""
        # The moment begins when their answers are made and sent, each in a turn of the loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if self._has(callers):
            return
        # Asleep meanwhile: to look again and again would take the core from those who are to come back.
        self._wanted, self._bell = callers, self.loop.create_future()
        timer = self.loop.call_later(min(seconds, LONGEST_MOMENT), _ring, self._bell)
        try:
            await self._bell
        finally:
            timer.cancel()
            self._bell = None

    def _take(self) -> list[Caller]:
        gone = sum(len(each.ready) for each in self._waiting if each.answers.done())
        if gone:
            self.size -= gone
            self._waiting = [each for each in self._waiting if not each.answers.done()]
        count, total = 0, 0
        # A caller's entries stay together, so the first caller may exceed the limit.
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
            # A cancellation ends the loop itself; any other error was told to its callers.
            if not isinstance(error, Exception):
                raise
            return
        finally:
            self.size -= len(entries)
        at = 0
        for each in group:
            until = at + len(each.ready)
            # A caller that was cancelled waits no more.
            if not each.answers.done():
                each.answers.set_result(found[at:until])
            at = until


def _ring(bell: asyncio.Future[None]) -> None:
    if not bell.done():
        bell.set_result(None)
