"""A journal that lasts as long as its process: for tests, simulations and trying things out.

>>> journal = MemoryJournal()
>>> created = journal.create("shop", b'{"alpha":0.05}', time=0.0)
>>> journal.transact("shop", lambda t: t.append("decision", b'{"action":3}', time=1.0, key="d-1")).number
2
>>> journal.find("shop", "d-1").value()
{'action': 3}
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self, TypeVar

from surefoot.errors import JournalUnavailableError
from surefoot.journal.contract import Journal, Transaction, View, not_found, refuse_nesting, taken
from surefoot.journal.events import JOURNAL, START, Event, Head, next_event
from surefoot.journal.staged import StagedTransaction

T = TypeVar("T")


class MemoryChain:
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


class MemoryView(View):
    """An experiment that is kept in memory."""

    def __init__(self, name: str) -> None:
        self.name, self._chain = name, MemoryChain()
        self._attachments: dict[str, bytes] = {}

    @property
    def head(self) -> Head:
        """Number and hash of the newest event."""
        return self._chain.events[-1].head

    def page(self, after: int, limit: int) -> list[Event]:
        """A slice of the list."""
        return self._chain.events[max(after, 0) : max(after, 0) + limit]

    def find(self, key: str) -> Event | None:
        """The event that carries this key."""
        return self._chain.by_key.get(key)

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return self._chain.newest.get(kind)

    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name."""
        return self._attachments.get(digest)

    def keep(self, pending: StagedTransaction[Self]) -> None:
        """Apply what a transaction gathered."""
        self.add(pending.events)
        self._attachments.update({digest: data for digest, data in pending.attachments.items() if data is not None})
        for digest in (digest for digest, data in pending.attachments.items() if data is None):
            self._attachments.pop(digest, None)

    def add(self, events: list[Event]) -> None:
        """Append events."""
        self._chain.add(events)


class MemoryJournal(Journal):
    """Experiments in a dictionary, one transaction at a time."""

    def __init__(self) -> None:
        self._chains: dict[str, MemoryView] | None = {}
        self._lock, self._owner = threading.Lock(), 0

    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment."""
        event = next_event(name, START, kind="created", payload=payload, time=time)
        with self._alone():
            if name in self._open():
                raise taken(name)
            self._open()[name] = MemoryView(name)
            self._open()[name].add([event])
        return event

    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """Run `work` under the lock, and keep what it appended if it returns."""
        with self._alone():
            experiment = self.view(name)
            transaction = StagedTransaction(experiment)
            result = work(transaction)
            transaction.finish()
            experiment.keep(transaction)
            return result

    def names(self) -> list[str]:
        """The experiments, sorted."""
        return sorted(self._open().keys() - {JOURNAL})

    def view(self, name: str) -> MemoryView:
        """The experiment's events."""
        found = self._open().get(name)
        if found is None:
            raise not_found(name)
        return found

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

    def _open(self) -> dict[str, MemoryView]:
        if self._chains is None:
            raise JournalUnavailableError("A journal must be open to be used, but this one was closed.")
        return self._chains
