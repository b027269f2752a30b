"""What the service has not heard of yet: rounds that were played without it, rewards, and that rounds were played.

Kept in memory, in order, and bounded: when it is full, the oldest entry is dropped and counted. Losing one costs a
round that is not counted and a reward that is not learned; and where the service had decided the round for the learner
it goes on counting as played, so the guarantee may be too high by what that action earns more than the baseline. An
experiment with `confirm_within` counts it at its worst instead.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Any

import msgspec

BOOKING, REWARD, CONFIRMATION = "fallbacks", "reward-batches", "confirmations"
MOST_AT_ONCE = 100  # rounds that one decision confirms


def void_path(decision_id: str) -> str:
    """Where it is said what was really played."""
    return f"decisions/{decision_id}/void"


class Entry(msgspec.Struct):
    """One waiting request."""

    experiment: str
    kind: str
    decision_id: str
    body: dict[str, Any]


class OfflineQueue:
    """Waiting requests, oldest first; bookings come before the rewards of the same decision."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._waiting: OrderedDict[tuple[str, str, str], Entry] = OrderedDict()
        self.lost = 0
        self.refused: deque[str] = deque(maxlen=100)  # what the service answered to entries that it refused

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, entry: Entry) -> None:
        """Queue a request."""
        with self._lock:
            # By its key: a reward that is sent twice waits once, in its first place.
            self._waiting[entry.experiment, entry.kind, entry.decision_id] = entry
            while len(self._waiting) > self._most:
                self._waiting.popitem(last=False)
                self.lost += 1

    def holds(self, experiment: str, decision_id: str) -> bool:
        """Whether it still waits to be said what was played in this round, so that its reward must wait, too."""
        return any((experiment, kind, decision_id) in self._waiting for kind in (BOOKING, void_path(decision_id)))

    def peek(self) -> Entry | None:
        """The oldest entry."""
        with self._lock:
            return next(iter(self._waiting.values()), None)

    def done(self, entry: Entry) -> None:
        """Remove an entry that was sent."""
        with self._lock:
            self._waiting.pop((entry.experiment, entry.kind, entry.decision_id), None)


class PlayedRounds:
    """Decisions of learners that were played as decided, oldest first, until the service has heard of it.

    Where an experiment asks for it (`confirm_within`), the client says so with its next decision, and with `flush`. A
    reward, or the word that something else was played, says the same.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._unsaid: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._unsaid)

    def add(self, experiment: str, decision_id: str) -> None:
        """A decision that came in time."""
        with self._lock:
            self._unsaid[experiment, decision_id] = None
            while len(self._unsaid) > self._most:  # then it counts at its worst, which is safe
                self._unsaid.popitem(last=False)

    def of(self, experiment: str) -> list[str]:
        """The oldest decisions of an experiment, as many as one decision confirms."""
        with self._lock:
            return [id_ for name, id_ in self._unsaid if name == experiment][:MOST_AT_ONCE]

    def confirmed(self, experiment: str, decision_ids: Iterable[str]) -> None:
        """The service has heard of these."""
        with self._lock:
            for decision_id in decision_ids:
                self._unsaid.pop((experiment, decision_id), None)

    def experiments(self) -> list[str]:
        """The experiments that something is to be said to."""
        with self._lock:
            return sorted({name for name, _ in self._unsaid})
