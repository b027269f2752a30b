"""`surefoot serve`: safe decisions over HTTP."""

import os
from pathlib import Path
from typing import Annotated

import typer

from surefoot.service.settings import Settings, load

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
    """Serve decisions over HTTP. Ctrl-C or SIGTERM stops it once it has answered what waits."""
    settings = read_settings(config, database=database, host=host, port=port, tokens=tokens, heads=heads)
    from surefoot.service.server import serve as run

    run(settings, say=typer.echo)


def read_settings(config: Path | None, **given: str | int | None) -> Settings:
    """The settings of the file, overridden by the environment and then by the options."""
    return load(config, environment=os.environ, given=given)
