"""`surefoot backup`, `restore` and `move`: whole journals."""

import time
from pathlib import Path
from typing import Annotated

import typer

from surefoot.errors import ConfigError
from surefoot.journal import Head


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


def restore(
    journal: Annotated[str, typer.Argument(help="Where servers will find it: a SQLite file, or postgresql://...")],
    by: Annotated[str, typer.Option(help="Who restores it; kept in the journal.")],
    reason: Annotated[str, typer.Option(help="Why; kept in the journal.")],
    copy: Annotated[
        Path | None,
        typer.Option("--from", help="The backup to put there; leave it out if the journal is already there."),
    ] = None,
    expect: Annotated[
        list[Path] | None,
        typer.Option(help="A file of the last known heads: a server's, or receipts of a client. Repeat for several."),
    ] = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Continue although events are lost, or no head is known.")
    ] = False,
) -> None:
    """Restore an older copy of a journal.

    Says what is lost, records it, and pauses every guarded experiment. If the copy lacks an expected head, nothing is
    changed, unless you pass `--accept-loss`. Servers can start on it afterwards; an admin lets each learner play again
    by setting its mode. A journal where shards meet is refused.
    """
    from surefoot.audit.chain import newest_heads, read_expected
    from surefoot.experiment.restore import check_loss, check_unshared, erased_beside, read_erased
    from surefoot.experiment.restore import restore as take_into_use
    from surefoot.journal import Journal, open_journal
    from surefoot.journal.address import file_of, without_password
    from surefoot.journal.copying import backup, check_new_file, remove_file, settle, verify_all
    from surefoot.journal.journal_chain import given_up

    if not by.strip() or not reason.strip():
        raise ConfigError("`--by` and `--reason` must say who restores the journal, and why: an auditor will ask.")
    if copy is not None and ("://" in journal or file_of(journal) is None):
        raise ConfigError("`--from` puts a file in place, but the journal is a server's: use `pg_restore`.")
    listed = [one for path in expect or () for one in read_erased(erased_beside(path))]
    expected = None if expect is None else [head for path in expect for head in read_expected(path)]

    def known(opened: Journal) -> dict[str, Head] | None:
        return None if expected is None else newest_heads(expected, given_up=given_up(opened))

    with open_journal(copy or journal, read_only=True) as found:
        verify_all(found)
        check_unshared(found)
        check_loss(found, known(found), accept_loss=accept_loss)
    # Beside its place, so that no server finds a copy there that may still play.
    place = journal if copy is None else f"{journal}.restoring"
    if copy is not None:
        check_new_file(Path(journal), "What is restored")
        remove_file(Path(place))
        backup(copy, place)
    with open_journal(place) as opened:
        lost, erased = take_into_use(
            opened, by=by, reason=reason, known=known(opened), accept_loss=accept_loss, erased=listed
        )
        names = opened.names()
    if copy is not None:
        settle(Path(place), Path(journal))
        remove_file(Path(place))
    for name, head in lost.items():
        typer.echo(f"Lost: {name} had event {head.number}, hash {head.hash}.")
    for name, count in erased.items():
        what = f"{count:,} private text{'s' * (count != 1)} of {name!r}" if count else f"the experiment {name!r}"
        typer.echo(f"Erased again: {what}, as had been done after the copy was made.")
    if expect and not any(erased_beside(path).exists() for path in expect):
        typer.echo(
            "No list of erasures stands beside these heads: what was erased since the copy is in it again.", err=True
        )
    held = "one experiment" if len(names) == 1 else f"{len(names)} experiments"
    typer.echo(f"{without_password(journal)} is restored, with {held}. What was guarded is paused.")


def move(
    source: Annotated[str, typer.Argument(help="A SQLite file, or postgresql://...; no server may use it.")],
    target: Annotated[str, typer.Argument(help="The same; new, or from an interrupted move.")],
) -> None:
    """Copy a journal to another place, such as PostgreSQL.

    Every event is copied with its hash, and the source stays as it is. Stop every server first. Receipts stay valid:
    the chains are the same. If interrupted, it continues where it stopped.
    """
    from surefoot.cli.options import open_existing
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
