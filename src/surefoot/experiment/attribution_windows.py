"""Attribution windows: decisions whose reward is not learned yet, oldest first.

A sale arrives, but a visit without one is never reported. So a reward waits until its window closes and is learned
then, in the order of the decisions; if none came, the default is (docs/mathematics.md, "The order of learning").
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

import msgspec

from surefoot.records import Created, Learned, SettledWindow


class OpenWindow(msgspec.Struct):
    """A decision whose window is open; `value` is its reward once one came, of a guard by metric."""

    decision_id: str
    round: int
    closes: float
    value: float | dict[str, float] | None = None


class AttributionWindows:
    """The open windows. Times never run backwards, so the order of decisions is the order in which they close."""

    def __init__(self, seconds: float, default: float, waiting: Iterable[OpenWindow] = ()) -> None:
        self._seconds, self._default = seconds, default
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

    def due(self, now: float, most: int) -> list[Learned]:
        """The windows that close by `now`, oldest first, at most `most` of them, with what is to be learned."""
        return [self._learned(entry) for entry in self._ripe(now, most)]

    def due_of_guard(self, now: float, most: int) -> list[SettledWindow]:
        """The same for a guard, whose rewards are in their own events."""
        return [
            SettledWindow(decision_id=entry.decision_id, round=entry.round, is_missing=entry.value is None)
            for entry in self._ripe(now, most)
        ]

    def _ripe(self, now: float, most: int) -> Iterator[OpenWindow]:
        return islice(takewhile(lambda entry: entry.closes <= now, self._open.values()), most)

    def close(self, learned: Learned | SettledWindow) -> bool:
        """Remove the oldest window; false if that is not the one that is meant."""
        oldest = next(iter(self._open.values()), None)
        # Only the oldest may close: in any other order what is learned proves nothing.
        if oldest is None or (oldest.decision_id, oldest.round) != (learned.decision_id, learned.round):
            return False
        del self._open[oldest.decision_id]
        return True

    def abandon(self, decision_id: str) -> None:
        """Remove the window of a decision whose reward will never be learned."""
        del self._open[decision_id]

    def _learned(self, entry: OpenWindow) -> Learned:
        is_default = entry.value is None
        value = self._default if entry.value is None else entry.value
        assert not isinstance(value, dict)
        return Learned(decision_id=entry.decision_id, round=entry.round, value=value, is_default=is_default)


def windows_of(created: Created) -> AttributionWindows | None:
    """The windows of an experiment that has a reward window."""
    if created.reward_window is None:
        return None
    return AttributionWindows(created.reward_window, created.default_reward or 0.0)
