"""A journal that lasts as long as its process: for tests, simulations and trying things out.

>>> journal = MemoryJournal()
>>> created = journal.create("shop", b'{"alpha":0.05}', time=0.0)
>>> journal.transact("shop", lambda t: t.append("decision", b'{"action":3}', time=1.0, key="d-1")).number
2
>>> journal.find("shop", "d-1").value()
{'action': 3}
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from surefoot.errors import JournalUnavailableError
from surefoot.journal.base import Journal, Transaction, View, not_found, refuse_nesting, taken
from surefoot.journal.events import START, Event, Head, next_event

T = TypeVar("T")


@dataclass
class Chain:
    """One experiment in memory."""

    events: list[Event] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    attachments: dict[str, bytes] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Append the event to the list and its indexes."""
        self.events.append(event)
        self.newest[event.kind] = event.number
        if event.key is not None:
            self.numbers[event.key] = event.number


class MemoryView(View):
    """The experiment's committed events."""

    def __init__(self, name: str, chain: Chain) -> None:
        self.name, self._chain = name, chain

    @property
    def head(self) -> Head:
        """Number and hash of the newest event."""
        return self._chain.events[-1].head if self._chain.events else START

    def page(self, after: int, limit: int) -> list[Event]:
        """A slice of the list."""
        return self._chain.events[max(after, 0) : max(after, 0) + limit]

    def find(self, key: str) -> Event | None:
        """The event that carries this key."""
        return self._at(self._chain.numbers.get(key))

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return self._at(self._chain.newest.get(kind))

    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name."""
        return self._chain.attachments.get(digest)

    def _at(self, number: int | None) -> Event | None:
        return None if number is None else self._chain.events[number - 1]


class MemoryTransaction(MemoryView, Transaction):
    """Events wait in a chain of their own, over the committed one, until `commit`."""

    def __init__(self, name: str, chain: Chain) -> None:
        super().__init__(name, chain)
        self._base, self._added, self._gone = chain, Chain(), set[str]()

    @property
    def head(self) -> Head:
        """The newest event, this transaction's own included."""
        return self._added.events[-1].head if self._added.events else super().head

    def page(self, after: int, limit: int) -> list[Event]:
        """Committed events, then this transaction's."""
        committed = super().page(after, limit)
        own = [event for event in self._added.events if event.number > after]
        return committed + own[: limit - len(committed)]

    def find(self, key: str) -> Event | None:
        """The event that carries this key, this transaction's own included."""
        return self._own(self._added.numbers.get(key)) or super().find(key)

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind, this transaction's own included."""
        return self._own(self._added.newest.get(kind)) or super().latest(kind)

    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name, unless this transaction removed it."""
        if digest in self._gone:
            return None
        return self._added.attachments.get(digest, super().attachment(digest))

    def attach(self, data: bytes) -> str:
        """Keep bytes until `commit`."""
        digest = hashlib.sha256(data).hexdigest()
        self._added.attachments[digest] = data
        self._gone.discard(digest)
        return digest

    def detach(self, digest: str) -> None:
        """Remove an attachment on `commit`."""
        self._gone.add(digest)
        self._added.attachments.pop(digest, None)

    def commit(self) -> None:
        """Move everything into the committed chain."""
        for event in self._added.events:
            self._base.add(event)
        self._base.attachments.update(self._added.attachments)
        for digest in self._gone:
            self._base.attachments.pop(digest, None)

    def _write(self, event: Event) -> None:
        self._added.add(event)

    def _own(self, number: int | None) -> Event | None:
        return None if number is None else self._added.events[number - 1 - len(self._base.events)]


class MemoryJournal(Journal):
    """Experiments in a dictionary, one transaction at a time."""

    def __init__(self) -> None:
        self._chains: dict[str, Chain] | None = {}
        self._lock, self._owner = threading.Lock(), 0

    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment."""
        event = next_event(name, START, kind="created", payload=payload, time=time)
        with self._alone():
            if name in self._open():
                raise taken(name)
            chain = Chain()
            chain.add(event)
            self._open()[name] = chain
        return event

    def transact(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` under the lock, and keep what it appended if it returns."""
        with self._alone():
            transaction = MemoryTransaction(name, self._chain(name))
            result = work(transaction)
            transaction.commit()
            return result

    def names(self) -> list[str]:
        """The experiments, sorted."""
        return sorted(self._open())

    def view(self, name: str) -> View:
        """The experiment's events."""
        return MemoryView(name, self._chain(name))

    def close(self) -> None:
        """Forget everything."""
        self._chains = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        refuse_nesting(self._owner)
        with self._lock:
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = 0

    def _open(self) -> dict[str, Chain]:
        if self._chains is None:
            raise JournalUnavailableError("A journal must be open to be used, but this one was closed.")
        return self._chains

    def _chain(self, name: str) -> Chain:
        chain = self._open().get(name)
        if chain is None:
            raise not_found(name)
        return chain
