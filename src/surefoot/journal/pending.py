"""Events that wait to be written, over those that are: what a transaction sees and appends to.

Nothing touches the backend before `work` has returned, so a transaction that fails leaves nothing to undo. They can be
stacked: a transaction over its group, the group over the tables.
"""

import hashlib
from collections.abc import Iterable
from typing import Generic, TypeVar

from surefoot.errors import JournalBusyError
from surefoot.journal.base import Transaction, View
from surefoot.journal.events import Event, Head

V = TypeVar("V", bound=View)


class Chain:
    """Events in a list, with the indexes that make lookups quick."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.by_key: dict[str, Event] = {}
        self.newest: dict[str, Event] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Append the events."""
        for event in events:
            self.events.append(event)
            self.newest[event.kind] = event
            if event.key is not None:
                self.by_key[event.key] = event


class Pending(Transaction, Generic[V]):
    """A transaction over a view that nobody else changes meanwhile."""

    def __init__(self, over: V) -> None:
        self.name, self.over, self.base = over.name, over, over.head
        self.chain, self._unused_keys, self._is_over = Chain(), set[str](), False
        self.attachments: dict[str, bytes | None] = {}

    @property
    def head(self) -> Head:
        """The newest event, the waiting ones included."""
        return self.chain.events[-1].head if self.chain.events else self.base

    def page(self, after: int, limit: int) -> list[Event]:
        """Events below, then the waiting ones."""
        below = self.over.page(after, limit) if after < self.base.number else []
        skipped = max(0, after - self.base.number)
        return below + self.chain.events[skipped : skipped + limit - len(below)]

    def find(self, key: str) -> Event | None:
        """The event that carries this key; a key that was looked up in vain is not looked up again."""
        if key in self._unused_keys:
            return None
        found = self.chain.by_key.get(key) or self.over.find(key)
        if found is None:
            self._unused_keys.add(key)
        return found

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return self.chain.newest.get(kind) or self.over.latest(kind)

    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name."""
        return self.attachments[digest] if digest in self.attachments else self.over.attachment(digest)

    def attach(self, data: bytes) -> str:
        """Have bytes kept beside the chain."""
        self._refuse_afterthoughts()
        digest = hashlib.sha256(data).hexdigest()
        self.attachments[digest] = data
        return digest

    def detach(self, digest: str) -> None:
        """Have an attachment removed."""
        self._refuse_afterthoughts()
        self.attachments[digest] = None

    def finish(self) -> None:
        """Take nothing more: `work` has returned."""
        self._is_over = True

    def absorb(self, other: "Pending[Pending[V]]") -> None:
        """Take over what a finished transaction over this one has gathered."""
        self.chain.add(other.chain.events)
        self._unused_keys.difference_update(other.chain.by_key)
        self.attachments.update(other.attachments)

    def _write(self, event: Event) -> None:
        self._refuse_afterthoughts()
        self.chain.add([event])
        self._unused_keys.discard(event.key or "")

    def _refuse_afterthoughts(self) -> None:
        if self._is_over:
            raise JournalBusyError("A transaction ends when its `work` returns, but something was added to it later.")
