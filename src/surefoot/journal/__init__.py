"""What happened, durably: chains of events in memory, in a SQLite file, or on a PostgreSQL server."""

from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.journal.contract import Journal, Transaction, View
from surefoot.journal.events import START, Event, Head, canonical, verify

__all__ = ["START", "Event", "Head", "Journal", "Transaction", "View", "canonical", "open_journal", "verify"]


def open_journal(url: str | Path, *, read_only: bool = False) -> Journal:
    """Open the journal at `url`, and make it first where there is none.

    "memory:"                a new journal that lasts as long as the process
    a path, "sqlite:///..."  a SQLite file, with one process that writes and any number that read
    "postgresql://..."       a PostgreSQL server, with any number of processes that write

    With `read_only=True` nothing is made, locked or migrated, and a journal that does not exist is an error.
    """
    text = str(url)
    if text == "memory:":
        from surefoot.journal.in_memory import MemoryJournal

        return MemoryJournal()
    if text.startswith(("postgresql://", "postgres://")):
        from surefoot.journal.postgres import PostgresJournal

        return PostgresJournal(text, read_only=read_only)
    if "://" in text and not text.startswith("sqlite:///"):
        raise ConfigError(
            f"A journal is 'memory:', a path, 'sqlite:///path' or 'postgresql://...', but got {text.split('://')[0]!r}."
        )
    from surefoot.journal.sqlite import SqliteJournal

    return SqliteJournal(Path(text.removeprefix("sqlite:///")), read_only=read_only)
