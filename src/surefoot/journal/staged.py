"""Events that wait to be written, over those that are: what a transaction sees and appends to.

Nothing reaches the backend before `work` has returned, so a transaction that fails leaves nothing to undo. Stages can
be stacked: a transaction over its group, the group over the tables.
"""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from surefoot.errors import JournalBusyError, JournalCorruptedError
from surefoot.journal.contract import Transaction, View
from surefoot.journal.events import Event, Head
from surefoot.journal.private_text import PrivateText, by_alias

V = TypeVar("V", bound=View)
UNKNOWN: Any = object()  # in place of an event that was not looked up yet


class StagedTransaction(Transaction, Generic[V]):
    """A transaction over a view that nothing else changes meanwhile."""

    def __init__(self, over: V) -> None:
        self.name, self.over, self.base = over.name, over, over.head
        self.events: list[Event] = []
        self.attachments: dict[str, bytes | None] = {}
        self.texts: dict[int, PrivateText | None] = {}  # None: erased
        self._head, self._is_over = self.base, False
        # Known keys: those that wait here, and those that were looked up below; None if no event carries them.
        self._known: dict[str, Event | None] = {}

    @property
    def head(self) -> Head:
        """The newest event, the waiting ones included."""
        return self._head

    def page(self, after: int, limit: int) -> list[Event]:
        """Events below, then the waiting ones."""
        # What waits follows the base without a gap, so one page may take its end from here.
        below = self.over.page(after, limit) if after < self.base.number else []
        skipped = max(0, after - self.base.number)
        return below + self.events[skipped : skipped + limit - len(below)]

    def find(self, key: str) -> Event | None:
        """The event that carries this key; each key is looked up below once."""
        found: Event | None = self._known.get(key, UNKNOWN)
        if found is UNKNOWN:
            found = self._known[key] = self.over.find(key)
        return found

    def expect(self, keys: Sequence[str]) -> None:
        """Look up many keys below at once."""
        # Keys come from callers unchecked; an odd one fails where it is used, not for the whole group.
        unknown = [key for key in keys if isinstance(key, str) and key not in self._known]
        if unknown:
            with suppress(JournalCorruptedError):  # a caller that needs the event looks it up again, and gets the error
                found = self.over.find_all(unknown)
                self._known.update((key, found.get(key)) for key in unknown)

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return next((event for event in reversed(self.events) if event.kind == kind), None) or self.over.latest(kind)

    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name."""
        return self.attachments[digest] if digest in self.attachments else self.over.attachment(digest)

    def private(self, number: int) -> PrivateText | None:
        """The private text of an event, unless it is about to be erased."""
        return self.texts[number] if number in self.texts else self.over.private(number)

    def privates(self, after: int, limit: int) -> list[tuple[int, PrivateText]]:
        """One page of private texts, the waiting ones included."""
        below = [entry for entry in self.over.privates(after, limit + len(self.texts)) if entry[0] not in self.texts]
        waiting = [(number, text) for number, text in self.texts.items() if text is not None and number > after]
        return sorted([*below, *waiting], key=lambda entry: entry[0])[:limit]

    def about(self, person: str, *, newest: int | None = None) -> list[int]:
        """The events about a person, the waiting ones included."""
        most = None if newest is None else newest + len(self.texts)
        below = [number for number in self.over.about(person, newest=most) if number not in self.texts]
        waiting = (number for number, text in self.texts.items() if text is not None and text.person == person)
        return sorted({*below, *waiting})[-newest if newest else None :]

    def erase(self, numbers: Iterable[int]) -> int:
        """Stage the removal of private texts, and of the aliases that events are found by."""
        self._refuse_if_closed()
        count = 0
        for number in numbers:
            found = self.private(number)
            if found is not None:
                count += 1
                self.texts[number] = None
                if found.alias is not None:
                    self._known[by_alias(found.alias)] = None
        return count

    def attach(self, data: bytes) -> str:
        """Stage bytes to be kept beside the chain."""
        self._refuse_if_closed()
        digest = hashlib.sha256(data).hexdigest()
        self.attachments[digest] = data
        return digest

    def detach(self, digest: str) -> None:
        """Stage the removal of an attachment."""
        self._refuse_if_closed()
        self.attachments[digest] = None

    def finish(self) -> None:
        """Accept nothing more: `work` has returned."""
        self._is_over = True

    def absorb(self, other: "StagedTransaction[StagedTransaction[V]]") -> None:
        """Add what a finished transaction over this one has gathered."""
        self.events += other.events
        self._head = other._head
        self.attachments.update(other.attachments)
        self.texts.update(other.texts)
        # It has seen all that is here, its own included; and what it erased is found no more.
        self._known.update(other._known)

    def _write(self, event: Event) -> None:
        self._refuse_if_closed()
        self.events.append(event)
        self._head = event.head
        if event.key is not None:
            self._known[event.key] = event

    def _write_private(self, event: Event, private: PrivateText) -> None:
        self.texts[event.number] = private
        if private.alias is not None:
            self._known[by_alias(private.alias)] = event

    def _refuse_if_closed(self) -> None:
        if self._is_over:
            raise JournalBusyError("A transaction ends when its `work` returns, but something was added to it later.")
