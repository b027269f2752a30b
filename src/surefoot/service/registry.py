"""Rooms: the experiments that this server has open, each with its lane, its picture and its last decisions."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from surefoot.errors import JournalError
from surefoot.experiment import Answer, Experiment, Status
from surefoot.journal import Journal, open_journal
from surefoot.policies import Policy
from surefoot.service.history import Picture, point_of, replayed
from surefoot.service.lane import Lane
from surefoot.service.logs import log
from surefoot.service.recent import Recent
from surefoot.service.settings import Settings
from surefoot.service.warmth import warm_up

T = TypeVar("T")
THREADS = 16


class Room:
    """One experiment that is open."""

    def __init__(self, experiment: Experiment, journal: Journal, executor: ThreadPoolExecutor, settings: Settings):
        self.experiment, self.name, self._journal = experiment, experiment.name, journal
        self.lane = Lane(experiment, executor, most=settings.limits.waiting)
        self.picture, self.recent = Picture(settings.history_points), Recent()
        self._most = settings.history_points // 2
        self._status: Status | None = None

    def look(self) -> Status:
        """The newest status; the picture and the last decisions go on with it. May wait for the journal."""
        if self._status is None or self._journal.head(self.name).number != self._status.events:
            self._status = self.experiment.status()
        self.picture.add(point_of(self._status))
        return self._status

    def replay(self) -> None:
        """Draw the past, once, before anybody looks."""
        for point in replayed(self._journal.view(self.name), self._most):
            self.picture.add(point)

    def newest(self, limit: int, *, after: int = 0) -> list[Answer]:
        """The last decisions, the newest first, whichever server made them. May wait for the journal."""
        self.recent.catch_up(self._journal, self.name)
        return self.recent.newest(limit, after=after)

    def keep(self) -> None:
        """What must happen even if nobody calls: close windows that are due."""
        if self.experiment.settings.reward_window is not None:
            self.experiment.close_windows()
        self.look()


class Rooms:
    """All experiments of the journal."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self.settings, self._clock = settings, clock
        self._rooms: dict[str, Room] = {}
        self._opening = asyncio.Lock()
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="journal")
        self.is_ready = False
        self._journal: Journal | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._failed: set[str] = set()

    @property
    def journal(self) -> Journal:
        """The journal, once the server has started."""
        assert self._journal is not None
        return self._journal

    @property
    def open_rooms(self) -> Mapping[str, Room]:
        """The experiments that are open, by name."""
        return self._rooms

    async def run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call something that may wait for the journal, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, lambda: call(*args, **kwargs))

    async def start(self) -> None:
        """Open the journal, and begin to keep its experiments."""
        self._journal = await self.run(open_journal, self.settings.database)
        self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Answer what waits, take snapshots, and close the journal."""
        self.is_ready = False
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        for room in list(self._rooms.values()):
            await room.lane.drain()
            try:
                await self.run(room.experiment.snapshot)
            except JournalError as error:
                log.warning("no snapshot", extra={"experiment": room.name, "error": type(error).__name__})
        if self._journal is not None:
            await self.run(self._journal.close)
        self.executor.shutdown()

    async def create(self, name: str, policy: Policy, **settings: Any) -> Room:
        """Begin an experiment."""
        every = self.settings.snapshot_every
        made = await self.run(
            Experiment.create, self.journal, name, policy, clock=self._clock, snapshot_every=every, **settings
        )
        return await self._enter(made)

    async def find(self, name: str) -> Room:
        """The room of an experiment; `JournalNotFoundError` where there is none."""
        found = self._rooms.get(name)
        return found if found is not None else await self._open(name)

    async def names(self) -> list[str]:
        """The experiments of the journal, whoever made them."""
        return await self.run(self.journal.names)

    async def _open(self, name: str) -> Room:
        async with self._opening:
            if name not in self._rooms:
                every = self.settings.snapshot_every
                made = await self.run(Experiment.open, self.journal, name, clock=self._clock, snapshot_every=every)
                return await self._enter(made)
            return self._rooms[name]

    async def _enter(self, experiment: Experiment) -> Room:
        await self.run(warm_up, experiment.settings)
        room = Room(experiment, self.journal, self.executor, self.settings)
        await self.run(room.replay)
        return self._rooms.setdefault(experiment.name, room)

    async def _keep(self) -> None:
        while True:
            try:
                for name in await self.names():
                    await self._keep_one(name)
                self.is_ready = True
            except JournalError as error:
                self.is_ready = False
                log.error("the journal cannot be read", extra={"error": type(error).__name__})
            await asyncio.sleep(self.settings.window_seconds)

    async def _keep_one(self, name: str) -> None:
        try:
            room = await self.find(name)
            await self.run(room.keep)
            self._failed.discard(name)
        except Exception as error:  # one that is damaged must not stop the others
            if name not in self._failed:
                log.error("an experiment cannot be kept", extra={"experiment": name, "error": type(error).__name__})
            self._failed.add(name)
