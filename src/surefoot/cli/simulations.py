"""`surefoot reproduce`, `simulate` and `plan`: simulated worlds."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from surefoot.cli.options import OnOption, parse_numbers, progress_bar
from surefoot.errors import ConfigError
from surefoot.paper.report import write_results
from surefoot.paper.section5 import ALPHAS, FULL, INSTANCES, QUICK, paper_sweep, rivals
from surefoot.simulation.result_folder import folder_at
from surefoot.simulation.sweep import run_sweep

if TYPE_CHECKING:
    import polars as pl
import json
from collections.abc import Sequence
from pathlib import Path

from surefoot.experiment import read_configuration
from surefoot.hints import nearest
from surefoot.reports.plan import at_stake, guard_heading, guard_rows, heading, notes, policy_title, rows, verdict
from surefoot.simulation.guard_simulation import GuardRollout, plan_guard
from surefoot.simulation.rollout_plan import Plan
from surefoot.simulation.rollout_plan import plan as make_plan
from surefoot.simulation.sweep import read_sweep

DEFAULT_ALPHAS = ",".join(f"{alpha:g}" for alpha in ALPHAS)


def reproduce(
    out: Annotated[
        str | None, typer.Option(help="Folder for figures, table and report, or an address such as s3://bucket/folder.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and rounds: seconds instead of minutes.")] = False,
    runs: Annotated[int | None, typer.Option(help="Number of realisations; by default 1,000.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds per realisation.")] = None,
    alphas: Annotated[str, typer.Option(help="Alphas, separated by commas.")] = DEFAULT_ALPHAS,
    seed: Annotated[int, typer.Option(help="Seed: same seed, same bits.")] = 0,
    instance: Annotated[str, typer.Option(help="as-written, normalized, or both.")] = "both",
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    on: OnOption = None,
) -> None:
    """Reproduce Section 5 of the paper.

    Writes figures 1 to 4, results.csv, results.parquet and report.html, and judges the paper's claims one by one.
    If interrupted, run the same command again: it continues where it stopped.
    """
    base = QUICK if quick else FULL
    scale = replace(
        base, runs=base.runs if runs is None else runs, horizon=base.horizon if horizon is None else horizon
    )
    folder = out or ("results/paper-quick" if quick else "results/paper")
    grid = parse_numbers("--alphas", alphas)
    sweep = paper_sweep(scale, alphas=grid, seed=seed, instances=_instances(instance))
    is_full = (scale.runs, scale.horizon) == (FULL.runs, FULL.horizon)
    note = None if is_full else f"{scale.runs:,} runs x {scale.horizon:,} rounds, not the paper's 1,000 x 40,000"
    against = rivals(sweep)
    with progress_bar("simulating") as report:
        table = run_sweep(sweep, folder, threads=threads, progress=report, on=on)
    with folder_at(folder).filled() as path:
        write_results(table, path, settings=sweep.describe(), rivals=against, note=note)
    _summary(table, folder, against)


def _instances(name: str) -> tuple[Literal["as-written", "normalized"], ...]:
    if name == "both":
        return INSTANCES
    chosen = tuple(known for known in INSTANCES if known == name)
    if not chosen:
        raise ConfigError(f"`--instance` must be as-written, normalized or both, but got {name!r}.")
    return chosen


def _summary(table: "pl.DataFrame", folder: str, against: Mapping[str, str]) -> None:
    from surefoot.paper.claims import judge
    from surefoot.paper.sweep_rows import section5_worlds

    console = Console()
    rows = Table("what the paper says", "measured", "", title="Section 5, claim by claim")
    for world in section5_worlds(table):
        rows.add_section()
        rows.add_row(f"[bold]{world}[/bold]", "", "")
        for claim in judge(table, world):
            rows.add_row(claim.text, claim.measured, "holds" if claim.holds else "does not hold")
    console.print(rows)
    console.print(_ratios(table, against))
    console.print(f"Wrote figure1-4 (.png, .pdf), results.csv, results.parquet and report.html to {folder}/")


def _ratios(table: "pl.DataFrame", against: Mapping[str, str]) -> Table:
    """How many times fewer rounds of the baseline SafeLUCB needs, by alpha."""
    from surefoot.paper.sweep_rows import all_alphas, fewer, of_world, policies_of, section5_worlds, times

    alphas = all_alphas(table, list(against))
    shown = Table("rounds of the baseline, times fewer", title="Beyond the paper: SafeLUCB, by alpha")
    for alpha in alphas:
        shown.add_column(f"{alpha:g}", justify="right", no_wrap=True)
    for world in section5_worlds(table):
        rows = of_world(table, world)
        shown.add_section()
        shown.add_row(f"[bold]{world}[/bold]")
        for name in [name for name in against if name in policies_of(rows)]:
            ratios = [fewer(rows, name, against[name], alpha) for alpha in alphas]
            cells = ["–" if ratio is None else times(ratio) for ratio in ratios]
            # rich would take [0, 1] in a policy's name for markup.
            shown.add_row(escape(f"{name} (against {against[name]})"), *cells)
    return shown


def simulate(
    file: Annotated[Path, typer.Argument(help="TOML file that describes the sweep.")],
    out: Annotated[
        str | None,
        typer.Option(help="Folder for the results, or an address such as s3://bucket/folder; results/NAME by default."),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    on: OnOption = None,
) -> None:
    """Run the sweep of a TOML file.

    Writes results.csv, results.parquet, figures and report.html.
    If interrupted, run the same command again: it continues where it stopped.
    """
    sweep = read_sweep(file)
    folder = out or f"results/{file.stem}"
    with progress_bar("simulating") as report:
        table = run_sweep(sweep, folder, threads=threads, progress=report, on=on)
    with folder_at(folder).filled() as path:
        write_results(table, path, settings=sweep.describe(), rivals=rivals(sweep))
    Console().print(f"Wrote figure1-4 (.png, .pdf), results.csv, results.parquet and report.html to {folder}/")


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
    configured = None if config is None else read_configuration(config)
    chosen = policy or ("safe,paper" if configured is None else CONFIGURED.get(configured.policy, "safe,paper"))
    policies = [part.strip().lower() for part in chosen.split(",")]
    for name in policies:
        if name not in KNOWN:
            raise ConfigError(f"`--policy` must be safe, paper or guard, but got {name!r}. {nearest(name, KNOWN)}")
    alphas = (configured.alpha,) if configured and alpha is None else parse_numbers("--alpha", alpha or "0.05,0.1,0.2")
    dim = (configured.phi.dim if configured else 4) if dim is None else dim
    actions = (len(configured.actions) if configured else 20) if actions is None else actions
    noise = (configured.noise if configured else 0.5) if noise is None else noise
    baseline_reward = (
        (configured.baseline_reward if configured else 0.3) if baseline_reward is None else baseline_reward
    )
    delta = (configured.delta if configured else 0.001) if delta is None else delta
    guarded: list[GuardRollout] = []
    if "guard" in policies:
        with progress_bar("simulating the guard") as report:
            guarded = plan_guard(
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
                progress=report,
                on=on,
            )
    if policies == ["guard"]:
        _report_guard(guarded, days, as_json)
        return
    bounds = configured.reward_bounds if configured else None
    with progress_bar("simulating") as report:
        planned = make_plan(
            phi=None
            if configured is None or (dim, actions) != (configured.phi.dim, len(configured.actions))
            else configured.phi,
            theta_bound=0.0 if configured is None else configured.theta_bound,
            ridge=None if configured is None else configured.ridge,
            dim=dim,
            actions=actions,
            noise=noise,
            baseline_reward=baseline_reward,
            lift=lift,
            per_day=per_day,
            alphas=alphas,
            delta=delta,
            days=days,
            # Only CLUCB is configured the baseline's reward by a configuration.
            known=not unknown and (configured is None or configured.policy == "CLUCB"),
            reward_range=_range(reward_range),
            clicks=clicks or bounds == (0.0, 1.0),
            policies=[name for name in policies if name != "guard"],
            runs=runs,
            seed=seed,
            progress=report,
            on=on,
        )
    if plot is not None:
        from surefoot.reports.plan import save_plan

        save_plan(planned, plot)
    if page is not None:
        from surefoot.reports.plan import save_page

        save_page(planned, page)
    if as_json:
        guard = {"guard": [answer.as_dict() for answer in guarded]} if guarded else {}
        typer.echo(json.dumps(planned.as_dict() | guard, indent=2))
        return
    _print_plan(planned)
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


def _print_plan(found: Plan) -> None:
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
