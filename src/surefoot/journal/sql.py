"""Events in SQL tables: the statements that SQLite and PostgreSQL share, written once.

A backend brings `query`, which runs a statement with `?` for its values and returns all rows; connections, locks and
commits are its own. Statements for many rows or keys come in sizes that are powers of two, so that a database prepares
each of them once.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from surefoot.errors import JournalCorruptedError, JournalSchemaError
from surefoot.journal.contract import Transaction, View, not_found, taken
from surefoot.journal.events import JOURNAL, START, Event, Head, next_event, verified
from surefoot.journal.private_text import ALIAS, PrivateText, by_alias

Query = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
Statement: TypeAlias = tuple[str, tuple[object, ...]]  # with `?` for its values, and these
VERSION = 1  # of the tables; docs/journal.md says what a new one promises
COLUMNS = "number, kind, time, payload, key, previous, hash"

FIND = "SELECT id FROM experiments WHERE name = ?"
# The head is kept beside the events, so that a chain whose last events went missing is known to be too short.
HEAD = """
SELECT experiments.number, experiments.hash, events.hash FROM experiments
LEFT JOIN events ON events.experiment = experiments.id AND events.number = experiments.number
WHERE experiments.id = ?
"""
PAGE = f"SELECT {COLUMNS} FROM events WHERE experiment = ? AND number > ? ORDER BY number LIMIT ?"
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
NAMES = f"SELECT name FROM experiments WHERE name <> '{JOURNAL}' ORDER BY name"
EXPERIMENTS = "SELECT id, name, number FROM experiments"
MOST_AT_ONCE = 64  # keys or rows in one statement: no database refuses so many
PROBED_AT_ONCE = 32
STUCK_SECONDS = 15.0  # a lock held so long, while nothing is appended, is nobody's who writes


def tables(*, id_: str, text: str, integer: str, real: str, data: str, private: str = "") -> tuple[str, ...]:
    """The statements that make the tables, of these types; `private` follows the table of private texts."""
    experiment = f"experiment {integer} NOT NULL REFERENCES experiments (id)"
    return (
        f"CREATE TABLE schema (version {integer} NOT NULL PRIMARY KEY)",
        f"CREATE TABLE experiments (id {id_}, name {text} NOT NULL UNIQUE, number {integer} NOT NULL, "
        f"hash {text} NOT NULL)",
        f"CREATE TABLE events ({experiment}, number {integer} NOT NULL, kind {text} NOT NULL, time {real} NOT NULL, "
        f"payload {data} NOT NULL, key {text}, previous {text} NOT NULL, hash {text} NOT NULL, "
        "PRIMARY KEY (experiment, number))",
        "CREATE UNIQUE INDEX events_by_key ON events (experiment, key) WHERE key IS NOT NULL",
        "CREATE INDEX events_by_kind ON events (experiment, kind, number)",
        f"CREATE TABLE attachments ({experiment}, digest {text} NOT NULL, data {data} NOT NULL, "
        "PRIMARY KEY (experiment, digest))",
        f"CREATE TABLE private ({experiment}, number {integer} NOT NULL, alias {text}, person {text}, "
        f"salt {data} NOT NULL, text {data} NOT NULL, PRIMARY KEY (experiment, number)){private}",
        "CREATE UNIQUE INDEX private_by_alias ON private (experiment, alias) WHERE alias IS NOT NULL",
        "CREATE INDEX private_by_person ON private (experiment, person) WHERE person IS NOT NULL",
        f"INSERT INTO schema (version) VALUES ({VERSION})",
    )


def check_version(query: Query) -> None:
    """Refuse tables that this surefoot does not know."""
    version = query("SELECT COALESCE(MAX(version), 0) FROM schema", ())[0][0]
    if version != VERSION:
        raise JournalSchemaError(
            f"A journal's tables must be of version {VERSION}, but these are of version {version}: another surefoot "
            "made them. Open the journal with that one, or upgrade this one."
        )


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

    def __init__(self, name: str, query: Query, *, lock: str = "") -> None:
        refuse_name(name)
        rows = query(FIND + lock, (name,))
        if not rows:
            raise not_found(name)
        self.name, self.id, self._query = name, int(rows[0][0]), query

    @property
    def head(self) -> Head:
        """The head that was written beside the events, which must be their last."""
        rows = self._query(HEAD, (self.id,))
        number, kept, last = rows[0] if rows else (0, "", None)
        if kept != last:
            raise JournalCorruptedError(
                f"The chain of {self.name!r} must end with event {number}, hash {kept!r:.14}..., but that event is "
                f"{'missing' if last is None else 'another one'}. Restore a backup; `surefoot audit` tells more."
            )
        return Head(number, kept)

    def page(self, after: int, limit: int) -> list[Event]:
        """One page of events."""
        return [_event(self.name, row) for row in self._query(PAGE, (self.id, after, limit))]

    def find(self, key: str) -> Event | None:
        """The event that carries this key, or has this alias."""
        return self.find_all([key]).get(key)

    def find_all(self, keys: Iterable[str]) -> dict[str, Event]:
        """The events that carry these keys, with one statement for many of them."""
        events = dict[str, Event]()
        for statement, values in self.lookups(self.id, keys):
            for row in self._query(statement, values):
                (event,) = verified(self.name, [_event(self.name, row[-7:])])
                # An alias comes before the event that it is of.
                events[by_alias(row[0]) if len(row) > 7 else str(event.key)] = event
        return events

    @classmethod
    def lookups(cls, experiment: int, keys: Iterable[str]) -> list[Statement]:
        """The statements by which `find_all` looks for these keys.

        Each has a power of two of them, filled up with a key that finds nothing more.
        """
        aliases, plain, statements = list[str](), list[str](), list[Statement]()
        for key in keys:
            if key.removeprefix(ALIAS).isprintable():  # no event can carry another, and PostgreSQL refuses some of them
                (aliases if key.startswith(ALIAS) else plain).append(key.removeprefix(ALIAS))
        size = cls._at_once(MOST_AT_ONCE, 1)
        for find, texts in ((find_aliases, aliases), (find_many, plain)):
            for at in range(0, len(texts), size):
                part = texts[at : at + size]
                part += part[:1] * ((1 << (len(part) - 1).bit_length()) - len(part))
                statements.append((find(len(part)), (experiment, *part)))
        return statements

    def private(self, number: int) -> PrivateText | None:
        """The private text of an event."""
        rows = self._query(PRIVATE, (self.id, number))
        return _text(*rows[0]) if rows else None

    def privates(self, after: int, limit: int) -> list[tuple[int, PrivateText]]:
        """One page of private texts."""
        return [(int(number), _text(*row)) for number, *row in self._query(PRIVATES, (self.id, after, limit))]

    def about(self, person: str, *, newest: int | None = None) -> list[int]:
        """The events about a person."""
        rows = self._query(ABOUT, (self.id, person, newest or EVERY)) if person.isprintable() else []
        return sorted(int(number) for (number,) in rows)

    def strays(self) -> list[int]:
        """Rows of events and texts that no reader in order comes by."""
        rows = self._query(STRAY_EVENTS, (self.id,)) + self._query(STRAY_TEXTS, (self.id, self.id))
        return [int(number) for (number,) in rows]

    def latest(self, kind: str) -> Event | None:
        """The newest event of this kind."""
        return next(iter(self.newest_of(kind, 1)), None)

    def newest_of(self, kind: str, limit: int) -> list[Event]:
        """The newest events of a kind, by an index."""
        rows = self._query(NEWEST_OF, (self.id, kind, limit)) if kind.isprintable() else []
        return [event for row in rows for event in verified(self.name, [_event(self.name, row)])]

    def attachment(self, digest: str) -> bytes | None:
        """The attachment, if it still has the hash that it is named by."""
        rows = self._query(ATTACHMENT, (self.id, digest))
        # SQLite keeps what type it is given: a damaged row may hold text.
        data = bytes(rows[0][0]) if rows and not isinstance(rows[0][0], str) else None
        return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None

    def remove(self) -> None:
        """Delete everything of this experiment."""
        for table in ("private", "attachments", "events"):
            self._query(f"DELETE FROM {table} WHERE experiment = ?", (self.id,))
        self._query("DELETE FROM experiments WHERE id = ?", (self.id,))

    def keep(self, staged: Transaction, write: Query | None = None, *, has_rows: bool = False) -> None:
        """Write what transactions gathered, and move the head; by `write` where that is another way than to read.

        `has_rows` says that its events and texts are written already.
        """
        write = write or self._query
        if not has_rows:
            self._keep_events(staged.events, write)
            self._keep_texts(staged.texts, write)
        if staged.events:
            write(MOVE_HEAD, (*staged.head, self.id))
        for digest, data in staged.attachments.items():
            write(DETACH, (self.id, digest))  # what is stored under this name may be damaged
            if data is not None:
                write(ATTACH, (self.id, digest, data))

    def _keep_events(self, events: list[Event], write: Query) -> None:
        while events:
            count = self._at_once(len(events), 8)
            _insert(write, self.id, events[:count])
            events = events[count:]

    def _keep_texts(self, texts: dict[int, PrivateText | None], write: Query) -> None:
        new = list[tuple[int, PrivateText]]()
        for number, text in texts.items():
            if text is None:  # first, for an alias that is erased may be used again at once
                write(ERASE, (self.id, number))
            else:
                new.append((number, text))
        while new:
            count = self._at_once(len(new), 6)
            values: list[object] = []
            for number, text in new[:count]:
                values += (self.id, number, text.alias, text.person, text.salt, text.text)
            write(insert_texts(count), values)
            new = new[count:]

    @classmethod
    def _at_once(cls, rows: int, values: int) -> int:
        """How many rows of so many values one statement takes: a power of two."""
        return 1 << (min(rows, MOST_AT_ONCE, cls.most_values // values).bit_length() - 1)


def refuse_name(name: str) -> None:
    """Refuse a name that no experiment can have, before a database is asked for it, which may not take it."""
    if not name.isprintable():
        raise not_found(name)


def create(query: Query, name: str, payload: bytes, time: float) -> Event:
    """Write an experiment and its first event."""
    event = next_event(name, START, kind="created", payload=payload, time=time)
    rows = query(NEW, (name, *event.head))
    if not rows:
        raise taken(name)
    _insert(query, rows[0][0], [event])
    return event


def append_probe(query: Query, experiment: "ExperimentRow") -> None:
    """Write an event that is to be rolled back: whether the experiment takes events."""
    query(insert_many(1), (experiment.id, experiment.number + 1, "probe", 0.0, b"", None, "", ""))


class ExperimentRow(NamedTuple):
    """An experiment's row: its id, name and newest event."""

    id: int
    name: str
    number: int


