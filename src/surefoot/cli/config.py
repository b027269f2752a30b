"""`surefoot config check|show|alerts|dashboard`: the service's settings and its monitoring, without starting it."""

import json
from importlib.resources import files

import typer

from surefoot.cli.serve import ConfigOption, read_settings

config = typer.Typer(help="Inspect the service's settings without starting it.", no_args_is_help=True)


@config.command()
def check(config: ConfigOption = None) -> None:
    """Check the settings, and what a server needs.

    The settings are those of a file and the environment; a server needs its journal, its tokens and its port.

    Exit code 0: a server can start now; 2: it cannot, and the message says why. Nothing is changed.
    """
    from surefoot.service.preflight import check_server

    settings = read_settings(config)
    asks = "ask for tokens" if settings.tokens else "ask for no tokens, and answer only this machine"
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
