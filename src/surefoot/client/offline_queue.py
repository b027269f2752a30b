"""What could not be told to the service yet: rounds that were played without it, and rewards.

Kept in memory, in order, and bounded: when it is full, the oldest entry goes, and is counted. Losing one costs a round
that is not counted and a reward that is not learned; the guarantee does not rest on it, for the baseline was played.
"""

import threading
from collections import OrderedDict, deque
from typing import Any

import msgspec

from surefoot.client.service_error import ServiceError

BOOKING, REWARD = "fallbacks", "reward-batches"
NOTHING_TO_GIVE_UP = ("/problems/unknown-decision", "/problems/decision-settled")


class Entry(msgspec.Struct):
    """One request that waits."""

    experiment: str
    kind: str
    decision_id: str
    body: dict[str, Any]


class Later:
    """Requests that wait, oldest first; bookings come before the rewards of the same decision, as they came in."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._waiting: OrderedDict[tuple[str, str, str], Entry] = OrderedDict()
        self.lost = 0
        self.refused: deque[str] = deque(maxlen=100)  # what the service said to those it would not take

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, entry: Entry) -> None:
        """Keep a request for later."""
        with self._lock:
            self._waiting[entry.experiment, entry.kind, entry.decision_id] = entry
            while len(self._waiting) > self._most:
                self._waiting.popitem(last=False)
                self.lost += 1

    def holds(self, experiment: str, decision_id: str) -> bool:
        """Whether the booking of this decision still waits, so that its reward must wait, too."""
        return (experiment, BOOKING, decision_id) in self._waiting

    def peek(self) -> Entry | None:
        """The oldest."""
        with self._lock:
            return next(iter(self._waiting.values()), None)

    def refuse(self, entry: Entry, error: ServiceError) -> None:
        """Note what the service would not take; a decision that was never made need not be given up."""
        if not (entry.kind.endswith("/abandon") and error.type in NOTHING_TO_GIVE_UP):
            self.refused.append(str(error))

    def done(self, entry: Entry) -> None:
        """Let go of one that was told."""
        with self._lock:
            self._waiting.pop((entry.experiment, entry.kind, entry.decision_id), None)
