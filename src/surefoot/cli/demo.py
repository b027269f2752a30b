"""`surefoot demo`: watch a learner go from the baseline to free play in a minute."""

from typing import Annotated

import typer


def demo(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 0,
    seconds: Annotated[float | None, typer.Option(help="End after this many seconds instead of at Ctrl-C.")] = None,
    rate: Annotated[float, typer.Option(help="Visitors per second.")] = 25.0,
    seed: Annotated[int, typer.Option(help="Seed of the visitors.")] = 1,
) -> None:
    """Watch a learner on a page, with simulated visitors.

    Starts a service, its page and the visitors on this machine; nothing is kept.
    """
    from surefoot.service.demo_server import run

    run(port=port, seconds=seconds, rate=rate, seed=seed, say=typer.echo)
