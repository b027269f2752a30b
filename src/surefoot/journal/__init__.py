"""What happened, durably: chains of events in memory, in a file, in a SQLite file, or on a PostgreSQL server."""

from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.journal.address import parse
from surefoot.journal.contract import Journal, Transaction, View
from surefoot.journal.events import START, Event, Head, canonical, verify
from surefoot.journal.private_text import PrivateText, by_alias, new_salt

__all__ = [
    "START",
    "Event",
    "Head",
    "Journal",
    "PrivateText",
    "Transaction",
    "View",
    "by_alias",
    "canonical",
    "new_salt",
    "open_journal",
    "verify",
]


def open_journal(url: str | Path, *, read_only: bool = False, sync: bool = True) -> Journal:
    """Open the journal at `url`, and create it first if there is none.

    Parameters
    ----------
    url : str or Path
        "memory:" for a new journal that lasts as long as the process; a path or "sqlite:///..." for a SQLite file, with
        one process that writes and any number that read; "postgresql://..." or "host=... dbname=..." for a server, with
        any number that write; "file:///..." or a path that ends with ".log" for an append-only file, of one process.
    read_only : bool
        Create and lock nothing; a journal that does not exist is an error.
    sync : bool
        Of an append-only file: whether a transaction waits until the disk has it. Without, it takes microseconds, and
        survives the end of the process, but not of the machine's power.

    Returns
    -------
    Journal
        Close it when done, or use it in a `with` statement.

    Raises
    ------
    ConfigError
        If the address is of another kind, or `sync=False` is asked of a database.
    JournalError
        If the journal cannot be opened as asked; the subclass says why.

    Examples
    --------
    >>> with open_journal("memory:") as journal:
    ...     journal.names()
    []
    """
    kind, place = parse(url)
    if not sync and kind in ("sqlite", "postgres"):
        raise ConfigError(f"`sync=False` must be asked of a journal in a file ('file:///...') alone, but got {kind}.")
    # Imported only here: each needs what the others do not, and psycopg need not be installed.
    if kind == "memory":
        from surefoot.journal.memory import MemoryJournal

        return MemoryJournal()
    if kind == "postgres":
        from surefoot.journal.postgres import PostgresJournal

        return PostgresJournal(place, read_only=read_only)
    if kind == "file":
        from surefoot.journal.file import FileJournal

        return FileJournal(place, read_only=read_only, sync=sync)
    from surefoot.journal.sqlite import SqliteJournal

    return SqliteJournal(place, read_only=read_only)
