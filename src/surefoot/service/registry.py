"""The registry: the experiments that this server has open, each with queue, history and newest decisions."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from surefoot.errors import (
    JournalBusyError,
    JournalError,
    JournalFullError,
    JournalUnavailableError,
    OutcomeUnknownError,
)
from surefoot.experiment import AsyncExperiment, Configuration, Experiment, Fork, Status, fork
from surefoot.experiment.beliefs import NO_BELIEFS, Beliefs, with_names
from surefoot.experiment.configuration import feature_names
from surefoot.journal import Journal, open_journal
from surefoot.journal.address import file_of
from surefoot.journal.contract import not_found
from surefoot.journal.events import JOURNAL
from surefoot.policies import Policy
from surefoot.rounds import Answer
from surefoot.rounds.answers import EventHead
from surefoot.service.head_keeper import STOP_SECONDS, HeadKeeper
from surefoot.service.health import PROBE_SECONDS, HealthMonitor
from surefoot.service.history import RecentDecisions, StatusHistory, decisions_until, is_kept, replayed
from surefoot.service.logs import log
from surefoot.service.settings import Settings
from surefoot.service.shared_experiments import SharedExperiments
from surefoot.service.trusted_clock import TrustedClock

T = TypeVar("T")
THREADS = 16
RETENTION_SECONDS = 3600.0  # between two looks for what is to be erased
# What ails the journal, and not one experiment.
PASSING = (JournalBusyError, JournalFullError, JournalUnavailableError, OutcomeUnknownError)


class OpenExperiment:
    """One experiment that is open."""

    def __init__(self, experiment: Experiment, journal: Journal, executor: ThreadPoolExecutor, settings: Settings):
        self.experiment, self.name, self._journal = experiment, experiment.name, journal
        self.takes_rows, self.is_configured = experiment.kind.has_rows, experiment.configuration is not None
        self.queue = AsyncExperiment(experiment, executor=executor, most=settings.limits.waiting)
        self.history, self.recent = StatusHistory(settings.history_points), RecentDecisions(experiment.kind)
        self._most = settings.history_points // 2
        self.status: Status | None = None  # the newest that anybody has looked at
        self._names = feature_names(experiment.settings)
        self._erases = 0.0
        self._beliefs, self._believed, self._believing = NO_BELIEFS, (-1, 0.0), threading.Lock()

    def beliefs(self, until: int | None = None) -> Beliefs:
        """What the learner believes, or did at the time of an event, by the names of features or arms."""
        return with_names(self._newest_beliefs() if until is None else self.history.beliefs_at(until), self._named())

    def _newest_beliefs(self) -> Beliefs:
        """The newest; while it is worked out for one caller, others wait for the same. May take long."""
        if not self.takes_rows:
            return NO_BELIEFS
        with self._believing:
            events, until = self._believed
            head = self._journal.head(self.name).number
            if events != head and time.monotonic() >= until:
                began = time.monotonic()
                self._beliefs = self.experiment.kind.beliefs(Policy.from_state(self.experiment.policy_state()))
                # At most a fiftieth of the time goes into it, however many ask: decisions wait meanwhile.
                ended = time.monotonic()
                self._believed = head, ended + 49 * (ended - began)
            return self._beliefs

    def look(self) -> Status:
        """The newest status, which is added to the history. May wait for the journal."""
        # The head is one small read; a status goes through the whole state.
        status = self.status
        if status is None or self._journal.head(self.name).number != status.events:
            self.status = status = self.experiment.status()
        if status.events > self.history.events:
            believed = self._newest_beliefs() if is_kept(self.experiment.settings.settings) else NO_BELIEFS
            self.history.add(status, believed)
        return status

    def replay(self) -> None:
        """Fill the history with the past, once, before anybody looks."""
        for point, believed in replayed(self._journal.view(self.name), self._most):
            self.history.add(point, believed)

    def _named(self) -> list[str] | None:
        """What was declared, or for arms the names in the newest decision."""
        if self._names is None and isinstance(arms := self.experiment.settings.settings.get("arms"), int):
            self.recent.catch_up(self._journal, self.name)
            actions = self.recent.actions()
            return actions if actions is not None and len(actions) == arms else None
        return self._names

    def until(self, events: int, limit: int) -> list[Answer]:
        """The newest decisions of the first so many events. May wait for the journal."""
        return decisions_until(self._journal.view(self.name), self.experiment.kind, events, limit)

    def newest(self, limit: int, *, after: int = 0) -> list[Answer]:
        """The newest decisions first, whichever server made them. May wait for the journal."""
        self.recent.catch_up(self._journal, self.name)
        return self.recent.newest(limit, after=after)

    def retain(self, seconds: float) -> None:
        """Erase what is older, once in a while."""
        if self.experiment.settings.is_sealed and time.monotonic() >= self._erases:
            self._erases = time.monotonic() + min(RETENTION_SECONDS, seconds)
            # Not before its window has closed: the reward of an erased id could not be sent any more.
            before = self.experiment.clock() - max(seconds, self.experiment.settings.reward_window or 0.0)
            self.experiment.erase(before=before, by="retention_days", reason="older than the server keeps them")

    def keep(self) -> None:
        """Renew leases, close windows, and charge rounds, that are due even if nobody calls; and update the status."""
        if self.experiment.leases is not None:
            self.experiment.leases.renew_if_due()
        if self.experiment.settings.reward_window is not None or self.experiment.settings.confirm_within is not None:
            self.experiment.close_windows()
        self.look()


class Registry:
    """All experiments of the journal."""

    def __init__(self, settings: Settings, *, clock: TrustedClock | None = None) -> None:
        self.settings, self._clock = settings, clock or TrustedClock(settings.clock_seconds)
        self.health = HealthMonitor(self._clock)
        self.heads = HeadKeeper(settings, self._clock)
        self._registry: dict[str, OpenExperiment] = {}
        self._opening = asyncio.Lock()
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="journal")
        self._journal: Journal | None = None
        self.shared = SharedExperiments(settings, self._clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_note_due, self._is_send_due = asyncio.Event(), asyncio.Event()

    @property
    def journal(self) -> Journal:
        """The journal, once the server has started."""
        assert self._journal is not None
        return self._journal

    async def run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call something that may wait for the journal, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, lambda: call(*args, **kwargs))

    def open(self) -> None:
        """Open the journal, where that was not done before."""
        if self._journal is None:
            self._journal = open_journal(self.settings.database)
            self.shared.open()

    async def start(self) -> None:
        """Open the journal, and start to look after its experiments."""
        await self.run(self.open)
        # Before anything is stamped: a shared clock is found out here.
        await self.run(self.health.probe, self.journal)
        self._tasks = [
            asyncio.create_task(_repeat(self._keep, self.settings.window_seconds)),
            asyncio.create_task(_repeat(self._probe, PROBE_SECONDS)),
            asyncio.create_task(_repeat(self._note, self.settings.head_seconds, self._is_note_due)),
            asyncio.create_task(_repeat(self.heads.send, self.settings.head_seconds, self._is_send_due)),
        ]

    async def stop(self) -> None:
        """Answer what waits, take snapshots, and close the journal."""
        self.health.is_stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for opened in list(self._registry.values()):
            # First what waits, then the snapshot that includes it, and the journal last.
            await opened.queue.drain()
            try:
                await self.run(opened.experiment.snapshot)
            except JournalError as error:
                log.warning("snapshot failed", extra={"experiment": opened.name, "error": type(error).__name__})
        if self._journal is not None:
            await self._note()
            await self.heads.send(STOP_SECONDS)
            await self.run(self._journal.close)
            await self.run(self.shared.close)
        self.executor.shutdown()

    async def create(self, name: str, policy: Policy | Configuration, **settings: Any) -> OpenExperiment:
        """Create an experiment, or open the one that was created with the same settings."""
        own = {"clock": self._clock, "snapshot_every": self.settings.snapshot_every, "secrets": self.settings.coins}
        created = await self.run(Experiment.create, self.journal, name, policy, or_open=True, **own, **settings)
        self.note_soon()
        return self._registry.get(name) or await self._enter(created)

    def note_soon(self) -> None:
        """Keep heads and erasures outside at once: what is new is missed from here on if somebody removes it."""
        self._is_note_due.set()

    async def fork(self, source: str, name: str, **settings: Any) -> tuple[OpenExperiment, Fork]:
        """Begin an experiment with what another has learned."""
        every = self.settings.snapshot_every
        made = await self.run(fork, self.journal, source, name, clock=self._clock, snapshot_every=every, **settings)
        self.note_soon()
        return await self._enter(made.experiment), made

    async def find(self, name: str) -> OpenExperiment:
        """The open experiment of that name; `JournalNotFoundError` if there is none."""
        found = self._registry.get(name)
        return found if found is not None else await self._open(name)

    async def create_shared(self, name: str, policy: Any, **settings: Any) -> OpenExperiment:
        """Create an experiment whose promise is shared, and join it."""
        await self.run(self.shared.create, name, policy, **settings)
        return await self.find(name)

    async def head(self, name: str) -> EventHead:
        """Where the experiment's chain stands: a receipt for everything before."""
        return EventHead(*await self.run(self.journal.head, name))

    async def names(self) -> list[str]:
        """All experiments of the journal, whoever created them, and those where shards meet."""
        return sorted({*await self.run(self.journal.names), *await self.run(self.shared.names)})

    async def _open(self, name: str) -> OpenExperiment:
        if name == JOURNAL:  # a chain, and no experiment
            raise not_found(name)
        async with self._opening:
            # Another caller may have opened it while this one waited for the lock.
            if name not in self._registry:
                return await self._enter(await self.run(self._opened, name))
            return self._registry[name]

    def _opened(self, name: str) -> Experiment:
        if self.shared.has(self.journal, name):
            return self.shared.join(self.journal, name)
        every, coins = self.settings.snapshot_every, self.settings.coins
        return Experiment.open(self.journal, name, clock=self._clock, snapshot_every=every, secrets=coins)

    async def _enter(self, experiment: Experiment) -> OpenExperiment:
        opened = OpenExperiment(experiment, self.journal, self.executor, self.settings)
        await self.run(opened.replay)
        # `create` holds no lock: the keeper may have found the new experiment and opened it first.
        return self._registry.setdefault(experiment.name, opened)

    def statuses(self) -> list[Status]:
        """Where the open experiments stood when they were last looked after, without those that are damaged."""
        known = (opened.status for opened in list(self._registry.values()) if opened.name not in self.health.damaged)
        return [status for status in known if status is not None]

    def note_damage(self, name: str, error: Exception) -> None:
        """Remember why an experiment cannot be read, where that will not pass by itself."""
        if not isinstance(error, PASSING):
            if name not in self.health.damaged:
                log.error("an experiment is damaged", extra={"experiment": name, "error": type(error).__name__})
            file = file_of(self.settings.database)
            # Whoever may read experiments is told what is wrong, and not where the server keeps its files.
            self.health.damaged[name] = str(error) if file is None else str(error).replace(str(file), file.name)

    def waiting(self) -> list[tuple[str, str, int]]:
        """How much waits to be written: experiment, verb, requests."""
        return [
            (opened.name, verb, queue.size)
            for opened in list(self._registry.values())
            for verb, queue in (("decide", opened.queue.decisions), ("reward", opened.queue.rewards))
        ]

    async def _probe(self) -> None:
        await self.run(self.health.probe, self.journal)

    async def _note(self) -> None:
        await self.run(self.heads.note, self.journal)
        self._is_send_due.set()

    async def _keep(self) -> None:
        for name in await self.names():
            await self._keep_one(name)
        # After the first time round every experiment is open.
        self.health.is_open = True

    async def _keep_one(self, name: str) -> None:
        try:
            opened = await self.find(name)
            await self.run(opened.keep)
            if self.settings.retention_days is not None:
                await self.run(opened.retain, 86_400.0 * self.settings.retention_days)
            self.health.damaged.pop(name, None)
        except Exception as error:  # a damaged experiment must not stop the others
            self.note_damage(name, error)


async def _repeat(work: Callable[[], Awaitable[None]], seconds: float, is_due: asyncio.Event | None = None) -> None:
    """Do some work every so many seconds, or once it is due; whatever goes wrong, it is tried again."""
    is_due = is_due or asyncio.Event()
    while True:
        is_due.clear()
        try:
            await work()
        except Exception as error:
            log.error("tried again later", extra={"error": type(error).__name__, "detail": str(error)})
        with suppress(TimeoutError):
            await asyncio.wait_for(is_due.wait(), seconds)
