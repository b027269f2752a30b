"""The hash chain, checked with nothing but SHA-256: no event edited, dropped, doubled or moved.

An event's hash is taken of eight parts joined by newlines: the format's name, the experiment's name, the event's
number, kind, key, time (hexadecimal), the hash of the event before, and the payload.
"""

import hashlib

from surefoot.audit.findings import Findings
from surefoot.journal.events import Event, Head

FORMAT = "surefoot-event/1"
NOTHING = "0" * 64


class HashChain:
    """Follows a chain from its first event; after a break it goes on from there, so that each break is named."""

    def __init__(self, name: str, findings: Findings) -> None:
        self._name, self._findings = name, findings
        self.head = Head(0, NOTHING)

    def follow(self, event: Event) -> None:
        """Check one event against the one before, and against its own hash."""
        last = self.head.number
        if event.number != last + 1:
            self._findings.add(event.number, "number", f"it comes after event {last}: {_gap(last, event.number)}")
        elif event.previous != self.head.hash:
            text = f"it does not follow event {last} as that one is now: one of the two was changed or replaced"
            self._findings.add(event.number, "previous", text)
        if event.hash != digest(self._name, event):
            text = f"this {event.kind} is not what its hash was taken of: it was edited"
            self._findings.add(event.number, "hash", text)
        self.head = Head(event.number, event.hash)

    def end(self, head: Head) -> None:
        """Check the end of the chain against the head that is kept beside it."""
        if head.number != self.head.number:
            text = f"the journal says that event {head.number} is its last, but events end with {self.head.number}"
            self._findings.add(head.number, "head", text)
        elif head != self.head:
            self._findings.add(head.number, "head", "this event is not the one that the journal says is its last")


def digest(name: str, event: Event) -> str:
    """The hash that this event must have."""
    parts = (FORMAT, name, str(event.number), event.kind, event.key or "", event.time.hex(), event.previous)
    return hashlib.sha256("\n".join(parts).encode() + b"\n" + event.payload).hexdigest()


def _gap(last: int, number: int) -> str:
    if number <= last:
        return "doubled, or out of order"
    return f"event {last + 1} is missing" if number == last + 2 else f"events {last + 1} to {number - 1} are missing"
