"""One transaction of an experiment: its state at the true head, and the means to append to it."""

import surefoot
from surefoot import records
from surefoot.experiment.attribution_windows import AttributionWindows
from surefoot.experiment.snapshots import freeze
from surefoot.experiment.state import State
from surefoot.journal import Event, Transaction
from surefoot.journal.private_text import PrivateText
from surefoot.policies import Guard
from surefoot.records import Record, encode

MOST_CLOSED = 1000  # windows closed in one transaction, which must be quick; the rest follow in the next
PENDING_PER_EVENT = 4  # at most so many pending decisions are written again per event


class UnitOfWork:
    """What a verb works with inside a transaction; `now` never runs backwards, whatever the clock does."""

    def __init__(self, transaction: Transaction, state: State, clock: float) -> None:
        self.transaction, self.state, self.now = transaction, state, max(clock, state.time)

    def write(self, kind: str, record: Record, key: str | None = None, private: PrivateText | None = None) -> Event:
        """Append an event; the caller brings the state to it."""
        return self.append(kind, encode(record), key, private)

    def append(self, kind: str, payload: bytes, key: str | None = None, private: PrivateText | None = None) -> Event:
        """The same of a record that was encoded before."""
        event = self.transaction.append(kind, payload, time=self.now, key=key, private=private)
        self.state.reached(self.transaction.head, event.time)
        return event

    def close_windows(self) -> int:
        """Learn what is due; returns the number of windows that closed."""
        windows = self.state.windows
        if windows is not None and isinstance(self.state.policy, Guard):
            return self._settle_windows(windows)
        learned = [] if windows is None else windows.due(self.now, MOST_CLOSED)
        if learned:
            record = records.Closed(learned=learned)
            self.state.closed(record)
            self.write(records.CLOSED, record)
        return len(learned)

    def _settle_windows(self, windows: AttributionWindows) -> int:
        due = windows.due_of_guard(self.now, MOST_CLOSED)
        if due:
            record = records.Settled(windows=due)
            self.state.settled(record)
            self.write(records.SETTLED, record)
        return len(due)

    def is_snapshot_due(self, events: int) -> bool:
        """Whether the newest snapshot is so many events old; with many pending decisions it may be older.

        A snapshot holds every pending decision, and all callers wait while it is taken.
        """
        since = self.state.head.number - self.state.newest_snapshot
        return since >= max(events, len(self.state.policy.settlement) // PENDING_PER_EVENT)

    def snapshot(self) -> None:
        """Attach the state to the chain, and remove the snapshot before the last."""
        state = self.state
        # The head before the snapshot's own event: the state is of that moment.
        number, hash_ = state.head
        previous = state.newest_snapshot
        if len(state.snapshots) == 2:
            self.transaction.detach(state.snapshots[0][1])
        digest = self.transaction.attach(freeze(state))
        record = records.Snapshot(
            digest=digest, number=number, hash=hash_, previous=previous, software=surefoot.__version__
        )
        event = self.write(records.SNAPSHOT, record)
        state.snapshotted(record, event.number)
