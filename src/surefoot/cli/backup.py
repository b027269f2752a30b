"""`surefoot backup JOURNAL FILE`: a copy of a journal that is in use."""

import time
from pathlib import Path
from typing import Annotated

import typer

from surefoot.errors import ConfigError


def backup(
    journal: Annotated[str, typer.Argument(help="A SQLite file; a server may be using it.")],
    file: Annotated[Path, typer.Argument(help="Where to write the copy; a new file.")],
) -> None:
    """Copy a SQLite journal while it is in use.

    Every event of the copy is checked, and its heads are printed. Keep the heads (JSON lines) away from the copy:
    `surefoot restore --expect` uses them to tell what is lost.
    """
    from surefoot.audit import ExpectedHead
    from surefoot.journal.address import file_of
    from surefoot.journal.copying import backup as copy

    if (source := file_of(journal)) is None:
        raise ConfigError("`surefoot backup` copies files, but this journal is a server's: use its own `pg_dump`.")
    # Before the copy: what a server gives out meanwhile is newer.
    began = time.time()
    heads = copy(source, file)
    for name, head in heads.items():
        typer.echo(_line(ExpectedHead(name, *head, began)))
    chains = "1 chain" if len(heads) == 1 else f"{len(heads)} chains"
    typer.echo(f"{file} holds {chains}, every event of which was checked.", err=True)


def _line(head: object) -> str:
    import msgspec

    return msgspec.json.encode(head).decode()
