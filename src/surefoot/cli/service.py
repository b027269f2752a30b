"""`surefoot serve`, `demo`, `config` and `token`: the service over HTTP."""

import json
import os
import time
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.errors import ConfigError
from surefoot.service.settings import Settings, load
from surefoot.service.tokens import ROLES, Role, Token, TokenFile

ConfigOption = Annotated[
    Path | None, typer.Option("--config", envvar="SUREFOOT_CONFIG", help="TOML file with the settings.")
]


def serve(
    config: ConfigOption = None,
    database: Annotated[str | None, typer.Option(help="A SQLite file, or postgresql://...")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    tokens: Annotated[str | None, typer.Option(help="Token file, as `surefoot token` writes it.")] = None,
    heads: Annotated[
        str | None, typer.Option(help="File to which heads are appended, and checked against at startup.")
    ] = None,
) -> None:
    """Serve decisions over HTTP. Ctrl-C or SIGTERM stops it after answering pending requests."""
    settings = read_settings(config, database=database, host=host, port=port, tokens=tokens, heads=heads)
    from surefoot.service.server import serve as run

    run(settings, say=typer.echo)


def read_settings(config: Path | None, **given: str | int | None) -> Settings:
    """The settings of the file, overridden by the environment and then by the options."""
    return load(config, environment=os.environ, given=given)


def demo(
    world: Annotated[
        Literal["shop", "llm"],
        typer.Argument(help="A shop and its visitors, or the bill of a language model: 3,609 judged answers."),
    ] = "shop",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 0,
    seconds: Annotated[float | None, typer.Option(help="End after this many seconds instead of at Ctrl-C.")] = None,
    rate: Annotated[float | None, typer.Option(help="Visitors per second: 25 in the shop, 60 prompts.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the visitors.")] = 1,
) -> None:
    """Watch a learner on a page, with simulated visitors.

    Starts a service, its page and the visitors on this machine; nothing is kept.
    """
    from surefoot.service.demo_llm import bill
    from surefoot.service.demo_server import run
    from surefoot.service.demo_shop import SHOP

    run(bill() if world == "llm" else SHOP, port=port, seconds=seconds, rate=rate, seed=seed, say=typer.echo)


config = typer.Typer(help="Inspect the service's settings without starting it.", no_args_is_help=True)


@config.command()
def check(config: ConfigOption = None) -> None:
    """Check the settings, and what a server needs.

    The settings are those of a file and the environment; a server needs its journal, its tokens and its port.

    Exit code 0: a server can start now; 2: it cannot, and the message says why. Nothing is changed.
    """
    from surefoot.service.preflight import check_server

    settings = read_settings(config)
    asked = [one for one, where in (("tokens", settings.tokens), ("log-ins", settings.oidc)) if where is not None]
    asks = f"ask for {' or '.join(asked)}" if asked else "ask for no tokens, and answer only this machine"
    typer.echo(f"These settings are valid: the server will listen at {settings.host}:{settings.port} and {asks}.")
    for line in check_server(settings):
        typer.echo(line)


@config.command()
def show(config: ConfigOption = None) -> None:
    """Print every setting as JSON, defaults included. A database's password is left out."""
    typer.echo(json.dumps(read_settings(config).shown(), indent=2))


@config.command()
def alerts() -> None:
    """Print alert rules for Prometheus. List the file under its `rule_files`."""
    typer.echo(_monitoring("alerts.yml"), nl=False)


@config.command()
def dashboard() -> None:
    """Print a dashboard to import into Grafana."""
    typer.echo(_monitoring("dashboard.json"), nl=False)


def _monitoring(name: str) -> str:
    return (files("surefoot.service") / "monitoring" / name).read_text("utf-8")


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
    fields: dict[str, Any] = {"note": note, "owner": owner, "expires": expires, "experiments": experiment or ()}
    secret = TokenFile(tokens).create([_role(one) for one in role], **fields)
    typer.echo(secret)
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
