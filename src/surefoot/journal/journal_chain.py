"""The journal's own chain: what happened to the journal as a whole, so that an experiment that was removed is missed.

Each experiment keeps a chain of its own, so that writers do not wait for each other, and nothing in one says that
another ever existed. So now and then the heads of all that have grown are written to one more chain, under a name of
its own. Whoever keeps its newest head outside has a receipt for every experiment.

kind     holds
created  nothing; always event 1
heads    `Heads`: where experiments stood that have grown since the last of these
restored `Restored`: an older copy took the journal's place
deleted  `Tombstone`: an experiment was removed, under the key `deleted:<name>`

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
from surefoot.journal.contract import Journal, Transaction
from surefoot.journal.events import JOURNAL, Event, Head, canonical

HEADS, RESTORED, DELETED = "heads", "restored", "deleted"


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
    _begin(journal, time)
    return journal.transact(JOURNAL, lambda transaction: transaction.append(kind, payload, time=time))


def _begin(journal: Journal, time: float) -> None:
    try:
        journal.view(JOURNAL)
    except JournalNotFoundError:
        with suppress(JournalConflictError):  # another process was quicker
            journal.create(JOURNAL, canonical({}), time=time)


def known_heads(events: Iterable[Event]) -> dict[str, dict[int, str]]:
    """Every head that the chain has noted: hashes by number, by experiment."""
    known: dict[str, dict[int, str]] = {}
    for event in events:
        if event.kind == HEADS:
            for name, (number, hash_) in msgspec.json.decode(event.payload, type=Heads).heads.items():
                known.setdefault(name, {})[number] = hash_
    return known


class Restored(msgspec.Struct):
    """That an older copy took the journal's place: by whose word, why, which heads are known to be lost.

    stood: the event at which each chain of the copy ended; {} in records of earlier versions
    """

    by: str
    reason: str
    lost: dict[str, tuple[int, str]] = {}
    stood: dict[str, int] = {}


def note_restored(journal: Journal, record: Restored, *, time: float) -> Head:
    """Write down that the journal was restored."""
    return append(journal, RESTORED, canonical(record), time=time).head


class GivenUp:
    """What restores have given up: chains went on from an earlier event, and what had come after it is gone."""

    def __init__(self, restores: Iterable[tuple[float, Restored]] = ()) -> None:
        self._restores = list(restores)

    def covers(self, name: str, head: Head, time: float) -> bool:
        """Whether a head that was given out at that time is one of those."""
        return any(_gives_up(record, when, name, head, time) for when, record in self._restores)


def _gives_up(record: Restored, when: float, name: str, head: Head, time: float) -> bool:
    if name not in record.lost:
        return False
    # Of a chain that went on, an event of that number can be a new one: what was given out later is of that.
    is_old = time <= when and record.stood.get(name, 0) <= head.number <= record.lost[name][0]
    return is_old or head == record.lost[name]


def given_up(journal: Journal) -> GivenUp:
    """What the restores of a journal have given up."""
    try:
        events = (event for event in journal.read(JOURNAL) if event.kind == RESTORED)
        return GivenUp((event.time, msgspec.json.decode(event.payload, type=Restored)) for event in events)
    except JournalNotFoundError:
        return GivenUp()


def lost_heads(journal: Journal, known: Mapping[str, Head]) -> dict[str, Head]:
    """Of heads that were known outside, those that the journal neither has nor has a tombstone for."""
    return {
        name: head for name, head in known.items() if not (_has(journal, name, head) or _is_buried(journal, name, head))
    }


def _is_buried(journal: Journal, name: str, head: Head) -> bool:
    stone = None if name in journal.names() else tombstone(journal, name)
    return stone is not None and stone.covers(head)


def _has(journal: Journal, name: str, head: Head) -> bool:
    try:
        return journal.view(name).follows(head)
    except JournalNotFoundError:
        return False


class Tombstone(msgspec.Struct):
    """That an experiment was removed: where its chain stood, by whose word, why, and whether a copy was kept."""

    name: str
    number: int
    hash: str
    by: str
    reason: str
    is_archived: bool = False

    def covers(self, head: Head) -> bool:
        """Whether the chain that was removed can have had this head."""
        return head.number < self.number or head == (self.number, self.hash)


def bury(journal: Journal, record: Tombstone, *, time: float) -> None:
    """Remove an experiment and write its tombstone in one commit; its name is never used again."""
    _begin(journal, time)

    def note(transaction: Transaction) -> None:
        free = [key for key in _tombstone_keys(record.name) if transaction.find(key) is None]
        transaction.append(DELETED, canonical(record), time=time, key=free[-1] if free else None)

    journal.remove(record.name, head=Head(record.number, record.hash), note=note)


def tombstone(journal: Journal, name: str) -> Tombstone | None:
    """The newest tombstone of a name."""
    try:
        events = (journal.find(JOURNAL, key) for key in _tombstone_keys(name))
        event = next((event for event in events if event is not None), None)
    except JournalNotFoundError:
        return None
    return None if event is None else msgspec.json.decode(event.payload, type=Tombstone)


def tombstones(events: Iterable[Event]) -> dict[str, Tombstone]:
    """The newest tombstones of the chain, by name."""
    stones = (msgspec.json.decode(event.payload, type=Tombstone) for event in events if event.kind == DELETED)
    return {one.name: one for one in stones}


def _tombstone_keys(name: str) -> tuple[str, str]:
    """The newest first. Once a tombstone was written before the removal, which could be cut short and played past."""
    return f"{DELETED}-again:{name}", f"{DELETED}:{name}"
