"""`surefoot config check|show`: the service's settings, without starting it."""

import json

import typer

from surefoot.cli.serve import ConfigOption, read_settings

config = typer.Typer(help="Look at the service's settings without starting it.", no_args_is_help=True)


@config.command()
def check(config: ConfigOption = None) -> None:
    """Check the settings of a file and of the environment. Exit code 0: a server can run with them; 2: it cannot."""
    settings = read_settings(config)
    asks = "asks for tokens" if settings.tokens else "asks for no tokens, and answers this machine only"
    typer.echo(f"These settings are in order: the server listens at {settings.host}:{settings.port} and {asks}.")


@config.command()
def show(config: ConfigOption = None) -> None:
    """Print every setting, defaults included, as JSON; a database's password is left out."""
    typer.echo(json.dumps(read_settings(config).shown(), indent=2))
