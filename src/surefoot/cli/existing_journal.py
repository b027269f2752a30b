"""The journal that a command works on: one that is there, and its address as it may be printed."""

from typing import Annotated

import typer

from surefoot.errors import JournalBusyError, JournalNotFoundError
from surefoot.journal import Journal, open_journal
from surefoot.journal.address import file_of

JournalArgument = Annotated[str, typer.Argument(help="A SQLite file, or postgresql://...")]


def open_existing(journal: str) -> Journal:
    """Open a journal to write to it; one that is not there is not made, for its name is a slip then."""
    file = file_of(journal)
    if file is not None and not file.exists():
        raise JournalNotFoundError(f"There must be a journal at {file}, but there is no such file or folder.")
    try:
        return open_journal(journal)
    except JournalBusyError:
        if file is None:  # another database has words of its own
            raise
        raise JournalBusyError(
            f"One process may write a SQLite journal, but another has {file} open. Stop the server that uses it, or "
            "ask it over HTTP."
        ) from None
