"""`surefoot plan`: how long it will take and what is at stake, by simulation, with the theorem's bound."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from surefoot.cli.number_lists import parse_numbers
from surefoot.cli.on_option import OnOption
from surefoot.errors import ConfigError
from surefoot.experiment import read_configuration
from surefoot.hints import nearest
from surefoot.reports.plan_text import at_stake, guard_heading, guard_rows, heading, notes, policy_title, rows, verdict
from surefoot.simulation.guard_plan import GuardRollout, plan_guard
from surefoot.simulation.rollout_plan import Plan
from surefoot.simulation.rollout_plan import plan as make_plan

PICTURES = (".png", ".pdf", ".svg")
KNOWN = ("safe", "paper", "guard")
CONFIGURED = {"SafeLUCB": "safe", "CLUCB": "paper", "CLUCB2": "paper"}


def plan(
    config: Annotated[
        Path | None,
        typer.Option(help="experiment.toml: policy, features, actions, noise, bounds and so on, unless given here."),
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Features of an action; 4.")] = None,
    actions: Annotated[int | None, typer.Option(help="Actions to choose from; 20.")] = None,
    noise: Annotated[float | None, typer.Option(help="Noise of a reward; 0.5 for clicks and sales.")] = None,
    baseline_reward: Annotated[float | None, typer.Option(help="Mean reward of today's strategy; 0.3.")] = None,
    lift: Annotated[float, typer.Option(help="Expected lift, as a share: 0.1 is 10% more.")] = 0.1,
    per_day: Annotated[float, typer.Option(help="Decisions a day.")] = 1_000,
    alpha: Annotated[
        str | None,
        typer.Option(help="Share of the baseline you accept losing; several separated by commas; 0.05,0.1,0.2."),
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Chance that the guarantee fails; 0.001.")] = None,
    days: Annotated[float, typer.Option(help="Days to look ahead.")] = 30,
    unknown: Annotated[bool, typer.Option("--unknown", help="The baseline's reward is not known.")] = False,
    clicks: Annotated[
        bool, typer.Option("--clicks", help="Rewards are 0 or 1, without --noise; shows how many are needed.")
    ] = False,
    reward_range: Annotated[
        str | None, typer.Option(help="Least and largest mean reward of any action, such as 0,1; SafeLUCB uses it.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="safe (SafeLUCB, recommended), paper (CLUCB, or CLUCB2 with --unknown), guard; safe,paper by default, "
            "or that of the configuration."
        ),
    ] = None,
    agreement: Annotated[
        float, typer.Option(help="For a guard: share of the rounds in which the proposal equals the baseline.")
    ] = 0.0,
    goal: Annotated[
        str, typer.Option(help="For a guard: earn, or save, where something cheaper may spend the budget.")
    ] = "earn",
    runs: Annotated[int, typer.Option(help="Number of simulated worlds.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the worlds.")] = 0,
    on: OnOption = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture to this file (.png, .pdf or .svg).")] = None,
    page: Annotated[Path | None, typer.Option(help="Write a page with table and picture to this file (.html).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Simulate a rollout: how long, how risky, how much it pays.

    Says how long it takes until the learner acts freely, what is at stake, and what lift to expect.
    """
    _check_file("--plot", plot, PICTURES)
    _check_file("--page", page, (".html",))
    told = None if config is None else read_configuration(config)
    chosen = policy or ("safe,paper" if told is None else CONFIGURED.get(told.policy, "safe,paper"))
    policies = [part.strip().lower() for part in chosen.split(",")]
    for name in policies:
        if name not in KNOWN:
            raise ConfigError(f"`--policy` must be safe, paper or guard, but got {name!r}. {nearest(name, KNOWN)}")
    alphas = (told.alpha,) if told and alpha is None else parse_numbers("--alpha", alpha or "0.05,0.1,0.2")
    dim = (told.phi.dim if told else 4) if dim is None else dim
    actions = (len(told.actions) if told else 20) if actions is None else actions
    noise = (told.noise if told else 0.5) if noise is None else noise
    baseline_reward = (told.baseline_reward if told else 0.3) if baseline_reward is None else baseline_reward
    delta = (told.delta if told else 0.001) if delta is None else delta
    guarded = (
        plan_guard(
            baseline_reward=baseline_reward,
            lift=lift,
            per_day=per_day,
            alphas=alphas,
            delta=delta,
            days=days,
            agreement=agreement,
            goal=goal,  # type: ignore[arg-type]
            runs=runs,
            seed=seed,
            on=on,
        )
        if "guard" in policies
        else []
    )
    if policies == ["guard"]:
        _report_guard(guarded, days, as_json)
        return
    bounds = told.reward_bounds if told else None
    found = make_plan(
        phi=None if told is None or (dim, actions) != (told.phi.dim, len(told.actions)) else told.phi,
        theta_bound=0.0 if told is None else told.theta_bound,
        ridge=None if told is None else told.ridge,
        dim=dim,
        actions=actions,
        noise=noise,
        baseline_reward=baseline_reward,
        lift=lift,
        per_day=per_day,
        alphas=alphas,
        delta=delta,
        days=days,
        # Only CLUCB is told the baseline's reward by a configuration.
        known=not unknown and (told is None or told.policy == "CLUCB"),
        reward_range=_range(reward_range),
        clicks=clicks or bounds == (0.0, 1.0),
        policies=[name for name in policies if name != "guard"],
        runs=runs,
        seed=seed,
        on=on,
    )
    if plot is not None:
        from surefoot.reports.plan_figure import save_plan

        save_plan(found, plot)
    if page is not None:
        from surefoot.reports.plan_page import save_page

        save_page(found, page)
    if as_json:
        guard = {"guard": [answer.as_dict() for answer in guarded]} if guarded else {}
        typer.echo(json.dumps(found.as_dict() | guard, indent=2))
        return
    _print(found)
    if guarded:
        _report_guard(guarded, days, as_json)


def _report_guard(answers: Sequence[GuardRollout], days: float, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"guard": [answer.as_dict() for answer in answers]}, indent=2))
        return
    table = Table(title=guard_heading(answers, days))
    table.add_column("")
    for answer in answers:
        table.add_column(f"alpha {answer.alpha:g}", justify="right")
    for name, cells in guard_rows(answers, days):
        table.add_row(name, *cells)
    Console().print(table)
    if any(answer.simulated_days < days for answer in answers):
        Console().print("Beyond the days simulated the learner keeps the share of their last tenth.", highlight=False)


def _check_file(option: str, file: Path | None, kinds: tuple[str, ...]) -> None:
    """Before a minute of simulation, not after it."""
    if file is not None and file.suffix not in kinds:
        raise ConfigError(f"`{option}` must end in {', '.join(kinds)}, but got {file.name!r}.")
    if file is not None and not file.parent.is_dir():
        raise ConfigError(f"`{option}` must lie in a folder that exists, but {str(file.parent)!r} does not.")


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    ends = parse_numbers("--reward-range", text)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise ConfigError(f"`--reward-range` must be low,high with low < high, such as 0,1, but got {text!r}.")
    return ends


def _print(found: Plan) -> None:
    console = Console()
    console.print(verdict(found)[0], style="bold", highlight=False)
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
