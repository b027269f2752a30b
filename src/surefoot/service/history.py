"""An experiment's history: a bounded series of its status, and its decisions, read from the journal.

Points are taken while the service runs. What happened before it started is replayed from the events if there are few
enough; a long past is shown by its beginning and by its result.
"""

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from surefoot.experiment.beliefs import NO_BELIEFS, Beliefs
from surefoot.experiment.kinds import Kind
from surefoot.experiment.sealing import find_voided, reference
from surefoot.experiment.state import first_state
from surefoot.experiment.status import Status, status_of
from surefoot.journal import Event, Journal, View
from surefoot.rounds import Answer, decode, events

MOST_KEPT, MOST_READ = 100, 400  # recent decisions; events looked at in one go
MOST_REPLAYED = 20_000  # events: a few seconds of work
MOST_BELIEVED = 40  # features, or arms, of which is kept what was believed: as many as the page shows
DECISIONS = (events.ROUND, events.VISIT)


class StatusHistory:
    """Up to `most` points, each with what was believed then; beyond, every second one of the older half is dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.points: list[Status] = []
        self._beliefs = dict[int, Beliefs]()

    @property
    def events(self) -> int:
        """The number of the event up to which the history goes."""
        return self.points[-1].events if self.points else 0

    def add(self, point: Status, beliefs: Beliefs = NO_BELIEFS) -> None:
        """Add a later point, and what was believed then."""
        if point.events <= self.events:
            return
        # New ones, so that readers of the old ones are not disturbed.
        points, kept = [*self.points, point], {**self._beliefs, point.events: beliefs}
        if len(points) > self._most:
            half = len(points) // 2
            points = points[:half:2] + points[half:]
            kept = {one.events: kept[one.events] for one in points}
        self.points, self._beliefs = points, kept

    def beliefs_at(self, events: int) -> Beliefs:
        """What was believed at the newest point that is not later."""
        kept = self._beliefs
        return kept.get(max((known for known in kept if known <= events), default=0), NO_BELIEFS)

    def since(self, events: int) -> list[Status]:
        """The points after so many events."""
        return [point for point in self.points if point.events > events]


def replayed(view: View, most: int) -> list[tuple[Status, Beliefs]]:
    """The past of an experiment in at most `most` points, if it is short enough to be replayed."""
    head = view.head.number
    if head > MOST_REPLAYED:
        return [(status_of(view.name, first_state(view)), NO_BELIEFS)]
    return list(_replay(view, max(1, head // most)))


def _replay(view: View, every: int) -> Iterator[tuple[Status, Beliefs]]:
    state = first_state(view)
    for event in view.read(1):
        state.apply(event, view)
        if event.kind == events.ROUND and event.number % every == 0:
            believed = state.kind.beliefs(state.policy) if is_kept(state.created.settings) else NO_BELIEFS
            yield status_of(view.name, state), believed


def is_kept(settings: Mapping[str, Any]) -> bool:
    """Whether what is believed is kept at every point: with more features that takes too long."""
    return 0 < int(settings.get("dim", settings.get("arms", 0))) <= MOST_BELIEVED


class KeptRound(msgspec.Struct):
    """A decision as it was read: its event, the round in the caller's own words, and what was said to be played."""

    event: Event
    record: Any
    voided: events.Voided | None = None

    def answer(self, kind: Kind) -> Answer:
        """What its caller was told."""
        return kind.answer(self.record, None, voided=self.voided, time=self.event.time, head=self.event.head)


def decisions_until(view: View, kind: Kind, until: int, limit: int) -> list[Answer]:
    """The newest decisions among the first so many events, the newest first, as they were made."""
    newest = deque[KeptRound](maxlen=limit)
    for event in view.read(max(0, until - MOST_READ), limit=MOST_READ):
        if event.number <= until and event.kind in DECISIONS:
            newest.append(KeptRound(event, kind.opened(event, view)))
    return [one.answer(kind) for one in reversed(newest)]


class RecentDecisions:
    """The newest decisions."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._kept: deque[KeptRound] = deque(maxlen=MOST_KEPT)
        self._seen, self._lock = 0, threading.Lock()

    def catch_up(self, journal: Journal, name: str) -> None:
        """Read what is new."""
        with self._lock:
            view = journal.view(name)
            # After a long pause the past is skipped: only the newest are shown.
            after = max(self._seen, view.head.number - MOST_READ)
            if after > self._seen:  # an erasure may be among what is skipped
                self._kept.clear()
            for event in view.read(after):
                self._seen = event.number
                if event.kind in DECISIONS:
                    record = self._kind.opened(event, view)
                    self._kept.append(KeptRound(event, record, find_voided(view, reference(event))))
                elif event.kind == events.VOIDED:
                    self._void(reference(event), view)
                elif event.kind == events.ERASED:
                    self._forget(set(decode(event, events.Erased).events))

    def _void(self, ref: str, view: View) -> None:
        for one in self._kept:
            if reference(one.event) == ref:
                one.voided = find_voided(view, ref)

    def _forget(self, erased: set[int]) -> None:
        """Show what was erased no longer; those that come to be read again have nothing to show."""
        kept = [one for one in self._kept if one.event.number not in erased]
        self._kept = deque(kept, maxlen=MOST_KEPT)

    def actions(self) -> list[str] | None:
        """The names of the actions in the newest decision."""
        return getattr(self._kept[-1].record.request, "actions", None) if self._kept else None

    def newest(self, limit: int = MOST_KEPT, *, after: int = 0) -> list[Answer]:
        """The newest first, those of events above `after` only."""
        # A copy, since another thread may be catching up.
        newest = [one for one in reversed(list(self._kept)) if one.event.number > after]
        return [one.answer(self._kind) for one in newest[:limit]]
