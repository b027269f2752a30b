"""`surefoot restore JOURNAL`: an older copy takes the journal's place, by a person's word."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.errors import ConfigError
from surefoot.journal import Head


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
    """Put an older copy of a journal into use.

    Says what is lost, records it, and pauses every guarded experiment. If the copy lacks an expected head, nothing is
    changed, unless you pass `--accept-loss`. Servers can start on it afterwards; an admin lets each learner play again
    by setting its mode. A journal where shards meet is refused.
    """
    from surefoot.audit.chain import newest_heads, read_expected
    from surefoot.experiment.restore import check_loss, check_unshared
    from surefoot.experiment.restore import restore as take_into_use
    from surefoot.journal import Journal, open_journal
    from surefoot.journal.address import file_of, without_password
    from surefoot.journal.copying import backup, check_new_file, remove_file, settle, verify_all
    from surefoot.journal.journal_chain import given_up

    if not by.strip() or not reason.strip():
        raise ConfigError("`--by` and `--reason` must say who restores the journal, and why: an auditor will ask.")
    if copy is not None and ("://" in journal or file_of(journal) is None):
        raise ConfigError("`--from` puts a file in place, but the journal is a server's: use `pg_restore`.")
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
        lost = take_into_use(opened, by=by, reason=reason, known=known(opened), accept_loss=accept_loss)
        names = opened.names()
    if copy is not None:
        settle(Path(place), Path(journal))
        remove_file(Path(place))
    for name, head in lost.items():
        typer.echo(f"Lost: {name} had event {head.number}, hash {head.hash}.")
    held = "one experiment" if len(names) == 1 else f"{len(names)} experiments"
    typer.echo(f"{without_password(journal)} is restored, with {held}. What was guarded is paused.")
