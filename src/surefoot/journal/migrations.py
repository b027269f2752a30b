"""The tables, as numbered steps: a journal of any older version is brought to today's when it is opened for writing.

A step, once released, is never edited: a change of the tables is a new step at the end of the list.
"""

from typing import NamedTuple

from surefoot.errors import JournalSchemaError
from surefoot.journal.sql import Query


class Step(NamedTuple):
    """What leads from one version to the next, for each database."""

    sqlite: tuple[str, ...]
    postgres: tuple[str, ...]


def _tables(*, key: str, text: str, number: str, real: str, data: str) -> tuple[str, ...]:
    return (
        f"CREATE TABLE experiments (id {key}, name {text} NOT NULL UNIQUE, number {number} NOT NULL, "
        f"hash {text} NOT NULL)",
        f"CREATE TABLE events (experiment {number} NOT NULL REFERENCES experiments (id), number {number} NOT NULL, "
        f"kind {text} NOT NULL, time {real} NOT NULL, payload {data} NOT NULL, key {text}, "
        f"previous {text} NOT NULL, hash {text} NOT NULL, PRIMARY KEY (experiment, number))",
        "CREATE UNIQUE INDEX events_by_key ON events (experiment, key) WHERE key IS NOT NULL",
        "CREATE INDEX events_by_kind ON events (experiment, kind, number)",
        f"CREATE TABLE attachments (experiment {number} NOT NULL REFERENCES experiments (id), "
        f"digest {text} NOT NULL, data {data} NOT NULL, PRIMARY KEY (experiment, digest))",
    )


def _private(*, text: str, number: str, data: str, rest: str = "") -> tuple[str, ...]:
    return (
        f"CREATE TABLE private (experiment {number} NOT NULL REFERENCES experiments (id), number {number} NOT NULL, "
        f"alias {text}, person {text}, salt {data} NOT NULL, text {data} NOT NULL, PRIMARY KEY (experiment, number))"
        f"{rest}",
        "CREATE UNIQUE INDEX private_by_alias ON private (experiment, alias) WHERE alias IS NOT NULL",
        "CREATE INDEX private_by_person ON private (experiment, person) WHERE person IS NOT NULL",
    )


STEPS = (
    Step(
        sqlite=_tables(key="INTEGER PRIMARY KEY", text="TEXT", number="INTEGER", real="REAL", data="BLOB"),
        postgres=_tables(
            key="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            text='TEXT COLLATE "C"',  # by bytes, as SQLite compares
            number="BIGINT",
            real="DOUBLE PRECISION",
            data="BYTEA",
        ),
    ),
    Step(
        # Found by its number, it is written once, and not once more in an index.
        sqlite=_private(text="TEXT", number="INTEGER", data="BLOB", rest=" WITHOUT ROWID"),
        postgres=_private(text='TEXT COLLATE "C"', number="BIGINT", data="BYTEA"),
    ),
)
WITH_PRIVATE = 2  # the first version that keeps private texts
NEWEST = len(STEPS)


def migrate(query: Query, *, dialect: str) -> None:
    """Bring the tables to the newest version, inside the caller's transaction."""
    # It counts the steps, and so cannot be one.
    query("CREATE TABLE IF NOT EXISTS schema (version INTEGER NOT NULL PRIMARY KEY)", ())
    version = check_version(query, "written")
    for number, step in enumerate(STEPS[version:], start=version + 1):
        for statement in getattr(step, dialect):
            query(statement, ())
        query("INSERT INTO schema (version) VALUES (?)", (number,))


def check_version(query: Query, use: str) -> int:
    """The version of the tables; an error where this surefoot is too old for them."""
    version = int(query("SELECT COALESCE(MAX(version), 0) FROM schema", ())[0][0])
    if version > NEWEST:
        raise JournalSchemaError(
            f"A journal can be {use} up to version {NEWEST} of its tables, but this one has version {version}: "
            "a newer surefoot made it. Upgrade surefoot."
        )
    return version


def check_readable(query: Query) -> int:
    """The version of the tables, of any that a reader knows: it may not migrate them."""
    version = check_version(query, "read")
    if version < 1:
        raise JournalSchemaError(
            f"A reader needs the tables of a journal, but this one has version {version} of them. "
            "Open it once for writing, which brings it up to date."
        )
    return version
