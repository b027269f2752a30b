"""The commands of surefoot, each imported when it is called: so it needs only the packages of its own extra."""

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from surefoot import __version__
from surefoot.cli import COMMANDS
from surefoot.hints import nearest

LOOK: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class Commands(TyperGroup):
    """All commands, the ones above loaded on demand."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, as help lists them."""
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One command; None for one that does not exist, or whose packages are missing."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        try:
            return load(cmd_name)
        except ModuleNotFoundError:
            return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was called; raises ModuleNotFoundError if its packages are missing."""
        if args[0] in COMMANDS:
            load(args[0])
        elif args[0] not in self.list_commands(ctx):
            ctx.fail(f"No such command {args[0]!r}. {nearest(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


@cache
def load(name: str) -> Any:
    """The command of that name, from its module."""
    function = getattr(import_module(f"surefoot.cli.{COMMANDS[name][0]}"), name.replace("-", "_"))
    alone = typer.Typer(**LOOK)
    if isinstance(function, typer.Typer):
        alone.add_typer(function, name=name)
    else:
        alone.command(name)(function)
    made = typer.main.get_group(alone).commands[name]
    for command in (made, *getattr(made, "commands", {}).values()):
        _name_values(command)
    return made


def _name_values(command: Any) -> None:
    """Help says what one value of a repeated option is, and not what Python makes of them all."""
    for param in command.params:
        if param.multiple and param.metavar is None:
            param.metavar = "<path>" if "Path" in str(getattr(param, "type_descriptor", "")) else "<str>"


app = typer.Typer(name="surefoot", cls=Commands, no_args_is_help=True, **(LOOK | {"add_completion": True}))


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def surefoot(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Contextual bandits that explore under a floor: at least (1 - alpha) of what your strategy would earn, proved."""


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
