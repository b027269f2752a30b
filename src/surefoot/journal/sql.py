"""Events in SQL tables: the statements that SQLite and PostgreSQL share, written once.

A backend brings `query`, which runs a statement with `?` for its values and returns all rows; connections, locks and
commits are its own. Statements for many rows or keys come in sizes that are powers of two, so that a database prepares
each of them once.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Self, TypeAlias

from surefoot.errors import JournalCorruptedError
from surefoot.journal.contract import View, not_found, taken
from surefoot.journal.events import JOURNAL, START, Event, Head, next_event, verified
from surefoot.journal.private_text import ALIAS, PrivateText, by_alias
from surefoot.journal.staged import StagedTransaction

Query = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
Question: TypeAlias = tuple[str, tuple[object, ...]]  # a statement with `?` for its values, and these
COLUMNS = "number, kind, time, payload, key, previous, hash"

FIND = "SELECT id FROM experiments WHERE name = ?"
# The head is kept beside the events, so that a chain whose last events went missing is known to be too short.
HEAD = """
SELECT experiments.number, experiments.hash, events.hash FROM experiments
LEFT JOIN events ON events.experiment = experiments.id AND events.number = experiments.number
WHERE experiments.id = ?
"""
PAGE = f"SELECT {COLUMNS} FROM events WHERE experiment = ? AND number > ? ORDER BY number LIMIT ?"
LATEST = f"SELECT {COLUMNS} FROM events WHERE experiment = ? AND kind = ? ORDER BY number DESC LIMIT 1"
NEWEST_OF = f"SELECT {COLUMNS} FROM events WHERE experiment = ? AND kind = ? ORDER BY number DESC LIMIT ?"
# No error where the name is taken: in PostgreSQL an error would end the whole transaction.
NEW = "INSERT INTO experiments (name, number, hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"
MOVE_HEAD = "UPDATE experiments SET number = ?, hash = ? WHERE id = ?"
ATTACH = "INSERT INTO attachments (experiment, digest, data) VALUES (?, ?, ?)"
ATTACHMENT = "SELECT data FROM attachments WHERE experiment = ? AND digest = ?"
DETACH = "DELETE FROM attachments WHERE experiment = ? AND digest = ?"
# Byte order, as Python sorts: the columns are compared by their bytes in both databases.
PRIVATE = "SELECT alias, person, salt, text FROM private WHERE experiment = ? AND number = ?"
PRIVATES = (
    "SELECT number, alias, person, salt, text FROM private WHERE experiment = ? AND number > ? ORDER BY number LIMIT ?"
)
ABOUT = "SELECT number FROM private WHERE experiment = ? AND person = ? ORDER BY number DESC LIMIT ?"
EVERY = 2**62  # a limit that is none
ERASE = "DELETE FROM private WHERE experiment = ? AND number = ?"
STRAY_EVENTS = "SELECT number FROM events WHERE experiment = ? AND number < 1 ORDER BY number"
# One statement, which sees texts and head of one moment.
STRAY_TEXTS = """
SELECT number FROM private WHERE experiment = ?
AND (number < 1 OR number > (SELECT number FROM experiments WHERE id = ?)) ORDER BY number
"""
OF_EXPERIMENT = ("private", "attachments", "events")
NAMES = f"SELECT name FROM experiments WHERE name <> '{JOURNAL}' ORDER BY name"
MOST_AT_ONCE = 64  # keys or rows in one statement: no database refuses so many


@cache
def find_many(count: int) -> str:
    """The statement that looks up so many keys."""
    return f"SELECT {COLUMNS} FROM events WHERE experiment = ? AND key IN ({', '.join('?' * count)})"


@cache
def find_aliases(count: int) -> str:
    """The statement that looks up so many aliases."""
    columns = ", ".join(f"events.{name}" for name in COLUMNS.split(", "))
    return (
        f"SELECT private.alias, {columns} FROM private JOIN events ON events.experiment = private.experiment AND "
        f"events.number = private.number WHERE private.experiment = ? AND private.alias IN ({', '.join('?' * count)})"
    )


@cache
def insert_texts(count: int) -> str:
    """The statement that writes so many private texts."""
    rows = ", ".join(["(?, ?, ?, ?, ?, ?)"] * count)
    return f"INSERT INTO private (experiment, number, alias, person, salt, text) VALUES {rows}"


@cache
def insert_many(count: int) -> str:
    """The statement that writes so many events."""
    return f"INSERT INTO events (experiment, {COLUMNS}) VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?, ?)'] * count)}"


class SqlView(View):
    """An experiment's events, read through `query`."""

    most_values = 8 * MOST_AT_ONCE  # in one statement

    def __init__(self, name: str, query: Query, *, lock: str = "", has_private: bool = True) -> None:
        refuse_name(name)
        rows = query(FIND + lock, (name,))
        if not rows:
            raise not_found(name)
        self.name, self._query, self._id, self._has_private = name, query, rows[0][0], has_private

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
        """The event that carries this key, or has this alias."""
        return self.find_all([key]).get(key) if key.startswith(ALIAS) else self._one(find_many(1), key)

    def find_all(self, keys: Iterable[str]) -> dict[str, Event]:
        """The events that carry these keys, with one statement for many of them."""
        rows = [row for lookup in self.lookups(self._id, keys, self._has_private) for row in self._query(*lookup)]
        # An alias comes before the event that it is of.
        events = ((row[-7:], row[0] if len(row) > 7 else None) for row in rows)
        found = ((_event(self.name, row), alias) for row, alias in events)
        return {
            str(event.key) if alias is None else by_alias(alias): event
            for single, alias in found
            for event in verified(self.name, [single])
        }

    @classmethod
    def lookups(cls, experiment: int, keys: Iterable[str], has_private: bool = True) -> list[Question]:
        """The statements by which `find_all` looks for these keys."""
        texts = [key.removeprefix(ALIAS) for key in keys if has_private and key.startswith(ALIAS)]
        kinds = (find_aliases, texts), (find_many, [key for key in keys if not key.startswith(ALIAS)])
        return [
            (statement(len(part)), (experiment, *part))
            for statement, named in kinds
            for part in cls._parts([text for text in named if _is_possible(text)])
        ]

    def private(self, number: int) -> PrivateText | None:
        """The private text of an event."""
        rows = self._query(PRIVATE, (self._id, number)) if self._has_private else []
        return _text(*rows[0]) if rows else None

    def privates(self, after: int, limit: int) -> list[tuple[int, PrivateText]]:
        """One page of private texts."""
        rows = self._query(PRIVATES, (self._id, after, limit)) if self._has_private else []
        return [(int(number), _text(*row)) for number, *row in rows]

    def about(self, person: str, *, newest: int | None = None) -> list[int]:
        """The events about a person."""
        is_known = self._has_private and _is_possible(person)
        rows = self._query(ABOUT, (self._id, person, newest or EVERY)) if is_known else []
        return sorted(int(number) for (number,) in rows)

    def strays(self) -> list[int]:
        """Rows of events and texts that no reader in order comes by."""
        texts = self._query(STRAY_TEXTS, (self._id, self._id)) if self._has_private else []
        return [int(number) for (number,) in (*self._query(STRAY_EVENTS, (self._id,)), *texts)]

    def remove(self) -> None:
        """Delete everything of this experiment."""
        for table in OF_EXPERIMENT:
            self._query(f"DELETE FROM {table} WHERE experiment = ?", (self._id,))
        self._query("DELETE FROM experiments WHERE id = ?", (self._id,))

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return self._one(LATEST, kind)

    def newest_of(self, kind: str, limit: int) -> list[Event]:
        """The newest events of a kind, by an index."""
        rows = self._query(NEWEST_OF, (self._id, kind, limit)) if _is_possible(kind) else []
        events = (_event(self.name, row) for row in rows)
        return [event for single in events for event in verified(self.name, [single])]

    def attachment(self, digest: str) -> bytes | None:
        """The attachment, if it still has the hash that it is named by."""
        rows = self._query(ATTACHMENT, (self._id, digest))
        # SQLite keeps what type it is given: a damaged row may hold text.
        data = bytes(rows[0][0]) if rows and not isinstance(rows[0][0], str) else None
        return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None

    def keep(self, pending: StagedTransaction[Self], write: Query | None = None, *, has_rows: bool = False) -> None:
        """Write what a transaction gathered, and move the head; by `write` where that is another way than to read.

        `has_rows` says that its events and texts are written already.
        """
        write = write or self._query
        events = [] if has_rows else pending.events
        while events:
            count = self._at_once(len(events), 8)
            _insert(write, self._id, events[:count])
            events = events[count:]
        if pending.events:
            write(MOVE_HEAD, (*pending.head, self._id))
        if not has_rows:
            self._keep_texts(pending.texts, write)
        for digest, data in pending.attachments.items():
            write(DETACH, (self._id, digest))  # what is stored under this name may be damaged
            if data is not None:
                write(ATTACH, (self._id, digest, data))

    def _keep_texts(self, texts: dict[int, PrivateText | None], write: Query) -> None:
        # First, for an alias that is erased may be used again at once.
        for number in (number for number, text in texts.items() if text is None):
            write(ERASE, (self._id, number))
        new = [(number, text) for number, text in texts.items() if text is not None]
        while new:
            count = self._at_once(len(new), 6)
            values: list[object] = []
            for number, text in new[:count]:
                values += (self._id, number, text.alias, text.person, text.salt, text.text)
            write(insert_texts(count), values)
            new = new[count:]

    @classmethod
    def _at_once(cls, rows: int, values: int) -> int:
        """How many rows of so many values one statement takes: a power of two."""
        return 1 << (min(rows, MOST_AT_ONCE, cls.most_values // values).bit_length() - 1)

    @classmethod
    def _parts(cls, keys: list[str]) -> list[list[str]]:
        """Keys in parts for one statement each, whose size is a power of two: the same key again finds nothing more."""
        size = cls._at_once(MOST_AT_ONCE, 1)
        parts = [keys[at : at + size] for at in range(0, len(keys), size)]
        return [part + part[:1] * ((1 << (len(part) - 1).bit_length()) - len(part)) for part in parts]

    def _one(self, statement: str, value: str) -> Event | None:
        rows = self._query(statement, (self._id, value)) if _is_possible(value) else []
        return next(verified(self.name, [_event(self.name, rows[0])])) if rows else None


def refuse_name(name: str) -> None:
    """Refuse a name that no experiment can have, before a database is asked for it, which may not take it."""
    if not _is_possible(name):
        raise not_found(name)


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


def _text(alias: str | None, person: str | None, *parts: Any) -> PrivateText:
    # SQLite keeps what type it is given: a text that was edited by hand is still one to compare.
    salt, text = (part.encode() if isinstance(part, str) else bytes(part) for part in parts)
    return PrivateText(alias, person, salt, text)


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
