"""The commands of surefoot."""

import typer

from surefoot import __version__
from surefoot.cli.audit import audit
from surefoot.cli.config import config
from surefoot.cli.demo import demo
from surefoot.cli.experiment import experiment
from surefoot.cli.fit_baseline import fit_baseline
from surefoot.cli.plan import plan
from surefoot.cli.replay import replay
from surefoot.cli.reproduce import reproduce
from surefoot.cli.serve import serve
from surefoot.cli.simulate import simulate
from surefoot.cli.token import token

app = typer.Typer(
    name="surefoot",
    help="Contextual bandits that never lose their footing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(reproduce)
app.command()(simulate)
app.command()(plan)
app.command()(audit)
app.command()(serve)
app.command()(demo)
app.add_typer(experiment, name="experiment")
app.add_typer(config, name="config")
app.add_typer(token, name="token")
app.command()(replay)
app.command("fit-baseline")(fit_baseline)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
