"""Rounds that a client has played as they were decided, until the service has heard of it.

Where an experiment asks for it (`confirm_within`), the client says so with its next question, and with `flush`. A
reward, or the word that something else was played, says the same.
"""

import threading
from collections import OrderedDict

MOST_AT_ONCE = 100  # in one question


class PlayedRounds:
    """Decisions of learners that this client was told in time, oldest first."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._unsaid: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._unsaid)

    def add(self, experiment: str, decision_id: str) -> None:
        """A decision that was told in time."""
        with self._lock:
            self._unsaid[experiment, decision_id] = None
            while len(self._unsaid) > self._most:  # then it counts at its worst, which is safe
                self._unsaid.popitem(last=False)

    def of(self, experiment: str) -> list[str]:
        """The oldest decisions of an experiment, as many as one question takes."""
        with self._lock:
            return [id_ for name, id_ in self._unsaid if name == experiment][:MOST_AT_ONCE]

    def said(self, experiment: str, decision_ids: list[str]) -> None:
        """The service has heard of these."""
        with self._lock:
            for decision_id in decision_ids:
                self._unsaid.pop((experiment, decision_id), None)

    def experiments(self) -> list[str]:
        """The experiments that something is to be said to."""
        with self._lock:
            return sorted({name for name, _ in self._unsaid})
