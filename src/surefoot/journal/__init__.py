"""What happened, durably: chains of events in memory, in a SQLite file, or on a PostgreSQL server."""

from pathlib import Path

from surefoot.errors import ConfigError
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


def open_journal(url: str | Path, *, read_only: bool = False) -> Journal:
    """Open the journal at `url`, and create it first if there is none.

    Parameters
    ----------
    url : str or Path
        "memory:" for a new journal that lasts as long as the process; a path or "sqlite:///..." for a SQLite file, with
        one process that writes and any number that read; "postgresql://..." for a server, with any number that write.
    read_only : bool
        Create, lock and migrate nothing; a journal that does not exist is an error.

    Returns
    -------
    Journal
        Close it when done, or use it in a `with` statement.

    Raises
    ------
    ConfigError
        If the address is of another kind.
    JournalError
        If the journal cannot be opened as asked; the subclass says why.

    Examples
    --------
    >>> with open_journal("memory:") as journal:
    ...     journal.names()
    []
    """
    text = str(url)
    if text == "memory:":
        from surefoot.journal.in_memory import MemoryJournal

        return MemoryJournal()
    if text.startswith(("postgresql://", "postgres://")):
        # Imported only here, since psycopg need not be installed.
        from surefoot.journal.postgres import PostgresJournal

        return PostgresJournal(text, read_only=read_only)
    if "://" in text and not text.startswith("sqlite:///"):
        raise ConfigError(
            f"A journal is 'memory:', a path, 'sqlite:///path' or 'postgresql://...', but got {text.split('://')[0]!r}."
        )
    from surefoot.journal.sqlite import SqliteJournal

    return SqliteJournal(Path(text.removeprefix("sqlite:///")), read_only=read_only)
