"""`surefoot plan`: a manager's question, answered by simulation with the theorem beside it."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from surefoot.cli.reproduce import parse_alphas
from surefoot.simulation.plan import Answer, Plan
from surefoot.simulation.plan import plan as make_plan


def plan(
    dim: Annotated[int, typer.Option(help="Features of an action.")] = 4,
    actions: Annotated[int, typer.Option(help="Actions to choose from.")] = 20,
    noise: Annotated[float, typer.Option(help="Noise of a reward; 0.5 for clicks and sales.")] = 0.5,
    baseline_reward: Annotated[float, typer.Option(help="Mean reward of today's strategy.")] = 0.3,
    gain: Annotated[float, typer.Option(help="Gain hoped for, as a share: 0.1 is 10% more.")] = 0.1,
    per_day: Annotated[float, typer.Option(help="Decisions a day.")] = 1_000,
    alpha: Annotated[
        str, typer.Option(help="Share of the baseline you accept losing; several between commas.")
    ] = "0.05,0.1,0.2",
    delta: Annotated[float, typer.Option(help="Chance that the guarantee fails.")] = 0.001,
    days: Annotated[float, typer.Option(help="How far to look ahead.")] = 30,
    unknown: Annotated[bool, typer.Option("--unknown", help="The baseline's reward is not known.")] = False,
    runs: Annotated[int, typer.Option(help="Worlds to simulate.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Write a picture to this file (.png, .pdf or .svg).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """How long until the learner acts freely, what is at stake, and what is gained in a month."""
    found = make_plan(
        dim=dim,
        actions=actions,
        noise=noise,
        baseline_reward=baseline_reward,
        gain=gain,
        per_day=per_day,
        alphas=parse_alphas(alpha),
        delta=delta,
        days=days,
        known=not unknown,
        runs=runs,
        seed=seed,
    )
    if plot is not None:
        from surefoot.paper.plan_figure import save_plan

        save_plan(found, plot)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    _print(found)


def _print(found: Plan) -> None:
    console = Console()
    settings = found.settings
    table = Table(
        title=f"{found.days:g} days, {settings['per_day']:g} decisions a day, {settings['runs']} simulated worlds"
    )
    for column in ("", *(f"alpha {answer.alpha:g}" for answer in found.answers)):
        table.add_column(column, justify="left" if not column else "right")
    for name, cell in _ROWS:
        table.add_row(name, *(cell(answer) for answer in found.answers))
    console.print(table)
    if settings["simulated_rounds"] < found.rounds:
        console.print(
            f"Simulated {settings['simulated_rounds']:,} of {found.rounds:,} rounds; the rest is extrapolated."
        )
    console.print("Free: no baseline round in the last fifth of what was simulated.")
    if settings["known"]:
        console.print("The theorem's bound holds wherever its assumptions do, and lies far above what is seen.")


def _number(value: float) -> str:
    return "not in time" if not math.isfinite(value) else f"{value:,.0f}"


def _days(value: float) -> str:
    return "not in time" if not math.isfinite(value) else f"{value:,.1f}"


def _free(answer: Answer) -> str:
    return f"{answer.free_share:.0%}"


_ROWS = (
    ("rounds until the learner acts freely (median)", lambda a: _number(a.free_round)),
    ("  in nine worlds of ten", lambda a: _number(a.free_round_slow)),
    ("days until then (median)", lambda a: _days(a.free_day)),
    ("  in nine worlds of ten", lambda a: _days(a.free_day_slow)),
    ("worlds in which it does in time", _free),
    ("rounds played by the baseline (median)", lambda a: _number(a.baseline_rounds)),
    ("  the theorem's bound on them", lambda a: f"{a.bound_rounds:.2g}" if math.isfinite(a.bound_rounds) else "none"),
    ("at stake at worst, share of the baseline", lambda a: f"{a.at_stake_share:.1%}"),
    ("  the most that was ever behind", lambda a: f"{a.worst_seen_share:.1%}"),
    ("rounds below the floor, all worlds", lambda a: f"{a.violations}"),
    ("gained over the baseline", lambda a: f"{a.gained:+,.0f} ± {1.96 * a.gained_stderr:,.0f}"),
    ("  as a share", lambda a: f"{a.gained_share:+.1%}"),
)
