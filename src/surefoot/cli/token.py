"""`surefoot token create|list|revoke`: who may use the service."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.errors import ConfigError
from surefoot.service.tokens import ROLES, Role, Token, TokenFile

token = typer.Typer(help="Create and revoke the service's tokens.", no_args_is_help=True)

FileOption = Annotated[
    Path, typer.Option("--tokens", envvar="SUREFOOT_TOKENS", help="File in which the tokens are kept.")
]
DEFAULT = Path("surefoot.tokens")
HEADS = ("id", "roles", "owner", "experiments", "created", "expires", "note")


@token.command()
def create(
    role: Annotated[list[str], typer.Option(help=f"One of {', '.join(ROLES)}; repeat for several.")],
    tokens: FileOption = DEFAULT,
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
    owner: Annotated[str, typer.Option(help="Who is responsible for its use; events name them.")] = "",
    days: Annotated[float | None, typer.Option(help="Days until it expires; never by default.")] = None,
    experiment: Annotated[
        list[str] | None, typer.Option(help="The only experiment that it may be used for; repeat for several.")
    ] = None,
) -> None:
    """Create a token and print it, only this once. A running server accepts it within a second."""
    if note and len(note) > 200:
        raise ConfigError(f"`--note` must have at most 200 characters, but got {len(note)}.")
    if days is not None and not 0 < days < 1e6:
        raise ConfigError(f"`--days` must be a number of days above 0, but got {days:g}.")
    expires = None if days is None else time.time() + 86_400.0 * days
    told: dict[str, Any] = {"note": note, "owner": owner, "expires": expires, "experiments": experiment or ()}
    made = TokenFile(tokens).create([_role(one) for one in role], **told)
    typer.echo(made)
    # On standard error, so that `TOKEN=$(surefoot token create ...)` holds the token alone.
    typer.echo(f"Keep it safe: {tokens} holds only its hash.", err=True)


@token.command(name="list")
def list_(tokens: FileOption = DEFAULT) -> None:
    """List the tokens. Ids, roles, owners and notes, never the tokens themselves."""
    if not tokens.exists():
        raise ConfigError(f"`--tokens` must be a file of `surefoot token`, but there is none at {tokens}.")
    known = TokenFile(tokens).all()
    if not known:
        typer.echo(f"{tokens} has no tokens.")
        return
    rows = [_row(entry) for entry in known]
    table = Table(title=f"Tokens in {tokens}")
    # A column that is empty throughout takes the room of the others.
    kept = [place for place in range(len(HEADS)) if any(row[place] for row in rows)]
    for place in kept:
        table.add_column(HEADS[place], overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[place]) for place in kept))
    Console().print(table)


def _row(entry: Token) -> tuple[str, ...]:
    expires = "" if entry.expires is None else _day(entry.expires)
    if entry.has_expired(time.time()):
        expires += " (over)"
    only = ", ".join(entry.experiments)
    created = datetime.fromtimestamp(entry.created, UTC).strftime("%Y-%m-%d")
    return entry.id, ", ".join(entry.roles), entry.owner, only, created, expires, entry.note


def _day(moment: float) -> str:
    """The day, and the hour if it is near."""
    is_near = abs(moment - time.time()) < 2 * 86_400.0
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M" if is_near else "%Y-%m-%d")


@token.command()
def revoke(
    id: Annotated[str, typer.Argument(help="The token's id: the word after the first underscore.")],  # noqa: A002
    tokens: FileOption = DEFAULT,
) -> None:
    """Revoke a token. A running server refuses it within a second."""
    TokenFile(tokens).revoke(id)
    typer.echo(f"Revoked {id}.")


def _role(text: str) -> Role:
    for role in ROLES:
        if text == role:
            return role
    raise ConfigError(f"`--role` must be one of {', '.join(ROLES)}, but got {text!r}.")
