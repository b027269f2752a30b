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
    power (as far as the disk is honest about flushes; the in-memory backend keeps nothing).
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
    flush the journal opens its file again by itself before the next transaction, and refuses that as long as it cannot.

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

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import Self, TypeVar

from surefoot.errors import JournalBusyError, JournalConflictError, JournalNotFoundError, JournalReadOnlyError
from surefoot.journal.events import Event, Head
from surefoot.journal.view import Transaction as Transaction
from surefoot.journal.view import View as View

T = TypeVar("T")


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
        """The time by the journal's own clock, in seconds since 1970; None where it has none."""
        return None

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
