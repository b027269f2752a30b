"""`surefoot demo`: watch a learner go from its baseline to free play, in a minute."""

from typing import Annotated

import typer


def demo(
    port: Annotated[int, typer.Option(help="The port to listen at; 0 takes a free one.", min=0, max=65535)] = 0,
    seconds: Annotated[float | None, typer.Option(help="End after so many seconds instead of at Ctrl-C.")] = None,
    rate: Annotated[float, typer.Option(help="Visitors a second.")] = 25.0,
    seed: Annotated[int, typer.Option(help="Seed of the visitors.")] = 1,
) -> None:
    """Start a service, its page and simulated visitors on this machine; nothing is kept."""
    from surefoot.service.demo_server import run

    typer.echo("A shop with simulated visitors: a learner starts beside what the shop plays today.")
    run(port=port, seconds=seconds, rate=rate, seed=seed, say=typer.echo)
