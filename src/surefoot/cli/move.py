"""`surefoot move SOURCE TARGET`: a journal goes to another kind of place, such as from SQLite to PostgreSQL."""

from pathlib import Path
from typing import Annotated

import typer


def move(
    source: Annotated[str, typer.Argument(help="A SQLite file, or postgresql://...; no server may use it.")],
    target: Annotated[str, typer.Argument(help="The same; new, or from an interrupted move.")],
) -> None:
    """Copy a journal to another place, such as PostgreSQL.

    Every event is copied with its hash, and the source stays as it is. Stop every server first. Receipts stay valid:
    the chains are the same. If interrupted, it continues where it stopped.
    """
    from surefoot.cli.existing_journal import open_existing
    from surefoot.errors import ConfigError, JournalCorruptedError, JournalReadOnlyError
    from surefoot.journal import open_journal
    from surefoot.journal.address import file_of
    from surefoot.journal.copying import copy_journal, verify_all

    if source == target or (file_of(source) is not None and _is_same(file_of(source), file_of(target))):
        raise ConfigError("A journal must be moved to another place, but source and target are the same file.")
    try:
        old = open_existing(source)  # for writing, so that no server has a file open meanwhile
    except JournalReadOnlyError:
        old = open_journal(source, read_only=True)  # such as the copy of a file journal, which nobody writes to
    with old, open_journal(target) as new:
        heads = copy_journal(old, new)
        if verify_all(new) != heads:
            raise JournalCorruptedError("What was copied must read back as it was, but does not. Start over.")
    for name, head in heads.items():
        typer.echo(f"{name}: {head.number:,} events, head {head.hash}")
    typer.echo("Every event was read back and checked. Point the servers to the new journal, and keep the old one.")


def _is_same(one: Path | None, other: Path | None) -> bool:
    return one is not None and other is not None and one.exists() and other.exists() and one.samefile(other)
