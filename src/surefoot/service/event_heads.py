"""Receipts: where a chain stood when an answer was given, which whoever keeps it can hold against the journal later."""

import msgspec

from surefoot.journal import Head


class EventHead(msgspec.Struct, frozen=True):
    """A receipt: number and hash of an event. The hash vouches for everything up to it: `surefoot audit --expect`."""

    number: int
    hash: str


class NamedHead(msgspec.Struct, frozen=True, omit_defaults=True):
    """A head and the experiment that it is of, as it is kept outside of the journal.

    signature: Ed25519, over the other fields, where the server has a key
    """

    experiment: str
    number: int
    hash: str
    time: float
    signature: str = ""


def event_head(head: Head | None) -> EventHead | None:
    """A head as the API tells it."""
    return None if head is None else EventHead(*head)
