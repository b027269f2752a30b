"""A turn: what the verbs of an experiment work with inside a transaction.

Each looks up what is known, lets the policy have its say, writes, and only then answers. An error is returned, not
raised, where the rest of the transaction still counts.
"""

from typing import Any

from surefoot.experiment.snapshots import freeze
from surefoot.experiment.state import State
from surefoot.journal import Event, Transaction
from surefoot.journal.private_text import PrivateText
from surefoot.rounds import Record, encode, events
from surefoot.rounds.events import Reason
from surefoot.version import VERSION

MOST_SETTLED = 1000  # windows closed in one transaction, which must be quick; the rest follow in the next
MOST_AT_ONCE = 1000  # rounds in one event
PENDING_PER_EVENT = 4  # at most so many pending decisions are written again per event


class Turn:
    """What a verb works with inside a transaction; `now` never runs backwards, whatever the clock does."""

    def __init__(
        self, transaction: Transaction, state: State, clock: float, unrecorded: dict[Reason, int], coins: Any
    ) -> None:
        self.transaction, self.state, self.now = transaction, state, max(clock, state.time)
        self.coins = coins  # of a guard, what they follow from (`Coins`)
        self.forecast: dict[str, float] | None = None  # of the guard's round that is decided
        self.unrecorded = unrecorded  # refusals that were only counted; the count is lost with the process

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
        due = [] if windows is None else windows.due(self.now, MOST_SETTLED)
        if due:
            record = events.Settled(windows=due)
            self.state.settled(record, self.now)
            self.write(events.SETTLED, record)
        return len(due)

    def charge_overdue(self) -> None:
        """Count at its worst what was not confirmed in time."""
        due = self.state.unconfirmed.due(self.now)
        for at in range(0, len(due), MOST_AT_ONCE):
            record = events.Overdue(decisions=due[at : at + MOST_AT_ONCE])
            self.write(events.OVERDUE, record)
            self.state.unconfirmed.charge(record.decisions)

    def is_snapshot_due(self, every: int) -> bool:
        """Whether the newest snapshot is so many events old; with many pending decisions it may be older.

        A snapshot holds every pending decision, and all callers wait while it is taken.
        """
        since = self.state.head.number - self.state.newest_snapshot
        return since >= every and since >= len(self.state.policy.settlement) // PENDING_PER_EVENT

    def snapshot(self) -> None:
        """Attach the state to the chain, and remove the snapshot before the last."""
        state = self.state
        # The head before the snapshot's own event: the state is of that moment.
        of, hash_ = state.head
        previous = state.newest_snapshot
        if len(state.snapshots) == 2:
            self.transaction.detach(state.snapshots[0][1])
        digest = self.transaction.attach(freeze(state))
        record = events.Snapshot(digest=digest, number=of, hash=hash_, previous=previous, software=VERSION)
        event = self.write(events.SNAPSHOT, record)
        state.snapshotted(record, event.number)
