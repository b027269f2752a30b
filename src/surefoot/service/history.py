"""An experiment's history: a bounded series of its status, and its decisions, read from the journal.

Points are taken while the service runs. What happened before it started is replayed from the events if there are few
enough; a long past is shown by its beginning and by its result.
"""

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from surefoot import records
from surefoot.experiment import Answer, GuardAnswer
from surefoot.experiment.decoding import decode
from surefoot.experiment.guard_decide import answer_of
from surefoot.experiment.sealing import read_voided, reference
from surefoot.experiment.snapshots import begin
from surefoot.experiment.status import Status, status_of
from surefoot.journal import Journal, View
from surefoot.records import ModeName
from surefoot.service.coefficients import NO_BELIEFS, Beliefs, beliefs_of
from surefoot.service.lift_models import LiftStanding, lift_standing
from surefoot.service.numbers import ends, finite

MOST_KEPT, MOST_READ = 100, 400  # recent decisions; events looked at in one go
MOST_REPLAYED = 20_000  # events: a few seconds of work
MOST_BELIEVED = 40  # features, or arms, of which is kept what was believed: as many as the page shows
ROUNDS = (records.DECISION, records.GUARDED)
DECISIONS = (*ROUNDS, records.VISIT)
Ends: TypeAlias = tuple[float | None, float | None]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What points of either kind take from a status as it stands there, named as in `Summary`."""

    time: float
    events: int
    mode: ModeName
    rounds: int
    learner_rounds: int
    baseline_rounds: int
    learner_share: float
    pending: int
    waiting: int
    learned: int
    is_refuted: bool
    restarts: int = 0
    promise_round: int = 1
    debt: float = 0.0


class Point(Standing, frozen=True, kw_only=True):
    """Where an experiment stood after `events` events; null where a number did not exist yet.

    floor, guaranteed:  what must have been earned, and what is certain to have been
    estimated:          what was played has earned, by the estimate of that moment, and `baseline` what the baseline had
    reward, surplus:    intervals of what was earned, and of how much that lay above the floor
    All others are named as in `Summary`.
    """

    lift: LiftStanding | None
    floor: float | None
    guaranteed: float | None
    margin: float | None
    proposed_margin: float | None
    worst_margin: float | None
    worst_round: int
    estimated: float | None
    baseline: float | None
    reward: Ends
    surplus: Ends


class GuardPoint(Standing, frozen=True, kw_only=True):
    """Where a guard stood after `events` events.

    share, allowed:  the probability with which the next proposal would have been played, and the largest proved safe
    banks:           what might be spent of each metric, in its own units
    binds:           the metric that allowed least
    means, lifts:    of each metric, the means of learner and baseline, and the interval of the lift
    All others are named as in `Summary`.
    """

    lift: LiftStanding | None
    share: float
    allowed: float
    binds: str
    banks: dict[str, float]
    means: dict[str, Ends]
    lifts: dict[str, tuple[float, float]]


AnyPoint: TypeAlias = Point | GuardPoint
FLOOR = ("floor", "guaranteed", "margin", "proposed_margin", "worst_margin")


def point_of(status: Status) -> AnyPoint:
    """A status as a point."""
    told: dict[str, Any] = {name: getattr(status, name) for name in Standing.__struct_fields__}
    told["lift"] = lift_standing(status.lift)
    if status.guard is not None:
        guard = status.guard
        return GuardPoint(
            **told,
            share=guard.share,
            allowed=guard.allowed,
            binds=guard.binds,
            banks=dict(guard.banks),
            means={name: ends((guard.learner_means[name], guard.baseline_means[name])) for name in guard.banks},
            lifts=dict(guard.lift_intervals),
        )
    told |= {name: finite(getattr(status, name)) for name in FLOOR}
    return Point(
        **told,
        worst_round=status.worst_round,
        estimated=finite(status.estimated_reward),
        baseline=finite(status.estimated_baseline),
        reward=ends(status.reward_interval),
        surplus=ends(status.surplus_interval),
    )


class StatusHistory:
    """Up to `most` points; when there are more, every second one of the older half is dropped.

    What was believed at a point is kept beside it, and dropped with it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.points: list[AnyPoint] = []
        self._beliefs = dict[int, Beliefs]()

    @property
    def events(self) -> int:
        """The number of the event up to which the history goes."""
        return self.points[-1].events if self.points else 0

    def add(self, point: AnyPoint, beliefs: Beliefs = NO_BELIEFS) -> None:
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

    def since(self, events: int) -> list[AnyPoint]:
        """The points after so many events."""
        return [point for point in self.points if point.events > events]


def replayed(view: View, most: int) -> list[tuple[AnyPoint, Beliefs]]:
    """The past of an experiment in at most `most` points, if it is short enough to be replayed."""
    head = view.head.number
    if head > MOST_REPLAYED:
        return [(point_of(status_of(view.name, begin(view))), NO_BELIEFS)]
    return list(_replay(view, max(1, head // most)))


def _replay(view: View, every: int) -> Iterator[tuple[AnyPoint, Beliefs]]:
    state = begin(view)
    for event in view.read(1):
        state.apply(event, view)
        if event.kind in ROUNDS and event.number % every == 0:
            believed = beliefs_of(state.policy) if is_kept(state.created.settings) else NO_BELIEFS
            yield point_of(status_of(view.name, state)), believed


def is_kept(settings: Mapping[str, Any]) -> bool:
    """Whether what is believed is kept at every point: with more features that takes too long."""
    return 0 < int(settings.get("dim", settings.get("arms", 0))) <= MOST_BELIEVED


def decisions_until(view: View, events: int, limit: int) -> list[Answer | GuardAnswer]:
    """The newest decisions among the first so many events, the newest first, as they were made."""
    found = deque[Answer | GuardAnswer](maxlen=limit)
    for event in view.read(max(0, events - MOST_READ), limit=MOST_READ):
        if event.number <= events and event.kind in DECISIONS:
            found.append(answer_of(event, view, None, is_repeat=False))
    return list(reversed(found))


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
                if event.kind in DECISIONS:
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
