"""The journal's own chain: what happened to the journal as a whole, so that an experiment that was removed is missed.

Each experiment keeps a chain of its own, so that writers do not wait for each other, and nothing in one says that
another ever existed. So now and then the heads of all that have grown are written to one more chain, under a name of
its own. Whoever keeps its newest head outside has a receipt for every experiment.

kind     holds
created  nothing; always event 1
heads    `Heads`: where experiments stood that have grown since the last of these

>>> from surefoot.journal import canonical, open_journal
>>> journal = open_journal("memory:")
>>> created = journal.create("shop", canonical({}), time=0.0)
>>> head = note_heads(journal, {"shop": created.head}, time=1.0)
>>> journal.names(), [event.kind for event in journal.read(JOURNAL)]
(['shop'], ['created', 'heads'])
>>> known_heads(journal.read(JOURNAL))["shop"] == {1: created.hash}
True
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from surefoot.errors import JournalConflictError, JournalNotFoundError
from surefoot.journal.contract import Journal
from surefoot.journal.events import JOURNAL, Event, Head, canonical

HEADS = "heads"


class Heads(msgspec.Struct):
    """Heads by experiment, as [number, hash]."""

    heads: dict[str, tuple[int, str]]


def note_heads(journal: Journal, heads: Mapping[str, Head], *, time: float) -> Head:
    """Write down where experiments stand; returns the head of the journal's own chain."""
    return append(
        journal, HEADS, canonical(Heads({name: (head.number, head.hash) for name, head in heads.items()})), time=time
    ).head


def append(journal: Journal, kind: str, payload: bytes, *, time: float) -> Event:
    """Append to the journal's own chain, and begin it first if there is none."""
    try:
        journal.view(JOURNAL)
    except JournalNotFoundError:
        with suppress(JournalConflictError):  # another process was quicker
            journal.create(JOURNAL, canonical({}), time=time)
    return journal.transact(JOURNAL, lambda transaction: transaction.append(kind, payload, time=time))


def known_heads(events: Iterable[Event]) -> dict[str, dict[int, str]]:
    """Every head that the chain has noted: hashes by number, by experiment."""
    known: dict[str, dict[int, str]] = {}
    for event in events:
        if event.kind == HEADS:
            for name, (number, hash_) in msgspec.json.decode(event.payload, type=Heads).heads.items():
                known.setdefault(name, {})[number] = hash_
    return known
