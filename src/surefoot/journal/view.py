"""One experiment of a journal: what can be read of it, and what a transaction may append.

`surefoot.journal.contract` says in words what both promise.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from surefoot.errors import JournalConflictError, JournalSchemaError
from surefoot.journal.events import START, Event, Head, next_event, verified
from surefoot.journal.private_text import PrivateText, by_alias

PAGE = 256


class View(ABC):
    """What can be read of one experiment: durable events and, inside a transaction, the transaction's own."""

    name: str

    @property
    @abstractmethod
    def head(self) -> Head:
        """Number and hash of the newest event."""

    @abstractmethod
    def page(self, after: int, limit: int) -> list[Event]:
        """One page of events, in order and unchecked.

        Parameters
        ----------
        after : int
            Number of the last event that is not wanted.
        limit : int
            How many events at most.

        Returns
        -------
        list of Event
            Empty at the end.
        """

    @abstractmethod
    def find(self, key: str) -> Event | None:
        """The event that carries a key.

        Parameters
        ----------
        key : str
            The key.

        Returns
        -------
        Event or None
            None if no event carries it.
        """

    def find_all(self, keys: Iterable[str]) -> dict[str, Event]:
        """The events that carry some keys.

        Parameters
        ----------
        keys : iterable of str
            The keys.

        Returns
        -------
        dict of str to Event
            Without the keys that no event carries.
        """
        return {key: event for key in keys if (event := self.find(key)) is not None}

    @abstractmethod
    def latest(self, kind: str) -> Event | None:
        """The newest event of a kind.

        Parameters
        ----------
        kind : str
            Such as "decision".

        Returns
        -------
        Event or None
            None if there is none.
        """

    def newest_of(self, kind: str, limit: int) -> list[Event]:
        """The newest events of a kind, newest first.

        Parameters
        ----------
        kind : str
            Such as "mode".
        limit : int
            How many at most.

        Returns
        -------
        list of Event
            Empty if there is none.
        """
        found = [event for event in self.read() if event.kind == kind]
        return found[::-1][:limit]

    @abstractmethod
    def attachment(self, digest: str) -> bytes | None:
        """The attachment of a name.

        Parameters
        ----------
        digest : str
            SHA-256 of its bytes.

        Returns
        -------
        bytes or None
            None if it is missing or damaged.
        """

    def private(self, number: int) -> PrivateText | None:
        """The private text of an event.

        Parameters
        ----------
        number : int
            The event's number.

        Returns
        -------
        PrivateText or None
            None if it has none, or none any more.
        """
        return None

    def privates(self, after: int, limit: int) -> list[tuple[int, PrivateText]]:
        """One page of private texts with their events' numbers, in order.

        Parameters
        ----------
        after, limit : int
            As in `page`.

        Returns
        -------
        list of (int, PrivateText)
            Empty at the end.
        """
        return []

    def about(self, person: str, *, newest: int | None = None) -> list[int]:
        """The events whose private text is about a person.

        Parameters
        ----------
        person : str
            As it was given with the text.
        newest : int, optional
            How many at most: the newest.

        Returns
        -------
        list of int
            Their numbers, in order.
        """
        return []

    def strays(self) -> list[int]:
        """Rows that belong to no event of the chain, where nobody who reads in order would come by.

        Returns
        -------
        list of int
            Numbers of events below 1, and of private texts below 1 or beyond the head.
        """
        return []

    def read(self, after: int = 0, *, limit: int | None = None, verify: bool = True) -> Iterator[Event]:
        """Stream events in order, in bounded memory.

        Parameters
        ----------
        after : int
            Number of the last event that is not wanted.
        limit : int, optional
            How many events at most.
        verify : bool
            Whether to check each event against its hash and its predecessor.

        Returns
        -------
        iterator of Event
            Raises JournalCorruptedError at the first event that is wrong.
        """
        events = self._stream(after, limit)
        return verified(self.name, events, after=START if after == 0 else None) if verify else events

    def follows(self, head: Head) -> bool:
        """Whether the chain once had this head, so that a state at it can catch up.

        Parameters
        ----------
        head : Head
            Number and hash of an event.

        Returns
        -------
        bool
            Whether it is in the chain.
        """
        newest = self.head  # once: another process may write meanwhile
        if head.number == 0 or head == newest:
            return head in (START, newest)  # number 0 with another hash is no head of this chain
        found = self.page(head.number - 1, 1)
        return bool(found) and found[0].head == head

    def _stream(self, after: int, limit: int | None) -> Iterator[Event]:
        while limit is None or limit > 0:
            page = self.page(after, PAGE if limit is None else min(PAGE, limit))
            yield from page
            # Not where it is short: events may have been appended since.
            if not page:
                return
            after = page[-1].number
            limit = None if limit is None else limit - len(page)


class Transaction(View):
    """What `work` is given: the experiment at its true head, and the means to append to it."""

    def append(
        self, kind: str, payload: bytes, *, time: float, key: str | None = None, private: PrivateText | None = None
    ) -> Event:
        """Append an event; it is durable when `transact` returns.

        Parameters
        ----------
        kind : str
            A word for what happened.
        payload : bytes
            JSON, as `canonical` writes it.
        time : float
            Seconds since 1970.
        key : str, optional
            Unique within the experiment; what a repeated request is found by.
        private : PrivateText, optional
            What is kept beside the event, and can be erased.

        Returns
        -------
        Event
            With its number and hash.

        Raises
        ------
        JournalConflictError
            If an event has that key, or that alias, already.
        InputError
            If a field is invalid.
        """
        # Made first, for it refuses keys that no backend could look up.
        event = next_event(self.name, self.head, kind=kind, payload=payload, time=time, key=key)
        alias = None if private is None or private.alias is None else by_alias(private.alias)
        for one in (key, alias):
            if one is not None and (found := self.find(one)) is not None:
                raise JournalConflictError(
                    f"A key must be used once in an experiment, but event {found.number} ({found.kind}) of "
                    f"{self.name!r} has key={one!r} already. Look it up with `find` before you append."
                )
        self._write(event)
        if private is not None:
            self._write_private(event, private)
        return event

    def erase(self, numbers: Iterable[int]) -> int:
        """Remove the private texts of events.

        Parameters
        ----------
        numbers : iterable of int
            The events' numbers.

        Returns
        -------
        int
            How many of them had one.

        Raises
        ------
        JournalSchemaError
            If this kind of journal keeps none.
        """
        raise JournalSchemaError("This kind of journal keeps no private texts, so that none can be erased.")

    def _write_private(self, event: Event, private: PrivateText) -> None:
        """Keep the private text of an event that was just written."""
        raise JournalSchemaError("This kind of journal keeps no private texts.")

    @abstractmethod
    def attach(self, data: bytes) -> str:
        """Keep bytes beside the chain; the same bytes twice are kept once.

        Parameters
        ----------
        data : bytes
            Such as a snapshot.

        Returns
        -------
        str
            The SHA-256 that they are found by.
        """

    @abstractmethod
    def detach(self, digest: str) -> None:
        """Remove an attachment, if it is there.

        Parameters
        ----------
        digest : str
            SHA-256 of its bytes.
        """

    @abstractmethod
    def _write(self, event: Event) -> None:
        """Store the event and move the head."""
