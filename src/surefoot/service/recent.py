"""The last decisions of an experiment, read from the journal, whichever server made them."""

import threading
from collections import deque

from surefoot.experiment import Answer, records
from surefoot.experiment.state import decode
from surefoot.journal import Journal

MOST_KEPT, MOST_READ = 100, 400  # decisions; events looked at in one go


class Recent:
    """The newest decisions."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Answer]] = deque(maxlen=MOST_KEPT)
        self._seen, self._lock = 0, threading.Lock()

    def catch_up(self, journal: Journal, name: str) -> None:
        """Read what is new."""
        with self._lock:
            view = journal.view(name)
            after = max(self._seen, view.head.number - MOST_READ)
            for event in view.read(after):
                self._seen = event.number
                if event.kind == records.DECISION:
                    self._kept.append((event.number, Answer(decode(event, records.Decision), event.time)))

    def newest(self, limit: int = MOST_KEPT, *, after: int = 0) -> list[Answer]:
        """The newest first, those of events above `after` only."""
        return [answer for number, answer in reversed(list(self._kept)) if number > after][:limit]
