"""`surefoot plan`: how long it will take and what is at stake, by simulation, with the theorem's bound."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from surefoot.cli.number_lists import parse_numbers
from surefoot.errors import ConfigError
from surefoot.reports.plan_text import at_stake, heading, notes, policy_title, rows
from surefoot.simulation.rollout_plan import Plan
from surefoot.simulation.rollout_plan import plan as make_plan

PICTURES = (".png", ".pdf", ".svg")


def plan(
    dim: Annotated[int, typer.Option(help="Number of features of an action.")] = 4,
    actions: Annotated[int, typer.Option(help="Number of actions.")] = 20,
    noise: Annotated[float, typer.Option(help="Standard deviation of a reward; 0.5 for clicks and sales.")] = 0.5,
    baseline_reward: Annotated[float, typer.Option(help="Mean reward of today's strategy, the baseline.")] = 0.3,
    gain: Annotated[float, typer.Option(help="Gain hoped for, as a share: 0.1 is 10% more.")] = 0.1,
    per_day: Annotated[float, typer.Option(help="Decisions per day.")] = 1_000,
    alpha: Annotated[
        str, typer.Option(help="Share of the baseline's reward you accept losing; several separated by commas.")
    ] = "0.05,0.1,0.2",
    delta: Annotated[float, typer.Option(help="Probability that the guarantee fails.")] = 0.001,
    days: Annotated[float, typer.Option(help="Days to look ahead.")] = 30,
    unknown: Annotated[bool, typer.Option("--unknown", help="The baseline's reward is not known.")] = False,
    reward_range: Annotated[
        str | None, typer.Option(help="Least and largest mean reward of any action, such as 0,1; SafeLUCB uses it.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="safe (SafeLUCB, recommended), paper (CLUCB, or CLUCB2 with --unknown), or both.")
    ] = "safe,paper",
    runs: Annotated[int, typer.Option(help="Number of simulated worlds.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the worlds.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Write a picture to this file (.png, .pdf or .svg).")] = None,
    page: Annotated[Path | None, typer.Option(help="Write a page with table and picture to this file (.html).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show how long until the learner acts freely, what is at stake, and what is gained."""
    _check_plot(plot)
    found = make_plan(
        dim=dim,
        actions=actions,
        noise=noise,
        baseline_reward=baseline_reward,
        gain=gain,
        per_day=per_day,
        alphas=parse_numbers("--alpha", alpha),
        delta=delta,
        days=days,
        known=not unknown,
        reward_range=_range(reward_range),
        policies=[part.strip().lower() for part in policy.split(",")],
        runs=runs,
        seed=seed,
    )
    if plot is not None:
        from surefoot.reports.plan_figure import save_plan

        save_plan(found, plot)
    if page is not None:
        from surefoot.reports.plan_page import save_page

        save_page(found, page)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    _print(found)


def _check_plot(plot: Path | None) -> None:
    """Check the file before a minute of simulation, not after it."""
    if plot is not None and plot.suffix not in PICTURES:
        raise ConfigError(f"`--plot` must end in {', '.join(PICTURES)}, but got {plot.name!r}.")
    if plot is not None and not plot.parent.is_dir():
        raise ConfigError(f"`--plot` must lie in a folder that exists, but {str(plot.parent)!r} does not.")


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    ends = parse_numbers("--reward-range", text)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise ConfigError(f"`--reward-range` must be low,high with low < high, such as 0,1, but got {text!r}.")
    return ends


def _print(found: Plan) -> None:
    console = Console()
    table = Table(title=heading(found))
    table.add_column("")
    for answer in found.of(found.policies[0]):
        table.add_column(f"alpha {answer.alpha:g}", justify="right")
    table.add_row("at stake at worst", *at_stake(found))
    for policy in found.policies:
        table.add_section()
        table.add_row(f"[bold]{policy_title(policy)}[/bold]")
        for name, cells in rows(found, policy):
            table.add_row(name, *cells)
    console.print(table)
    for line in notes(found):
        console.print(line, highlight=False)


def _called(policy: str) -> str:
    return f"{policy}, recommended" if policy == "SafeLUCB" else f"{policy}, the paper's"


def _notes(found: Plan) -> Iterator[str]:
    settings = found.settings
    if settings["simulated_rounds"] < found.rounds:
        yield f"Simulated {settings['simulated_rounds']:,} of {found.rounds:,} rounds; the rest is extrapolated."
    yield "Free: no baseline round in the last fifth of the simulation."
    if "CLUCB" in found.policies:
        yield "The theorem's bound holds whenever its assumptions do, and is far above what is observed."
    if "SafeLUCB" in found.policies and settings["reward_range"] is None:
        yield "If every mean reward lies in a known range, declare it (--reward-range 0,1): SafeLUCB is then faster."


def _number(value: float) -> str:
    return "not in time" if not math.isfinite(value) else f"{value:,.0f}"


def _days(value: float) -> str:
    return "not in time" if not math.isfinite(value) else f"{value:,.1f}"


def _millions(value: float) -> str:
    """Two digits and no exponent."""
    rounded = float(f"{value:.2g}")
    return f"{rounded / 1e6:,.0f} million" if rounded >= 1e7 else f"{rounded:,.0f}"


_BOUND = "  the theorem's bound on them"
_ROWS: tuple[tuple[str, Callable[[Answer], str]], ...] = (
    ("days until free (median)", lambda a: _days(a.free_day)),
    ("  in nine worlds of ten", lambda a: _days(a.free_day_slow)),
    ("rounds until free (median)", lambda a: _number(a.free_round)),
    ("  in nine worlds of ten", lambda a: _number(a.free_round_slow)),
    ("worlds in which it is free in time", lambda a: f"{a.free_share:.0%}"),
    ("rounds of the baseline (median)", lambda a: _number(a.baseline_rounds)),
    (_BOUND, lambda a: _millions(a.bound_rounds)),
    ("furthest behind the baseline, ever", lambda a: f"{a.worst_seen_share:.1%}"),
    ("rounds below the floor, all worlds", lambda a: f"{a.violations}"),
    ("gained over the baseline", lambda a: f"{a.gained:+,.0f} ± {1.96 * a.gained_stderr:,.0f}"),
    ("  as a share", lambda a: f"{a.gained_share:+.1%}"),
)
