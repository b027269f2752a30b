"""Events: what happened, as bytes that anyone can check.

An experiment is a chain of events numbered from 1. Each carries the hash of the one before and its own, which covers
everything in it, so that no event can be edited, dropped or moved without breaking the chain at a number that can be
named. The hash is SHA-256 over eight parts joined by newlines (`fingerprint`), simple enough to recompute in any
language.

>>> first = next_event("shop", START, kind="created", payload=canonical({"alpha": 0.05}), time=0.0)
>>> second = next_event("shop", first.head, kind="decision", payload=canonical([1, 2]), time=1.5, key="d-1")
>>> second.number, second.previous == first.hash
(2, True)
>>> verify("shop", [first, second])
"""

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from surefoot.errors import InputError, JournalCorruptedError

FORMAT = "surefoot-event/1"
JOURNAL = "@journal"  # the name of the journal's own chain (`surefoot.journal.journal_chain`)
encode_sorted = msgspec.json.Encoder(order="sorted").encode  # `canonical`, where every number is known to be finite
LONGEST_NAME, LONGEST_KIND, LONGEST_KEY = 200, 50, 500


class Head(NamedTuple):
    """Where a chain stands: number and hash of its newest event. A state is always a state *at* a head.

    Attributes
    ----------
    number : int
        0 before the first event.
    hash : str
        64 hexadecimal digits, all 0 before the first event.

    Examples
    --------
    >>> START.number, START.hash[:8]
    (0, '00000000')
    """

    number: int
    hash: str


START = Head(0, "0" * 64)


# Without gc: it holds no references that could form a cycle, and there may be millions.
class Event(msgspec.Struct, frozen=True, gc=False):
    """One event of an experiment's chain.

    Attributes
    ----------
    number : int
        1, 2, 3, ... within its experiment.
    kind : str
        A word for what happened, such as "decision"; the journal does not interpret it.
    time : float
        Seconds since 1970, by the writer's clock.
    payload : bytes
        JSON, kept and hashed as it came.
    key : str or None
        Unique within the experiment; what a repeated request is found by.
    previous : str
        Hash of the event before, 64 zeros for the first.
    hash : str
        `fingerprint` of all of the above.

    Examples
    --------
    >>> event = next_event("shop", START, kind="created", payload=canonical({"alpha": 0.05}), time=0.0)
    >>> event.number, event.value()
    (1, {'alpha': 0.05})
    """

    number: int
    kind: str
    time: float
    payload: bytes
    key: str | None
    previous: str
    hash: str

    @property
    def head(self) -> Head:
        """The head of a chain that ends here."""
        return Head(self.number, self.hash)

    def value(self) -> Any:
        """The payload as plain Python data; `msgspec.json.decode(event.payload, type=...)` gives typed data."""
        return msgspec.json.decode(self.payload)


def canonical(value: object) -> bytes:
    """The one way to write a value as JSON: keys sorted, no blanks, shortest floats that read back to the bit.

    Parameters
    ----------
    value : object
        Plain data, or a msgspec struct.

    Returns
    -------
    bytes
        UTF-8 JSON.

    Raises
    ------
    InputError
        If a number is nan or infinite, which JSON cannot express.

    Examples
    --------
    >>> canonical({"b": 0.1, "a": [1, None]})
    b'{"a":[1,null],"b":0.1}'
    """
    encoded = encode_sorted(value)
    # JSON has no nan or inf, and the encoder writes null for them: only then is it worth looking.
    if b"null" in encoded and _has_infinite(msgspec.to_builtins(value)):
        raise InputError("A payload must hold finite numbers only, but has a nan or an inf, which JSON cannot express.")
    return encoded


def fingerprint(name: str, head: Head, *, kind: str, time: float, payload: bytes, key: str | None) -> str:
    """Hash of the event that follows `head`; the text parts hold no newline, so no two events read alike."""
    # An empty key is refused, so "" can stand for none; hex gives the float's bits in any language.
    parts = f"{FORMAT}\n{name}\n{head.number + 1}\n{kind}\n{key or ''}\n{time.hex()}\n{head.hash}\n"
    return hashlib.sha256(parts.encode() + payload).hexdigest()


def next_event(name: str, head: Head, *, kind: str, payload: bytes, time: float, key: str | None = None) -> Event:
    """The event that follows `head` in the experiment `name`."""
    if head.number == 0:
        # Later events of the chain come under a name that was checked here.
        check_text("name", name, LONGEST_NAME)
    check_text("kind", kind, LONGEST_KIND)
    if key is not None:
        check_text("key", key, LONGEST_KEY)
    if not math.isfinite(time):
        raise InputError(f"`time` must be finite seconds since 1970, but got {time!r}.")
    if not isinstance(payload, bytes):
        raise InputError(f"`payload` must be JSON bytes, as `canonical` writes them, but got {type(payload).__name__}.")
    time = float(time) + 0.0  # no -0.0, which a database may give back as 0.0
    digest = fingerprint(name, head, kind=kind, time=time, payload=payload, key=key)
    return Event(head.number + 1, kind, time, payload, key, head.hash, digest)


def check_text(what: str, text: str, longest: int) -> None:
    """Check a name, kind or key: printable and not too long, since every backend keeps it and every log shows it."""
    if not isinstance(text, str) or not text.isprintable() or not 0 < len(text) <= longest:
        raise InputError(f"`{what}` must be 1 to {longest} printable characters, but got {text!r:.80}.")


def verified(name: str, events: Iterable[Event], *, after: Head | None = None) -> Iterator[Event]:
    """Pass events on as long as they form one unbroken chain, from `after` if it is given."""
    for event in events:
        if after is None:
            after = Head(event.number - 1, event.previous)
        if (event.number, event.previous) != (after.number + 1, after.hash):
            raise JournalCorruptedError(_broken(name, event, f"does not follow event {after.number}"))
        if event.hash != _recomputed(name, event):
            raise JournalCorruptedError(_broken(name, event, "is not what its hash was taken of"))
        after = event.head
        yield event


def verify(name: str, events: Iterable[Event], *, after: Head = START) -> None:
    """Check that events form one unbroken chain.

    Parameters
    ----------
    name : str
        The experiment, which the hashes cover.
    events : iterable of Event
        The events, in order.
    after : Head
        Where the chain begins; by default at its start.

    Raises
    ------
    JournalCorruptedError
        At the first event that does not follow, or is not what its hash says.

    Examples
    --------
    >>> first = next_event("shop", START, kind="created", payload=b"{}", time=0.0)
    >>> verify("shop", [first])
    >>> verify("another shop", [first])
    Traceback (most recent call last):
    surefoot.errors.JournalCorruptedError: Events must form an unbroken chain, but event 1 ...
    """
    for _ in verified(name, events, after=after):
        pass


def _recomputed(name: str, event: Event) -> str:
    head = Head(event.number - 1, event.previous)
    return fingerprint(name, head, kind=event.kind, time=event.time, payload=event.payload, key=event.key)


def _broken(name: str, event: Event, how: str) -> str:
    return (
        f"Events must form an unbroken chain, but event {event.number} ({event.kind}) of {name!r} {how}. "
        "Something other than surefoot changed the journal: run `surefoot audit` on it, and restore a backup."
    )


def _has_infinite(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_infinite, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_infinite, value))
    return isinstance(value, float) and not math.isfinite(value)