class Probe:
    """Which experiments a probe tries next, and which of them take no events while others do.

    A few at a time, so that a journal of thousands is not held up; those that refused, or were locked, every time.
    """

    def __init__(self) -> None:
        self._after, self._refusing = 0, dict[str, str]()
        self._willing = 0  # one that took an event: if that refuses too, it is the journal
        self._locked: dict[int, tuple[int, float]] = {}  # newest event, and since when that is so

    def choose(self, rows: Iterable[Sequence[Any]]) -> list[ExperimentRow]:
        """The experiments whose turn it is, of all that there are."""
        known = sorted(ExperimentRow(*row) for row in rows)
        self._refusing = {row.name: self._refusing[row.name] for row in known if row.name in self._refusing}
        self._locked = {row.id: self._locked[row.id] for row in known if row.id in self._locked}
        start = next((at for at, row in enumerate(known) if row.id > self._after), 0)
        turn = (known[start:] + known[:start])[:PROBED_AT_ONCE]
        self._after = turn[-1].id if turn else 0
        again = [
            row for row in known if row.name in self._refusing or row.id in self._locked or row.id == self._willing
        ]
        return sorted({*turn, *again})

    def note(
        self,
        tried: Sequence[ExperimentRow],
        refusals: Mapping[str, BaseException],
        locked: Sequence[ExperimentRow] = (),
    ) -> dict[str, str]:
        """Take in what came of them; why each experiment that takes no events now does not.

        Where all refuse, it is the journal: the first refusal is raised.
        """
        if refusals and len(refusals) == len(tried):
            raise next(iter(refusals.values()))
        now = monotonic()
        for row in tried:
            self._refusing.pop(row.name, None)
            self._locked.pop(row.id, None)
            if row.name not in refusals:
                self._willing = row.id
        self._refusing.update({name: str(error) for name, error in refusals.items()})
        for row in locked:
            number, since = self._locked.get(row.id, (row.number, now))
            self._locked[row.id] = (row.number, since if number == row.number else now)
            held = now - self._locked[row.id][1]
            if held > STUCK_SECONDS:
                self._refusing[row.name] = f"Somebody has held its lock for {held:.0f} s, and wrote nothing."
            else:
                self._refusing.pop(row.name, None)
        return dict(self._refusing)


def _insert(query: Query, experiment: int, events: Sequence[Event]) -> None:
    values: list[object] = []
    for each in events:
        values += (experiment, each.number, each.kind, each.time, each.payload, each.key, each.previous, each.hash)
    query(insert_many(len(events)), values)


def _text(alias: str | None, person: str | None, *parts: Any) -> PrivateText:
    # SQLite keeps what type it is given: a text that was edited by hand is still one to compare.
    salt, text = (part.encode() if isinstance(part, str) else bytes(part) for part in parts)
    return PrivateText(alias, person, salt, text)


def _event(name: str, row: tuple[Any, ...]) -> Event:
    number, kind, time, payload, key, previous, digest = row
    try:
        payload = payload if isinstance(payload, bytes) else str(payload).encode()
        return Event(int(number), str(kind), float(time), payload, key, str(previous), str(digest))
    except (TypeError, ValueError) as error:
        raise JournalCorruptedError(f"Event {number!r} of {name!r} is not an event any more: {error}.") from error
