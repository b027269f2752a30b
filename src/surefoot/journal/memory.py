"""A journal that lasts as long as its process: for tests, simulations and trying things out.

>>> journal = MemoryJournal()
>>> created = journal.create("shop", b'{"alpha":0.05}', time=0.0)
>>> journal.transact("shop", lambda t: t.append("decision", b'{"action":3}', time=1.0, key="d-1")).number
2
>>> journal.find("shop", "d-1").value()
{'action': 3}
"""

import threading
from array import array
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from surefoot.journal.contract import (
    Journal,
    Transaction,
    View,
    check_unmoved,
    closed,
    not_found,
    refuse_nesting,
    taken,
)
from surefoot.journal.events import JOURNAL, START, Event, Head
from surefoot.journal.private_text import ALIAS, PrivateText, by_alias

T = TypeVar("T")


class MemoryView(View):
    """One experiment, found by number, key, kind, alias, person and digest.

    It holds the place of each event, text and attachment, and `load` gives what is there. In memory that is the thing
    itself; `surefoot.journal.file` keeps where in the file it begins.
    """

    def __init__(self, name: str, lock: AbstractContextManager[Any], places: Any) -> None:
        self.name, self._lock, self._events = name, lock, places
        self._head = START
        self._by_key, self._by_alias = dict[str, int](), dict[str, int]()
        self._of_kind: dict[str, array[int]] = {}
        self._of_person = dict[str, set[int]]()
        self._texts, self._attachments = dict[int, Any](), dict[str, Any]()

    def load(self, place: Any) -> Any:
        """What is kept at a place."""
        return place

    @property
    def head(self) -> Head:
        """Number and hash of the newest event."""
        with self._lock:
            return self._head

    def page(self, after: int, limit: int) -> list[Event]:
        """A slice of the list."""
        after = max(after, 0)
        with self._lock:
            return [self.load(place) for place in self._events[after : after + limit]]

    def find(self, key: str) -> Event | None:
        """The event that carries this key, or has this alias."""
        with self._lock:
            number = (self._by_alias if key.startswith(ALIAS) else self._by_key).get(key)
            return None if number is None else self.load(self._events[number - 1])

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return next(iter(self.newest_of(kind, 1)), None)

    def newest_of(self, kind: str, limit: int) -> list[Event]:
        """The newest events of a kind, newest first."""
        with self._lock:
            numbers = self._of_kind.get(kind, ())[: -limit - 1 : -1]
            return [self.load(self._events[number - 1]) for number in numbers]

    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name."""
        with self._lock:
            return self.load(self._attachments[digest]) if digest in self._attachments else None

    def private(self, number: int) -> PrivateText | None:
        """The private text of an event."""
        with self._lock:
            return self.load(self._texts[number]) if number in self._texts else None

    def privates(self, after: int, limit: int) -> list[tuple[int, PrivateText]]:
        """One page of private texts."""
        with self._lock:
            numbers = sorted(number for number in self._texts if number > after)[:limit]
            return [(number, self.load(self._texts[number])) for number in numbers]

    def about(self, person: str, *, newest: int | None = None) -> list[int]:
        """The events about a person."""
        with self._lock:
            return sorted(self._of_person.get(person, ()))[-newest if newest else None :]

    def put_event(self, head: Head, kind: str, key: str | None, place: Any) -> None:
        """Add an event at the end, which is kept at that place."""
        self._events.append(place)
        self._head = head
        if kind not in self._of_kind:
            self._of_kind[kind] = array("Q")
        self._of_kind[kind].append(head.number)
        if key is not None:
            self._by_key[key] = head.number

    def put_text(self, number: int, alias: str | None, person: str | None, place: Any) -> None:
        """Add a private text, which is kept at that place."""
        self._texts[number] = place
        if alias is not None:
            self._by_alias[by_alias(alias)] = number
        if person is not None:
            self._of_person.setdefault(person, set()).add(number)

    def drop_text(self, number: int) -> None:
        """Remove a private text, if it is there."""
        if number in self._texts:
            text: PrivateText = self.load(self._texts.pop(number))
            if text.alias is not None:
                del self._by_alias[by_alias(text.alias)]
            if text.person is not None:
                self._of_person[text.person].discard(number)

    def put_attachment(self, digest: str, place: Any) -> None:
        """Add an attachment, which is kept at that place."""
        self._attachments[digest] = place

    def drop_attachment(self, digest: str) -> None:
        """Remove an attachment, if it is there."""
        self._attachments.pop(digest, None)

    def replace(self, other: "MemoryView") -> None:
        """Hold what another view holds, for whoever keeps this one."""
        self.__dict__.update(other.__dict__)


class MemoryJournal(Journal):
    """Experiments in a dictionary, one transaction at a time."""

    def __init__(self) -> None:
        self._chains: dict[str, Any] | None = {}  # views, by name; None once it is closed
        self._turn, self._owner = threading.Lock(), 0  # of transactions
        self._lock: AbstractContextManager[Any] = threading.Lock()  # of what readers see

    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment."""
        return self._alone(lambda: self._create(name, payload, time))

    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """Run `work` under the lock, and keep what it appended if it returns."""
        return self._alone(lambda: self._transact(name, work))

    def remove(self, name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        """Forget an experiment, and note that."""
        self._alone(lambda: self._remove(name, head, note))

    def names(self) -> list[str]:
        """The experiments, sorted."""
        with self._lock:
            return sorted(self._open().keys() - {JOURNAL})

    def view(self, name: str) -> MemoryView:
        """The experiment's events."""
        with self._lock:
            view: MemoryView | None = self._open().get(name)
        if view is None:
            raise not_found(name)
        return view

    def close(self) -> None:
        """Forget everything."""
        self._chains = None

    def _alone(self, call: Callable[[], T]) -> T:
        refuse_nesting(self._owner)
        with self._turn:
            self._owner = threading.get_ident()
            try:
                return call()
            finally:
                self._owner = 0

    def _create(self, name: str, payload: bytes, time: float) -> Event:
        if name in self._open():
            raise taken(name)
        transaction = Transaction(self._new_view(name))
        event = transaction.append("created", payload, time=time)
        self._keep([transaction])
        return event

    def _transact(self, name: str, work: Callable[[Transaction], T]) -> T:
        transaction = Transaction(self.view(name))
        result = work(transaction)
        transaction.finish()
        self._keep([transaction])
        return result

    def _remove(self, name: str, head: Head, note: Callable[[Transaction], object]) -> None:
        check_unmoved(self.view(name), head)
        transaction = Transaction(self.view(JOURNAL))
        note(transaction)
        transaction.finish()
        self._keep([transaction], removed=name)

    def _keep(self, transactions: Sequence[Transaction], *, removed: str | None = None) -> None:
        """Apply what transactions gathered, all of it or nothing."""
        with self._lock:
            for transaction in transactions:
                view = self._open().setdefault(transaction.name, transaction.over)
                for event in transaction.events:
                    view.put_event(event.head, event.kind, event.key, event)
                for number, text in transaction.texts.items():
                    view.drop_text(number)
                    if text is not None:
                        view.put_text(number, text.alias, text.person, text)
                for digest, data in transaction.attachments.items():
                    view.drop_attachment(digest)
                    if data is not None:
                        view.put_attachment(digest, data)
            if removed is not None:
                self._open().pop(removed).replace(self._new_view(removed))

    def _new_view(self, name: str) -> MemoryView:
        return MemoryView(name, self._lock, [])

    def _open(self) -> dict[str, Any]:
        if self._chains is None:
            raise closed()
        return self._chains
