"""Events in SQL tables: the statements that SQLite and PostgreSQL share, written once.

A backend brings `query`, which runs a statement with `?` for its values and returns all rows; connections, locks and
commits are its own. Statements for many rows or keys come in sizes that are powers of two, so that a database prepares
each of them once.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Self

from surefoot.errors import JournalCorruptedError
from surefoot.journal.contract import View, not_found, taken
from surefoot.journal.events import JOURNAL, START, Event, Head, next_event, verified
from surefoot.journal.staged import StagedTransaction

Query = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
COLUMNS = "number, kind, time, payload, key, previous, hash"

# The head is kept beside the events, so that a chain whose last events went missing is known to be too short.
HEAD = """
SELECT experiments.number, experiments.hash, events.hash FROM experiments
LEFT JOIN events ON events.experiment = experiments.id AND events.number = experiments.number
WHERE experiments.id = ?
"""
PAGE = f"SELECT {COLUMNS} FROM events WHERE experiment = ? AND number > ? ORDER BY number LIMIT ?"
LATEST = f"SELECT {COLUMNS} FROM events WHERE experiment = ? AND kind = ? ORDER BY number DESC LIMIT 1"
# No error where the name is taken: in PostgreSQL an error would end the whole transaction.
NEW = "INSERT INTO experiments (name, number, hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"
MOVE_HEAD = "UPDATE experiments SET number = ?, hash = ? WHERE id = ?"
ATTACH = "INSERT INTO attachments (experiment, digest, data) VALUES (?, ?, ?)"
ATTACHMENT = "SELECT data FROM attachments WHERE experiment = ? AND digest = ?"
DETACH = "DELETE FROM attachments WHERE experiment = ? AND digest = ?"
# Byte order, as Python sorts: the columns are compared by their bytes in both databases.
NAMES = f"SELECT name FROM experiments WHERE name <> '{JOURNAL}' ORDER BY name"
MOST_AT_ONCE = 64  # keys or rows in one statement: no database refuses so many


@cache
def find_many(count: int) -> str:
    """The statement that looks up so many keys."""
    return f"SELECT {COLUMNS} FROM events WHERE experiment = ? AND key IN ({', '.join('?' * count)})"


@cache
def insert_many(count: int) -> str:
    """The statement that writes so many events."""
    return f"INSERT INTO events (experiment, {COLUMNS}) VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?, ?)'] * count)}"


class SqlView(View):
    """An experiment's events, read through `query`."""

    def __init__(self, name: str, query: Query, *, lock: str = "") -> None:
        rows = query(f"SELECT id FROM experiments WHERE name = ?{lock}", (name,))
        if not rows:
            raise not_found(name)
        self.name, self._query, self._id = name, query, rows[0][0]

    @property
    def head(self) -> Head:
        """The head that was written beside the events, which must be their last."""
        rows = self._query(HEAD, (self._id,))
        number, kept, found = rows[0] if rows else (0, "", None)
        if kept != found:
            raise JournalCorruptedError(
                f"The chain of {self.name!r} must end with event {number}, hash {kept!r:.14}..., but that event is "
                f"{'missing' if found is None else 'another one'}. Restore a backup; `surefoot audit` tells more."
            )
        return Head(number, kept)

    def page(self, after: int, limit: int) -> list[Event]:
        """One page of events."""
        return [_event(self.name, row) for row in self._query(PAGE, (self._id, after, limit))]

    def find(self, key: str) -> Event | None:
        """The event that carries this key."""
        return self._one(find_many(1), key)

    def find_all(self, keys: Iterable[str]) -> dict[str, Event]:
        """The events that carry these keys, with one statement for many of them."""
        wanted = [key for key in keys if _is_possible(key)]
        parts = [wanted[at : at + MOST_AT_ONCE] for at in range(0, len(wanted), MOST_AT_ONCE)]
        events = (_event(self.name, row) for part in parts for row in self._carrying(part))
        return {str(event.key): event for single in events for event in verified(self.name, [single])}

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return self._one(LATEST, kind)

    def attachment(self, digest: str) -> bytes | None:
        """The attachment, if it still has the hash that it is named by."""
        rows = self._query(ATTACHMENT, (self._id, digest))
        # SQLite keeps what type it is given: a damaged row may hold text.
        data = bytes(rows[0][0]) if rows and not isinstance(rows[0][0], str) else None
        return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None

    def keep(self, pending: StagedTransaction[Self]) -> None:
        """Write what a transaction gathered, and move the head."""
        events = pending.events
        while events:
            count = min(MOST_AT_ONCE, 1 << (len(events).bit_length() - 1))
            _insert(self._query, self._id, events[:count])
            events = events[count:]
        if pending.events:
            self._query(MOVE_HEAD, (*pending.head, self._id))
        for digest, data in pending.attachments.items():
            self._query(DETACH, (self._id, digest))  # what is stored under this name may be damaged
            if data is not None:
                self._query(ATTACH, (self._id, digest, data))

    def _one(self, statement: str, value: str) -> Event | None:
        rows = self._query(statement, (self._id, value)) if _is_possible(value) else []
        return next(verified(self.name, [_event(self.name, rows[0])])) if rows else None

    def _carrying(self, keys: list[str]) -> list[tuple[Any, ...]]:
        places = 1 << (len(keys) - 1).bit_length()
        # The same key again finds nothing more.
        padded = keys + keys[:1] * (places - len(keys))
        return self._query(find_many(places), (self._id, *padded))


def create(query: Query, name: str, payload: bytes, time: float) -> Event:
    """Write an experiment and its first event."""
    event = next_event(name, START, kind="created", payload=payload, time=time)
    rows = query(NEW, (name, *event.head))
    if not rows:
        raise taken(name)
    _insert(query, rows[0][0], [event])
    return event


def _insert(query: Query, experiment: int, events: Sequence[Event]) -> None:
    values: list[object] = []
    for each in events:
        values += (experiment, each.number, each.kind, each.time, each.payload, each.key, each.previous, each.hash)
    query(insert_many(len(events)), values)


def _is_possible(text: str) -> bool:
    """No event can carry an unprintable text, and PostgreSQL refuses some of them."""
    return text.isprintable()


def _event(name: str, row: tuple[Any, ...]) -> Event:
    number, kind, time, payload, key, previous, digest = row
    try:
        payload = payload if isinstance(payload, bytes) else str(payload).encode()
        return Event(int(number), str(kind), float(time), payload, key, str(previous), str(digest))
    except (TypeError, ValueError) as error:
        raise JournalCorruptedError(f"Event {number!r} of {name!r} is not an event any more: {error}.") from error
