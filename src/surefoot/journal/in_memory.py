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
from surefoot.journal.contract import Journal, Transaction, View, check_unmoved, not_found, refuse_nesting, taken
from surefoot.journal.events import JOURNAL, START, Event, Head, next_event
from surefoot.journal.private_text import ALIAS, PrivateText, by_alias
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
        self._texts: dict[int, PrivateText] = {}
        self._by_alias: dict[str, int] = {}

    @property
    def head(self) -> Head:
        """Number and hash of the newest event."""
        return self._chain.events[-1].head

    def page(self, after: int, limit: int) -> list[Event]:
        """A slice of the list."""
        return self._chain.events[max(after, 0) : max(after, 0) + limit]

    def find(self, key: str) -> Event | None:
        """The event that carries this key, or has this alias."""
        if not key.startswith(ALIAS):
            return self._chain.by_key.get(key)
        number = self._by_alias.get(key)
        return None if number is None else self._chain.events[number - 1]

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return self._chain.newest.get(kind)

    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name."""
        return self._attachments.get(digest)

    def private(self, number: int) -> PrivateText | None:
        """The private text of an event."""
        return self._texts.get(number)

    def privates(self, after: int, limit: int) -> list[tuple[int, PrivateText]]:
        """One page of private texts."""
        return [(number, self._texts[number]) for number in sorted(self._texts) if number > after][:limit]

    def about(self, person: str, *, newest: int | None = None) -> list[int]:
        """The events about a person."""
        found = sorted(number for number, text in self._texts.items() if text.person == person)
        return found[-newest if newest else None :]

    def keep(self, pending: StagedTransaction[Self]) -> None:
        """Apply what a transaction gathered."""
        self.add(pending.events)
        self._attachments.update({digest: data for digest, data in pending.attachments.items() if data is not None})
        for digest in (digest for digest, data in pending.attachments.items() if data is None):
            self._attachments.pop(digest, None)

        for number, text in pending.texts.items():
            self._put_text(number, text)

    def _put_text(self, number: int, text: PrivateText | None) -> None:
        before = self._texts.pop(number, None)
        if before is not None and before.alias is not None:
            del self._by_alias[by_alias(before.alias)]
        if text is not None:
            self._texts[number] = text
            if text.alias is not None:
                self._by_alias[by_alias(text.alias)] = number

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

    def remove(self, name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        """Forget an experiment, and note that."""
        with self._alone():
            check_unmoved(self.view(name), head)
            own = self.view(JOURNAL)
            transaction = StagedTransaction(own)
            note(transaction)
            transaction.finish()
            own.keep(transaction)
            del self._open()[name]

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
