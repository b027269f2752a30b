"""What a journal promises, in words. Every backend is held to it by one suite, `surefoot.journal.conformance`.

**Events.** A journal holds experiments by name. An experiment is a chain of events (`surefoot.journal.events`),
append-only, numbered from 1 without gaps, each carrying the hash of the one before. The journal does not interpret
kinds or payloads. What is read back is what was written, to the bit.

**Keys.** An event may carry a key. Within an experiment a key is used once: a second event with the same key raises
`JournalConflictError`. `find` looks a key up in logarithmic time. Requests that may be repeated are made idempotent by
looking their key up first, in the same transaction. Keys that `transact` is told of beforehand (`keys`) are fetched
together, for all transactions that wait; this changes how long it takes to find them, and nothing else.

**Transactions.** `transact(name, work)` calls `work(transaction)`, at most once, and returns what it returned.
  - Alone: no other transaction of that experiment runs meanwhile, in no thread and in no process. `work` runs in any
    thread, perhaps not the caller's; it must be quick, and must not call `transact`, `submit` or `create` itself.
  - On the truth: `transaction.head` is the true head, after everything that other threads and processes appended.
  - All or nothing: if `work` raises, nothing that it appended remains and its exception comes out of `transact`.
  - Durable: `transact` returns only when what was appended survives the loss of the process and of the machine's
    power (as far as the disk keeps its word when it is flushed; the in-memory backend keeps nothing).
  - Shared flushes: transactions that wait at the same time may be committed together. Each is still all or nothing
    by itself, in some order; a later one sees the events of an earlier one before those are durable. Should the
    commit fail then, it fails for all of them.

**Futures.** `submit` is `transact` for event loops: it returns at once, with a future of what `transact` would have
returned or raised. It happens whether or not anybody waits for it: the future cannot be called off. What is hung on the
future may run in the thread that writes, so it must be quick (`asyncio.wrap_future` is).

**When transact raises**, nothing was acknowledged, and:
  - the exception of `work`, or any `JournalError` but the last: nothing was written.
  - `OutcomeUnknownError`: the disk refused the flush, or the server went away in the middle of the commit and did not
    come back in time. All of it was written or none: look the key up (`find`) before you try again. After a refused
    flush the journal takes no more transactions until it is opened anew.

**States in memory.** `work` usually advances a state that is kept between transactions, and the commit may fail after
it did. So a state carries the `Head` that it stands for, and the rule is one comparison at the start of `work`: where
the state's head is `transaction.head`, go on. Where it is an earlier head of the same chain (`transaction.follows`),
catch up by reading the events after it. Otherwise throw the state away and rebuild it. Nothing else is needed after
a failed commit, a lost connection, or another process's events. Nothing may leave the process (a reply, a metric)
before `transact` has returned.

**Attachments** are large bytes beside the chain, such as snapshots, named by their SHA-256: `attach` returns the name,
which an event's payload should hold, so that the chain vouches for them. They only ever save time: `attachment` gives
None for one that is missing or damaged, and whoever asks must then be able to do without. `detach` removes one.

**Reading** (`names`, `head`, `read`, `find`, `latest`, `attachment`) is allowed at any time, from any thread, and sees
durable events only. `read` streams in bounded memory, holds no lock between pages, and ends at the head of the moment
when it reaches it. Inside a transaction the same methods see the transaction's own events too.

**Damage.** Every event that is read is checked against its hash and its neighbour, and the head against its event:
`JournalCorruptedError` names the first that is wrong (`verify=False` reads on, for audits). A journal that cannot be
opened as asked raises `JournalNotFoundError`, `JournalBusyError`, `JournalReadOnlyError`, `JournalSchemaError` or
`JournalCorruptedError`, and is left as it was.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import Self, TypeVar

from surefoot.errors import JournalBusyError, JournalConflictError, JournalNotFoundError
from surefoot.journal.events import START, Event, Head, next_event, verified

T = TypeVar("T")
PAGE = 256


class View(ABC):
    """What can be read of one experiment."""

    name: str

    @property
    @abstractmethod
    def head(self) -> Head:
        """Number and hash of the newest event."""

    @abstractmethod
    def page(self, after: int, limit: int) -> list[Event]:
        """Up to `limit` events with numbers above `after`, in order, unchecked."""

    @abstractmethod
    def find(self, key: str) -> Event | None:
        """The event that carries this key."""

    def find_all(self, keys: Iterable[str]) -> dict[str, Event]:
        """The events that carry these keys, by their keys."""
        return {key: event for key in keys if (event := self.find(key)) is not None}

    @abstractmethod
    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""

    @abstractmethod
    def attachment(self, digest: str) -> bytes | None:
        """The attachment of this name; None where it is missing or damaged."""

    def read(self, after: int = 0, *, limit: int | None = None, verify: bool = True) -> Iterator[Event]:
        """Events with numbers above `after`, in order, `limit` of them at most."""
        events = self._stream(after, limit)
        return verified(self.name, events, after=START if after == 0 else None) if verify else events

    def follows(self, head: Head) -> bool:
        """Whether `head` is a head that this chain once had, so that a state at it can catch up."""
        if head.number == 0 or head == self.head:
            return head in (START, self.head)
        found = self.page(head.number - 1, 1)
        return bool(found) and found[0].head == head

    def _stream(self, after: int, limit: int | None) -> Iterator[Event]:
        while limit is None or limit > 0:
            page = self.page(after, PAGE if limit is None else min(PAGE, limit))
            yield from page
            if not page:
                return
            after = page[-1].number
            limit = None if limit is None else limit - len(page)


class Transaction(View):
    """What `work` is given: the experiment as it truly stands, and the means to append to it."""

    def append(self, kind: str, payload: bytes, *, time: float, key: str | None = None) -> Event:
        """Append an event; it is durable when `transact` returns."""
        event = next_event(self.name, self.head, kind=kind, payload=payload, time=time, key=key)
        if key is not None and (found := self.find(key)) is not None:
            raise JournalConflictError(
                f"A key must be used once in an experiment, but event {found.number} ({found.kind}) of {self.name!r} "
                f"has {key=} already. Look it up with `find` before you append."
            )
        self._write(event)
        return event

    @abstractmethod
    def attach(self, data: bytes) -> str:
        """Keep bytes beside the chain, and return the SHA-256 they are found by; twice the same is once."""

    @abstractmethod
    def detach(self, digest: str) -> None:
        """Remove an attachment, if it is there."""

    @abstractmethod
    def _write(self, event: Event) -> None:
        """Store the event and move the head."""


class Journal(ABC):
    """Experiments and their events; see the contract at the top of this module."""

    @abstractmethod
    def create(self, name: str, payload: bytes, *, time: float) -> Event:
        """Begin an experiment with a durable event of kind "created"; `JournalConflictError` where it exists."""

    @abstractmethod
    def transact(self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = ()) -> T:
        """Run `work` alone on the experiment, make what it appended durable, and return what it returned.

        `keys` are those that `work` is going to look up, as far as they are known.
        """

    def submit(
        self, name: str, work: Callable[[Transaction], T], *, keys: Sequence[str] = (), executor: Executor
    ) -> "Future[T]":
        """`transact` as a future, for event loops. A journal that has no thread of its own runs it in `executor`."""
        return executor.submit(self.transact, name, work, keys=keys)

    @abstractmethod
    def names(self) -> list[str]:
        """The experiments, sorted by code point."""

    @abstractmethod
    def view(self, name: str) -> View:
        """The experiment's durable events; `JournalNotFoundError` where there is no such experiment."""

    @abstractmethod
    def close(self) -> None:
        """Finish what is waiting, and let go of files and connections. Closing twice is fine."""

    def head(self, name: str) -> Head:
        """Number and hash of the experiment's newest event."""
        return self.view(name).head

    def read(self, name: str, after: int = 0, *, limit: int | None = None, verify: bool = True) -> Iterator[Event]:
        """Events of the experiment with numbers above `after`, streamed in order."""
        return self.view(name).read(after, limit=limit, verify=verify)

    def find(self, name: str, key: str) -> Event | None:
        """The event of the experiment that carries this key."""
        return self.view(name).find(key)

    def latest(self, name: str, kind: str) -> Event | None:
        """The newest event of this kind in the experiment."""
        return self.view(name).latest(kind)

    def attachment(self, name: str, digest: str) -> bytes | None:
        """The attachment of this name in the experiment; None where it is missing or damaged."""
        return self.view(name).attachment(digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def not_found(name: str) -> JournalNotFoundError:
    """The error for an experiment that does not exist."""
    return JournalNotFoundError(f"The journal has no experiment {name!r}; `names()` lists those it has.")


def taken(name: str) -> JournalConflictError:
    """The error for an experiment that exists already."""
    return JournalConflictError(f"An experiment's name must be new, but {name!r} exists already: open it instead.")


def refuse_nesting(owner: int) -> None:
    """Transactions do not nest: the inner one would wait for the outer one for ever."""
    if owner == threading.get_ident():
        raise JournalBusyError("`work` must not start a transaction of its own: append to the one that it was given.")
