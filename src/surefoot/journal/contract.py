"""What a journal promises, in words. Every backend is held to it by one suite, `surefoot.journal.conformance`.

**Events.** A journal holds experiments by name. An experiment is a chain of events (`surefoot.journal.events`),
append-only, numbered from 1 without gaps, each carrying the hash of the one before. The journal does not interpret
kinds or payloads. What is read back is what was written, to the bit.

**Keys.** An event may carry a key. Within an experiment a key is used once: a second event with the same key raises
`JournalConflictError`. `find` looks a key up in logarithmic time. Requests that may be repeated are made idempotent by
looking their key up first, in the same transaction. Keys that `transact` is given in advance (`keys`) are fetched
together, for all transactions that wait; this changes how long it takes to find them, and nothing else.

**Transactions.** `transact(name, work)` calls `work(transaction)`, at most once, and returns what it returned.
  - Alone: no other transaction of that experiment runs meanwhile, in no thread and in no process. `work` runs in any
    thread, perhaps not the caller's; it must be quick, and must not call `transact`, `submit` or `create` itself.
  - On the truth: `transaction.head` is the true head, after everything that other threads and processes appended.
  - All or nothing: if `work` raises, nothing that it appended remains and its exception comes out of `transact`.
  - Durable: `transact` returns only when what was appended survives the loss of the process and of the machine's
    power (as far as the disk is honest about flushes; the in-memory backend keeps nothing, and a file journal without
    `sync` survives the loss of the process alone).
  - Shared flushes: transactions that wait at the same time may be committed together. Each is still all or nothing
    by itself, in some order; a later one sees the events of an earlier one before those are durable. Should the
    commit fail then, it fails for all of them.

**Futures.** `submit` is `transact` for event loops: it returns at once, with a future of what `transact` would have
returned or raised. It happens whether or not anybody waits for it: the future cannot be cancelled. Callbacks of the
future may run in the thread that writes, so they must be quick (`asyncio.wrap_future` is).

**When transact raises**, nothing was acknowledged, and:
  - the exception of `work`, or any `JournalError` but the last: nothing was written.
  - `OutcomeUnknownError`: the disk refused the flush, or the server went away in the middle of the commit and did not
    come back in time. All of it was written or none: look the key up (`find`) before you try again. After a refused
    flush the journal repairs its file by itself before the next transaction, and refuses that as long as it cannot.

**States in memory.** `work` usually advances a state that is kept between transactions, and the commit may fail after
it did. So a state carries the `Head` that it stands for, and the rule is one comparison at the start of `work`: where
the state's head is `transaction.head`, go on. Where it is an earlier head of the same chain (`transaction.follows`),
catch up by reading the events after it. Otherwise throw the state away and rebuild it. Nothing else is needed after
a failed commit, a lost connection, or another process's events. Nothing may leave the process (a reply, a metric)
before `transact` has returned.

**Attachments** are large bytes beside the chain, such as snapshots, named by their SHA-256: `attach` returns the name,
which an event's payload should hold, so that the chain vouches for them. They only ever save time: `attachment` gives
None for one that is missing or damaged, and callers must then be able to do without. `detach` removes one.

**Private texts** are kept beside events, and can be erased (`surefoot.journal.private_text`). They are written with
their event or not at all. An event is found by the alias of its text as by a key; when the text is erased, so is the
alias. After an erasure is durable, no read gives the text back; `forget` has it leave the disk, as far as we can, and
`is_forgetting` says while it is still there.

**Reading** (`names`, `head`, `read`, `find`, `latest`, `attachment`) is allowed at any time, from any thread, and sees
durable events only. `read` streams in bounded memory, holds no lock between pages, and ends at the head of the moment
when it reaches it. Inside a transaction the same methods see the transaction's own events too.

**The journal's own chain** is a chain like the others, under the name "@journal", which `names` leaves out: what
happened to the journal as a whole (`surefoot.journal.journal_chain`).

**Damage.** Every event that is read is checked against its hash and its neighbour, and the head against its event:
`JournalCorruptedError` names the first that is wrong (`verify=False` reads on, for audits). A journal that cannot be
opened as asked raises `JournalNotFoundError`, `JournalBusyError`, `JournalReadOnlyError`, `JournalSchemaError` or
`JournalCorruptedError`, and is left as it was.
"""

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from surefoot.errors import (
    JournalBusyError,
    JournalConflictError,
    JournalCorruptedError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalUnavailableError,
)
from surefoot.journal.events import START, Event, Head, next_event, verified
from surefoot.journal.private_text import PrivateText, by_alias

