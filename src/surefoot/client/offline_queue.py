"""What could not be sent to the service yet: rounds that were played without it, and rewards.

Kept in memory, in order, and bounded: when it is full, the oldest entry is dropped and counted. Losing one costs a
round that is not counted and a reward that is not learned; the guarantee does not rest on it, since the baseline was
played.
"""

import threading
import time
from collections import OrderedDict, deque
from typing import Any

import msgspec

from surefoot.client.service_error import ServiceError

BOOKING, REWARD = "fallbacks", "reward-batches"


class Entry(msgspec.Struct):
    """One waiting request."""

    experiment: str
    kind: str
    decision_id: str
    body: dict[str, Any]
    until: float = 0.0  # until when it is sent again, by this process's clock; 0: until it is taken or refused


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
        """Whether the booking of this decision still waits, so that its reward must wait, too."""
        return (experiment, BOOKING, decision_id) in self._waiting

    def peek(self) -> Entry | None:
        """The oldest entry."""
        with self._lock:
            return next(iter(self._waiting.values()), None)

    def refuse(self, entry: Entry, error: ServiceError) -> bool:
        """Note that the service refused an entry, and return whether it is done with.

        A question may still be in transit when its decision is abandoned: until that is over, it is abandoned again.
        """
        if not entry.kind.endswith("/abandon"):
            self.refused.append(str(error))
        elif error.type == "/problems/unknown-decision":
            return time.monotonic() > entry.until
        elif error.type != "/problems/decision-settled":
            self.refused.append(str(error))
        return True

    def postpone(self, entry: Entry) -> bool:
        """Move an entry behind all others; false if only entries that wait for their time are left."""
        with self._lock:
            key = entry.experiment, entry.kind, entry.decision_id
            if key in self._waiting:
                self._waiting.move_to_end(key)
            return not all(each.until for each in self._waiting.values())

    def heard(self, experiment: str, decision_id: str) -> None:
        """Drop the abandonment of a decision whose answer arrived after all."""
        with self._lock:
            self._waiting.pop((experiment, f"decisions/{decision_id}/abandon", decision_id), None)

    def done(self, entry: Entry) -> None:
        """Remove an entry that was sent."""
        with self._lock:
            self._waiting.pop((entry.experiment, entry.kind, entry.decision_id), None)
