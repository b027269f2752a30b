"""Decisions that wait by the clock: for their window to close, or for the word that they were played.

A sale arrives, but a visit without one is never reported. So a reward waits until its window closes and is learned
then, in the order of the decisions; if none came, the default is (docs/mathematics.md, "The order of learning").

A caller that gave up waiting, or died, leaves a round in the ledger that perhaps nobody played. Where an experiment
declares `confirm_within`, a learner round must be confirmed within so many seconds: by the verb (`confirm`), by its
reward, or by the word that something else was played (`void`). One that is not counts at its worst until it is: as much
is charged for it as the declared means allow, so that no later proof rests on what it may have earned.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

import msgspec

from surefoot.policies.base_policy import BasePolicy
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.rounds.events import OverdueRound, SettledWindow


class OpenWindow(msgspec.Struct):
    """A decision whose window is open; `values` are its rewards by metric, once some came."""

    decision_id: str
    round: int
    closes: float
    values: dict[str, float] | None = None


class Windows:
    """The open windows. Times never run backwards, so the order of decisions is the order in which they close."""

    def __init__(self, seconds: float, waiting: Iterable[OpenWindow] = ()) -> None:
        self._seconds = seconds
        # Ordered: a plain dict whose oldest entry is removed again and again takes ever longer to find the next.
        self._open = OrderedDict((entry.decision_id, entry) for entry in waiting)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenWindow]:
        return iter(self._open.values())

    def begin(self, decision_id: str, round_: int, time: float) -> None:
        """Open the window of a decision."""
        self._open[decision_id] = OpenWindow(decision_id, round_, time + self._seconds)

    def find(self, decision_id: str) -> OpenWindow | None:
        """The open window of a decision."""
        return self._open.get(decision_id)

    def due(self, now: float, most: int) -> list[SettledWindow]:
        """The windows that close by `now`, oldest first, at most `most` of them."""
        ripe = islice(takewhile(lambda entry: entry.closes <= now, self._open.values()), most)
        return [
            SettledWindow(decision_id=entry.decision_id, round=entry.round, is_missing=entry.values is None)
            for entry in ripe
        ]

    def close(self, window: SettledWindow) -> OpenWindow | None:
        """Remove the oldest window; None if that is not the one that is meant."""
        oldest = next(iter(self._open.values()), None)
        # Only the oldest may close: in any other order what is learned proves nothing.
        if oldest is None or (oldest.decision_id, oldest.round) != (window.decision_id, window.round):
            return None
        return self._open.pop(oldest.decision_id)

    def abandon(self, decision_id: str) -> None:
        """Remove the window of a decision whose reward will never be learned."""
        del self._open[decision_id]


class UnconfirmedRound(msgspec.Struct):
    """A learner round that was not confirmed yet, and from when on it counts at its worst."""

    decision_id: str
    round: int
    due: float
    is_overdue: bool = False
    is_condemned: bool = False  # it counts at its worst whatever is said of it


class UnconfirmedRounds:
    """The rounds that wait to be confirmed, oldest first; none where nothing was declared."""

    def __init__(self, seconds: float | None, policy: BasePolicy) -> None:
        self._seconds, self._policy = seconds, policy
        self._waiting: OrderedDict[str, UnconfirmedRound] = OrderedDict()
        self._overdue: dict[str, UnconfirmedRound] = {}

    def __iter__(self) -> Iterator[UnconfirmedRound]:
        return iter((*self._overdue.values(), *self._waiting.values()))

    @property
    def overdue(self) -> int:
        """How many count at their worst."""
        return len(self._overdue)

    def restore(self, rounds: Iterable[UnconfirmedRound]) -> None:
        """Go on from a snapshot, in which the policy has charged what is overdue."""
        for one in rounds:
            (self._overdue if one.is_overdue else self._waiting)[one.decision_id] = one

    def begin(self, decision_id: str, round_: int, time: float) -> None:
        """Wait for the word that a learner round was played."""
        if self._seconds is not None:
            self._waiting[decision_id] = UnconfirmedRound(decision_id, round_, time + self._seconds)

    def awaits(self, decision_id: str) -> bool:
        """Whether it was not confirmed yet."""
        late = self._overdue.get(decision_id)
        return decision_id in self._waiting or (late is not None and not late.is_condemned)

    def due(self, now: float) -> list[OverdueRound]:
        """The rounds that count at their worst from now on; times never run backwards, so the oldest are due first."""
        ripe = takewhile(lambda one: one.due <= now, self._waiting.values())
        return [OverdueRound(decision_id=one.decision_id, round=one.round) for one in ripe]

    def charge(self, rounds: Iterable[OverdueRound]) -> None:
        """Count rounds at their worst."""
        for one in rounds:
            late = self._waiting.pop(one.decision_id)
            late.is_overdue = True
            self._overdue[one.decision_id] = late
        self._charge()

    def confirm(self, decision_ids: Iterable[str]) -> None:
        """These were played, or it was said what was played instead."""
        before = len(self._overdue)
        for decision_id in decision_ids:
            self._waiting.pop(decision_id, None)
            late = self._overdue.get(decision_id)
            if late is not None and not late.is_condemned:
                del self._overdue[decision_id]
        if len(self._overdue) != before:
            self._charge()

    def condemn(self, decision_id: str, round_: int) -> None:
        """Count a round at its worst for good."""
        self._waiting.pop(decision_id, None)
        self._overdue[decision_id] = UnconfirmedRound(decision_id, round_, 0.0, is_overdue=True, is_condemned=True)
        self._charge()

    def clear(self) -> None:
        """Wait for nothing more: a restart has charged, or forgotten, all rounds before it."""
        self._waiting.clear()
        self._overdue.clear()

    def _charge(self) -> None:
        assert isinstance(self._policy, SafeLUCB), "only such an experiment is created with `confirm_within`"
        self._policy.charge(len(self._overdue))