T = TypeVar("T")
PAGE = 256  # events
UNKNOWN: Any = object()  # in place of an event that was not looked up yet


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
        events = [event for event in self.read() if event.kind == kind]
        return events[::-1][:limit]

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
        page = self.page(head.number - 1, 1)
        return bool(page) and page[0].head == head

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
    """What `work` is given: the experiment at its true head, and the means to append to it.

    Whatever it appends waits in memory until `work` has returned, so a transaction that fails leaves nothing to undo.
    Transactions stack: that of one caller over that of its group, and the group's over what is stored.

    Parameters
    ----------
    over : View
        What is stored; nothing else changes it meanwhile.

    Examples
    --------
    >>> from surefoot.journal import open_journal
    >>> journal = open_journal("memory:")
    >>> created = journal.create("shop", b"{}", time=0.0)
    >>> journal.transact("shop", lambda transaction: transaction.head == created.head)
    True
    """

    head: Head = START  # the newest event, those of this transaction included

    def __init__(self, over: View) -> None:
        self.name, self.over, self.base = over.name, over, over.head
        self.events: list[Event] = []
        self.attachments: dict[str, bytes | None] = {}  # None: removed
        self.texts: dict[int, PrivateText | None] = {}  # None: erased
        self.head, self._is_over = self.base, False
        # Keys that were appended here, or looked up below; None if no event carries them.
        self._known: dict[str, Event | None] = {}

    def newest_of(self, kind: str, limit: int) -> list[Event]:
        """The newest events of a kind, newest first, as `View.newest_of`; those appended here come before the others.

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
        own = [event for event in reversed(self.events) if event.kind == kind][:limit]
        return own + self.over.newest_of(kind, limit - len(own)) if len(own) < limit else own

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
        self._refuse_if_over()
        # Before any lookup: it refuses keys that no backend could look up.
        event = next_event(self.name, self.head, kind=kind, payload=payload, time=time, key=key)
        alias = None if private is None or private.alias is None else by_alias(private.alias)
        for unique in (key, alias):
            if unique is not None and (holder := self.find(unique)) is not None:
                raise JournalConflictError(
                    f"A key must be used once in an experiment, but event {holder.number} ({holder.kind}) of "
                    f"{self.name!r} has key={unique!r} already. Look it up with `find` before you append."
                )
        self.events.append(event)
        self.head = event.head
        if key is not None:
            self._known[key] = event
        if private is not None:
            self.texts[event.number] = private
        if alias is not None:
            self._known[alias] = event
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
        """
        self._refuse_if_over()
        count = 0
        for number in numbers:
            text = self.private(number)
            if text is not None:
                count += 1
                self.texts[number] = None
                if text.alias is not None:
                    self._known[by_alias(text.alias)] = None
        return count

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
        self._refuse_if_over()
        digest = hashlib.sha256(data).hexdigest()
        self.attachments[digest] = data
        return digest

    def detach(self, digest: str) -> None:
        """Remove an attachment, if it is there.

        Parameters
        ----------
        digest : str
            SHA-256 of its bytes.
        """
        self._refuse_if_over()
        self.attachments[digest] = None

    def page(self, after: int, limit: int) -> list[Event]:
        """Stored events, then those of this transaction."""
        # They follow the base without a gap, so one page may take its end from here.
        below = self.over.page(after, limit) if after < self.base.number else []
        skip = max(0, after - self.base.number)
        return below + self.events[skip : skip + limit - len(below)]

    def find(self, key: str) -> Event | None:
        """The event that carries this key; each key is looked up below once."""
        event: Event | None = self._known.get(key, UNKNOWN)
        if event is UNKNOWN:
            event = self._known[key] = self.over.find(key)
        return event

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return next((event for event in reversed(self.events) if event.kind == kind), None) or self.over.latest(kind)

    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name."""
        return self.attachments[digest] if digest in self.attachments else self.over.attachment(digest)

    def private(self, number: int) -> PrivateText | None:
        """The private text of an event, unless this transaction erased it."""
        return self.texts[number] if number in self.texts else self.over.private(number)

    def privates(self, after: int, limit: int) -> list[tuple[int, PrivateText]]:
        """One page of private texts, those of this transaction included."""
        below = [entry for entry in self.over.privates(after, limit + len(self.texts)) if entry[0] not in self.texts]
        own = [(number, text) for number, text in self.texts.items() if text is not None and number > after]
        return sorted([*below, *own], key=lambda entry: entry[0])[:limit]

    def about(self, person: str, *, newest: int | None = None) -> list[int]:
        """The events about a person, those of this transaction included."""
        most = None if newest is None else newest + len(self.texts)
        below = [number for number in self.over.about(person, newest=most) if number not in self.texts]
        own = (number for number, text in self.texts.items() if text is not None and text.person == person)
        return sorted({*below, *own})[-newest if newest else None :]

    def expect(self, keys: Iterable[str]) -> None:
        """Look up many keys at once, for a backend that can.

        Parameters
        ----------
        keys : iterable of str
            Keys that will be looked up, as far as they are known.
        """
        # Keys come from callers unchecked; an odd one fails where it is used, not for the whole group.
        unknown = dict[str, Event | None]()
        for key in keys:
            if isinstance(key, str) and key not in self._known:
                unknown[key] = None
        if unknown:
            with suppress(JournalCorruptedError):  # whoever needs that event looks it up again, and gets the error
                self._known |= unknown | self.over.find_all(unknown)

    def finish(self) -> None:
        """Accept nothing more, since `work` has returned; for a backend."""
        self._is_over = True

    def absorb(self, other: "Transaction") -> None:
        """Add what a finished transaction over this one has gathered, for a backend.

        Parameters
        ----------
        other : Transaction
            One whose `over` is this one.
        """
        self.events += other.events
        self.head = other.head
        self.attachments.update(other.attachments)
        self.texts.update(other.texts)
        self._known.update(other._known)

    def _refuse_if_over(self) -> None:
        if self._is_over:
            raise JournalBusyError("A transaction ends when its `work` returns, but something was added to it later.")


class Journal(ABC):
    """Experiments and their events; the contract at the top of this module says what every backend promises."""

    @abstractmethod
    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Start an experiment with a durable event of kind "created".

        Parameters
        ----------
        name : str
            A new name.
        payload : bytes
            JSON, as `canonical` writes it.
        time : float
            Seconds since 1970.

        Returns
        -------
        Event
            Event 1.

        Raises
        ------
        JournalConflictError
            If the experiment exists.
        """

    @abstractmethod
    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """Run `work` alone on the experiment, make what it appended durable, and return what it returned.

        Parameters
        ----------
        name : str
            The experiment.
        work : callable
            Is given the `Transaction`; runs at most once, in any thread, and must be quick.
        keys : sequence of str
            Keys that `work` is going to look up, as far as they are known: a hint that saves time.

        Returns
        -------
        object
            What `work` returned.

        Raises
        ------
        JournalError
            If nothing was written; the exception of `work` comes out as it is.
        OutcomeUnknownError
            If contact was lost while committing: look the key up before you try again.
        """

    def submit(
        self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = (), executor: Executor
    ) -> "Future[T]":
        """`transact` as a future, for event loops. It happens whether or not anybody waits for it.

        Parameters
        ----------
        name, work, keys
            As in `transact`.
        executor : Executor
            Where a journal without a thread of its own runs it.

        Returns
        -------
        Future
            Of what `transact` would return or raise.
        """
        return executor.submit(self.transact, name, work, keys=keys)

    def remove(self, name: str, *, head: Head, note: Callable[[Transaction], object]) -> None:
        """Remove an experiment with everything that belongs to it, for good, and note that: both or neither.

        Parameters
        ----------
        name : str
            The experiment.
        head : Head
            Where its chain must stand, so that nothing goes that the caller has not seen.
        note : callable
            Is given a `Transaction` of the journal's own chain, which must exist, and appends what is to be known.

        Raises
        ------
        JournalNotFoundError
            If there is no such experiment.
        JournalConflictError
            If its chain stands elsewhere; nothing has changed.
        """
        raise JournalReadOnlyError("This kind of journal cannot remove an experiment.")

    @abstractmethod
    def names(self) -> list[str]:
        """The experiments, sorted by code point, without the journal's own chain."""

    @abstractmethod
    def view(self, name: str) -> View:
        """The experiment's durable events.

        Parameters
        ----------
        name : str
            The experiment.

        Returns
        -------
        View
            Usable from any thread.

        Raises
        ------
        JournalNotFoundError
            If there is no such experiment.
        """

    def forget(self) -> None:
        """Let what was erased leave the disk, too, where this journal has a say in that (`is_forgetting`)."""
        return

    @property
    def knows_copies(self) -> bool:
        """Whether what is opened again cannot be an older copy: one would be refused."""
        return False

    @property
    def is_forgetting(self) -> bool:
        """Whether what was erased is still on the disk, because somebody reads; later transactions try again."""
        return False

    def probe(self) -> dict[str, str]:
        """Write and flush something that leaves no trace, to know whether a transaction would be durable now.

        Returns
        -------
        dict
            Experiments that take no events while others do, by name, and why; as far as the journal can tell.

        Raises
        ------
        JournalError
            If nothing can be written. A journal that cannot tell says at least whether it can be read.
        """
        self.names()
        return {}

    def clock(self) -> float | None:
        """The time by a clock that all writers share, in seconds since 1970; None where there is none."""
        return None

    def clock_jump(self) -> float:
        """By how many seconds the system's clock was set forward since the last process noted it (`probe`, opening).

        Returns
        -------
        float
            0 where nobody can tell: after a reboot, or where all writers share another clock.
        """
        return 0.0

    @abstractmethod
    def close(self) -> None:
        """Finish what is waiting, and release files and connections. Closing twice is fine."""

    def head(self, name: str) -> Head:
        """Number and hash of an experiment's newest event.

        Parameters
        ----------
        name : str
            The experiment.

        Returns
        -------
        Head
            Where its chain stands.
        """
        return self.view(name).head

    def read(self, name: str, after: int = 0, *, limit: int | None = None, verify: bool = True) -> Iterator[Event]:
        """Stream an experiment's events in order (`View.read`).

        Parameters
        ----------
        name : str
            The experiment.
        after, limit, verify
            As in `View.read`.

        Returns
        -------
        iterator of Event
            In the order of their numbers.
        """
        return self.view(name).read(after, limit=limit, verify=verify)

    def find(self, name: str, key: str) -> Event | None:
        """The event of an experiment that carries a key.

        Parameters
        ----------
        name, key : str
            The experiment and the key.

        Returns
        -------
        Event or None
            None if no event carries it.
        """
        return self.view(name).find(key)

    def latest(self, name: str, kind: str) -> Event | None:
        """The newest event of a kind in an experiment.

        Parameters
        ----------
        name, kind : str
            The experiment and the kind.

        Returns
        -------
        Event or None
            None if there is none.
        """
        return self.view(name).latest(kind)

    def attachment(self, name: str, digest: str) -> bytes | None:
        """The attachment of a name in an experiment.

        Parameters
        ----------
        name, digest : str
            The experiment, and the SHA-256 of the bytes.

        Returns
        -------
        bytes or None
            None if it is missing or damaged.
        """
        return self.view(name).attachment(digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def not_found(name: str) -> JournalNotFoundError:
    """The error for an experiment that does not exist."""
    return JournalNotFoundError(
        f"The journal has no experiment {name!r}; `names()` or `surefoot experiment list` lists those it has."
    )


def taken(name: str) -> JournalConflictError:
    """The error for an experiment that exists already."""
    return JournalConflictError(f"An experiment's name must be new, but {name!r} exists already: open it instead.")


def check_unmoved(view: View, head: Head) -> None:
    """Refuse to remove an experiment that has been written to since the caller looked."""
    if view.head != head:
        raise JournalConflictError(
            f"{view.name!r} must stand at event {head.number} to be removed, but has been written to since: it stands "
            f"at {view.head.number}. Stop whoever writes to it, and look again."
        )


def refuse_nesting(owner: int) -> None:
    """Refuse a transaction inside a transaction: the inner one would wait for the outer one forever."""
    if owner == threading.get_ident():
        raise JournalBusyError("`work` must not start a transaction of its own: append to the one that it was given.")


def closed() -> JournalUnavailableError:
    """The error for a journal that was closed."""
    return JournalUnavailableError("A journal must be open to be used, but this one was closed.")
