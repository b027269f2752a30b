"""An experiment's history: a bounded series of its status, and its newest decisions, read from the journal.

Points are taken while the service runs. What happened before it started is replayed from the events if there are few
enough; a long past is shown by its beginning and by its result.
"""

import threading
from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from surefoot import records
from surefoot.experiment import Answer, GuardAnswer
from surefoot.experiment.decoding import decode
from surefoot.experiment.guard_decide import answer_of
from surefoot.experiment.sealing import read_voided, reference
from surefoot.experiment.snapshots import begin
from surefoot.experiment.status import Status, status_of
from surefoot.journal import Journal, View
from surefoot.service.numbers import finite

MOST_KEPT, MOST_READ = 100, 400  # recent decisions; events looked at in one go
MOST_REPLAYED = 20_000  # events: a few seconds of work
ROUNDS = (records.DECISION, records.GUARDED)


class Point(msgspec.Struct, frozen=True):
    """Where an experiment stood after `events` events; null where a number did not exist yet.

    floor, guaranteed:  what must have been earned, and what is certain to have been
    estimated:          what was played has earned, by the estimate of that moment, and `baseline` what the baseline had
    """

    time: float
    events: int
    rounds: int
    floor: float | None
    guaranteed: float | None
    estimated: float | None
    baseline: float | None
    learner_share: float
    pending: int


class GuardPoint(msgspec.Struct, frozen=True):
    """Where a guard stood after `events` events.

    share, allowed:  the probability with which the next proposal would have been played, and the largest proved safe
    banks:           what might be spent of each metric, in its own units
    binds:           the metric that allowed least
    """

    time: float
    events: int
    rounds: int
    share: float
    allowed: float
    binds: str
    banks: dict[str, float]
    learner_share: float
    pending: int


AnyPoint: TypeAlias = Point | GuardPoint


def point_of(status: Status) -> AnyPoint:
    """A status as a point."""
    if status.guard is not None:
        return GuardPoint(
            time=status.time,
            events=status.events,
            rounds=status.rounds,
            share=status.guard.share,
            allowed=status.guard.allowed,
            binds=status.guard.binds,
            banks=dict(status.guard.banks),
            learner_share=status.learner_share,
            pending=status.pending,
        )
    return Point(
        time=status.time,
        events=status.events,
        rounds=status.rounds,
        floor=finite(status.floor),
        guaranteed=finite(status.guaranteed),
        estimated=finite(status.estimated_reward),
        baseline=finite(status.estimated_baseline),
        learner_share=status.learner_share,
        pending=status.pending,
    )


class StatusHistory:
    """Up to `most` points; when there are more, every second one of the older half is dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.points: list[AnyPoint] = []

    @property
    def events(self) -> int:
        """The number of the event up to which the history goes."""
        return self.points[-1].events if self.points else 0

    def add(self, point: AnyPoint) -> None:
        """Add a later point."""
        if point.events <= self.events:
            return
        self.points = [*self.points, point]  # a new list, so that readers of the old one are not disturbed
        if len(self.points) > self._most:
            half = len(self.points) // 2
            self.points = self.points[:half:2] + self.points[half:]

    def since(self, events: int) -> list[AnyPoint]:
        """The points after so many events."""
        return [point for point in self.points if point.events > events]


def replayed(view: View, most: int) -> list[AnyPoint]:
    """The past of an experiment in at most `most` points, if it is short enough to be replayed."""
    head = view.head.number
    if head > MOST_REPLAYED:
        return [point_of(status_of(view.name, begin(view)))]
    return list(_replay(view, max(1, head // most)))


def _replay(view: View, every: int) -> Iterator[AnyPoint]:
    state = begin(view)
    for event in view.read(1):
        state.apply(event, view)
        if event.kind in ROUNDS and event.number % every == 0:
            yield point_of(status_of(view.name, state))


class RecentDecisions:
    """The newest decisions."""

    def __init__(self) -> None:
        # Number and reference of each, and the answer; a reference is the decision's id in the chain.
        self._kept: deque[tuple[int, str, Answer | GuardAnswer]] = deque(maxlen=MOST_KEPT)
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
                if event.kind in (records.DECISION, records.GUARDED, records.VISIT):
                    answer = answer_of(event, view, None, is_repeat=False)
                    self._kept.append((event.number, reference(event), answer))
                elif event.kind == records.VOIDED:
                    self._void(reference(event), read_voided(event, view))
                elif event.kind == records.ERASED:
                    self._forget(set(decode(event, records.Erased).events))

    def _void(self, ref: str, voided: records.Voided) -> None:
        for at, (number, known, answer) in enumerate(self._kept):
            if known == ref:
                self._kept[at] = number, known, msgspec.structs.replace(answer, voided=voided)

    def _forget(self, erased: set[int]) -> None:
        """Show what was erased no longer; those that come to be read again have nothing to show."""
        kept = [entry for entry in self._kept if entry[0] not in erased]
        self._kept = deque(kept, maxlen=MOST_KEPT)

    def newest(self, limit: int = MOST_KEPT, *, after: int = 0) -> list[Answer | GuardAnswer]:
        """The newest first, those of events above `after` only."""
        # A copy, since another thread may be catching up.
        return [answer for number, _, answer in reversed(list(self._kept)) if number > after][:limit]
