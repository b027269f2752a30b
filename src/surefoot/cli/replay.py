"""`surefoot replay LOG`: what policies would have done on your own log."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from surefoot.arrays import positive
from surefoot.atomic_files import write_together
from surefoot.cli.log_options import (
    ActionColumn,
    ActionFeatures,
    BaselineColumn,
    BaselineOption,
    Categorical,
    Context,
    EstimatePropensities,
    Exploration,
    FormatOption,
    Hashed,
    IdColumn,
    LogArgument,
    MaxBad,
    OfferedColumn,
    PropensityColumn,
    RewardBounds,
    RewardColumn,
    Uniform,
    columns_of,
    parse_pair,
    read_action_features,
    refuse_both,
    refuse_other_columns,
)
from surefoot.cli.number_lists import parse_numbers
from surefoot.cli.on_option import OnOption
from surefoot.cli.progress import console as errors
from surefoot.cli.progress import progress_bar
from surefoot.cli.replayed_specs import FREE, bounds_known, check_exploration, specs_of
from surefoot.errors import ConfigError
from surefoot.experiment.configuration import Configuration, read_configuration
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.batch import Log
from surefoot.replay.diagnostics import Doubt
from surefoot.replay.estimators import evaluator_named
from surefoot.replay.estimators import replay as run_replay
from surefoot.replay.guarded_lucb import GUARD, guarded
from surefoot.replay.intervals import Estimate
from surefoot.replay.open_log import read_log
from surefoot.replay.propensity_model import estimate_propensities, with_estimates
from surefoot.replay.rehearsal import LONG, expected_seconds
from surefoot.replay.rehearsal import told as told_wait
from surefoot.replay.replay_outcome import ReplayOutcome
from surefoot.replay.replay_text import once, shown, verdict_of
from surefoot.replay.replayed_policy import PLAYABLE, Declared
from surefoot.scalars import precisely
from surefoot.simulation.workers import workers_on

PER_DAY = "per_day is how many rounds your traffic has a day."
DISPENSABLE = ("reward", "rounds", "free from", "below floor")  # baseline and lift tell the reward, too
UNLIMITED = 10_000  # columns of a terminal
MOST_ACTIONS = 20  # that a terminal lists; the report has them all
GUARD_ROWS = 20_000  # of a log up to which a guard is played unasked


def replay(
    log: LogArgument,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Policy to replay; repeat for several: {', '.join(PLAYABLE)}, {GUARD} (LUCB under a guard)."
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(help="Share of the baseline's reward you accept losing; several separated by commas; 0.1."),
    ] = None,
    evaluator: Annotated[
        str | None, typer.Option(help="rejection (default), importance, or full (default where --label is given).")
    ] = None,
    baseline: BaselineOption = "logged",
    action: ActionColumn = None,
    reward: RewardColumn = None,
    propensity: PropensityColumn = None,
    context: Context = None,
    categorical: Categorical = None,
    hashed: Hashed = None,
    baseline_column: BaselineColumn = None,
    id_column: IdColumn = None,
    offered: OfferedColumn = None,
    label: Annotated[
        str | None, typer.Option(help="Column of correct labels: the reward of every action is then known.")
    ] = None,
    action_features: ActionFeatures = None,
    uniform: Uniform = False,
    estimate_chances: EstimatePropensities = False,
    config: Annotated[
        Path | None,
        typer.Option(help="experiment.toml, as fit-baseline writes it: its policy is played. Fitted now by default."),
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Noise of a reward, instead of the fitted one.")] = None,
    theta_bound: Annotated[float | None, typer.Option(help="Bound on ||theta||, instead of the fitted one.")] = None,
    baseline_reward: Annotated[float | None, typer.Option(help="The baseline's mean reward, if known.")] = None,
    reward_bounds: RewardBounds = None,
    delta: Annotated[float | None, typer.Option(help="Probability that the guarantee fails; 0.001.")] = None,
    ridge: Annotated[float | None, typer.Option(help="Regulariser; each policy's own by default.")] = None,
    exploration: Exploration = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    format: FormatOption = None,  # noqa: A002
    max_bad: MaxBad = 0,
    seed: Annotated[int, typer.Option(help="Seed of the rejection of rows.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder; results/replay-NAME by default.")] = None,
    per_day: Annotated[
        float | None, typer.Option(help="Your traffic in rounds a day, to show the wait in days.")
    ] = None,
    on: OnOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table; write no files.")] = False,
) -> None:
    """Show what policies would have done on your log.

    Prints a table, and writes report.html, replay.json and figures.
    """
    refuse_both(uniform, estimate_chances)
    told = read_configuration(config) if config is not None else None
    if told is not None:
        refuse_other_columns(told.encoder, context, categorical, hashed)
    range_ = parse_pair(reward_bounds) or (told.reward_bounds if told else None)
    alphas = (told.alpha,) if told and alpha is None else parse_numbers("--alpha", alpha or "0.1")
    if delta is None:
        delta = told.delta if told else 0.001
    if ridge is None and told is not None:
        ridge = told.ridge
    chosen = evaluator_named(evaluator or ("full" if label else "rejection"))
    explored = {} if exploration is None else {"exploration": exploration}
    columns = columns_of(
        log,
        format,
        action or label,
        reward,
        propensity,
        context,
        categorical,
        baseline_column,
        id_column,
        label,
        offered,
        hashed,
    )
    with nullcontext(None) if on is None else workers_on(on) as workers:
        read = read_log(
            log,
            format=cast("Any", format),
            columns=columns,
            baseline=told.baseline if told is not None and told.baseline and baseline == "logged" else baseline,
            actions=told.actions if told is not None else None,
            encoder=told.encoder if told is not None else None,
            action_features=read_action_features(action_features, action) or (told.action_features if told else None),
            max_bad=max_bad,
            on=workers,
        )
        if estimate_chances:
            read = estimate_propensities(read)
        declared, doubts = _declared(read, told, range_, level, uniform=uniform and chosen != "full")
        bounds = range_ or declared.reward_bounds
        entries: list[Any] = [
            *specs_of(
                policy, told, alphas, exploration, bounds, delta=delta, ridge=ridge, **bounds_known(chosen, range_)
            )
        ]
        declared = Declared(
            declared.noise if noise is None else noise,
            declared.theta_bound if theta_bound is None else theta_bound,
            declared.baseline_reward if baseline_reward is None else baseline_reward,
            range_,
        )
        if GUARD in policy if policy else _can_guard(read, chosen, bounds):
            under: dict[str, Any] = {"delta": delta, "ridge": ridge or 1.0, "reward_bounds": _known(bounds), **explored}
            entries += [guarded(one, **under) for one in alphas]
        check_exploration(exploration, entries)
        seconds = expected_seconds(read, entries, declared=declared, evaluator=chosen)
        if seconds is not None and seconds >= LONG:
            errors.print(told_wait(seconds, read), highlight=False)
        with nullcontext(None) if as_json else progress_bar("replaying", "rows") as report:
            outcomes = run_replay(
                read,
                entries,
                declared=declared,
                evaluator=chosen,
                uniform=uniform,
                seed=seed,
                level=level,
                progress=report,
                on=workers,
            )
    day = None if per_day is None else positive("per_day", per_day, hint=PER_DAY)
    verdict = verdict_of(outcomes, per_day=day, doubts=doubts)
    doubts = once([*doubts, *(doubt for outcome in outcomes for doubt in outcome.doubts)])
    settings = _settings(read, declared, chosen, delta=delta, ridge=ridge, uniform=uniform, seed=seed) | explored
    if as_json:
        plain = _as_json(read, outcomes, settings, doubts, verdict)
        typer.echo(json.dumps(plain, indent=2, ensure_ascii=False))
        return
    folder = out or Path("results") / f"replay-{log[0].name.split('.')[0]}"
    _write(folder, read, outcomes, settings, doubts, verdict)
    _print(read, outcomes, doubts, folder, verdict)


def _declared(
    log: Log, told: Configuration | None, range_: tuple[float, float] | None, level: float, *, uniform: bool
) -> tuple[Declared, Sequence[Doubt]]:
    if told is not None:
        return Declared(told.noise, told.theta_bound, told.baseline_reward, range_), with_estimates((), log)
    found = fit_baseline(log, level=level, reward_bounds=range_, uniform=uniform)
    return found.declared, with_estimates(found.doubts, log)


def _can_guard(log: Log, evaluator: str, bounds: tuple[float, float] | None) -> bool:
    """Whether a guard's row stands beside the others unasked: it plays in Python, and learns from its own rounds."""
    return (
        evaluator != "importance"
        and (log.rows or GUARD_ROWS + 1) <= GUARD_ROWS
        and bounds is not None
        and bounds[0] >= 0
    )


def _known(bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        raise ConfigError("`--reward-bounds` must be given for a guard: its promise rests on them alone.")
    return bounds


def _settings(
    log: Log, declared: Declared, evaluator: str, *, delta: float, ridge: float | None, uniform: bool, seed: int
) -> dict[str, object]:
    return {
        "log": log.name,
        "rows": log.rows,
        "evaluator": evaluator,
        "actions": ", ".join(log.actions),
        "context": ", ".join(log.context),
        "left out of the context": "; ".join(f"{name} ({why})" for name, why in log.left_out.items()),
        "features of an action": log.dim,
        "noise": declared.noise,
        "theta_bound": declared.theta_bound,
        "feature_bound": log.feature_bound,
        "baseline_reward": declared.baseline_reward,
        "reward_bounds": declared.reward_bounds,
        "delta": delta,
        "ridge": ridge,
        "uniform": uniform,
        "seed": seed,
    }


def _as_json(
    log: Log,
    outcomes: Sequence[ReplayOutcome],
    settings: dict[str, object],
    doubts: Sequence[Doubt],
    verdict: tuple[str, bool] | None,
) -> dict[str, object]:
    return {
        "verdict": None if verdict is None else {"text": verdict[0], "is_good": verdict[1]},
        "settings": settings,
        "bad_rows": {"count": log.bad.count, "shown": [{"line": at, "reason": why} for at, why in log.bad.shown]},
        "doubts": [doubt.as_dict() for doubt in doubts],
        "actions": {name: estimate.as_dict() for name, estimate in outcomes[0].actions.items()},
        "policies": [outcome.as_dict() for outcome in outcomes],
    }


def _write(
    folder: Path,
    log: Log,
    outcomes: Sequence[ReplayOutcome],
    settings: dict[str, object],
    doubts: Sequence[Doubt],
    verdict: tuple[str, bool] | None,
) -> None:
    try:
        from surefoot.replay.replay_figures import FIGURES, draw
        from surefoot.replay.replay_report import report_html
    except ModuleNotFoundError as missing:
        raise ConfigError(f"Figures need matplotlib, but {missing.name} is missing. Use --json.") from None
    # Everything is made before anything is written.
    files = {f"{name}.png": draw(name, outcomes) for name in FIGURES}
    files["report.html"] = report_html(log, outcomes, settings=settings, doubts=doubts, verdict=verdict).encode()
    files["replay.json"] = json.dumps(_as_json(log, outcomes, settings, doubts, verdict), ensure_ascii=False).encode()
    try:
        write_together(folder, files)
    except OSError as error:
        raise ConfigError(
            f"The report must be written to `{folder}`, but that failed: {error.strerror}. Nothing was left there; "
            "name another folder (`--out`)."
        ) from None


def _print(
    log: Log,
    outcomes: Sequence[ReplayOutcome],
    doubts: Sequence[Doubt],
    folder: Path,
    verdict: tuple[str, bool] | None,
) -> None:
    console = Console()
    if verdict is not None:
        console.print(verdict[0], style="bold green" if verdict[1] else "bold yellow", highlight=False)
    for name, why in log.left_out.items():
        errors.print(f"no context: {name} ({why}); --context names those that are", highlight=False)
    for line, reason in log.bad.shown:
        errors.print(f"left out, line {line:,}: {reason}", highlight=False)
    title = f"{log.name}: {outcomes[0].rows:,} rows by {outcomes[0].evaluator}"
    level = outcomes[0].main["baseline"].level
    caption = f"baseline: {shown(outcomes[0].main['baseline'])} a round; [ ]: {precisely(level)} interval"
    table = _fitting(console, [_cells(outcome) for outcome in outcomes])
    table.title, table.caption = title, caption
    console.print(table)
    earned = outcomes[0].actions
    if 1 < len(earned) <= MOST_ACTIONS:
        console.print(_fitting(console, [{"action": name, **_earned(one)} for name, one in earned.items()]))
    alphas = ", ".join(f"{alpha:g}" for alpha in next((o.below for o in outcomes if o.spec.alpha is None), ()))
    if alphas:
        console.print(f"below floor: rounds; of {FREE}, which keeps none, by alpha {alphas}", highlight=False)
    for doubt in doubts:
        if doubt.is_doubtful:
            console.print(f"doubtful: {doubt.assumption} ({doubt.seen})", highlight=False)
    console.print(f"Wrote report.html, replay.json and the figures to {folder}/", highlight=False)


def _fitting(console: Console, rows: Sequence[Mapping[str, str]]) -> Table:
    """The rows as a table of the columns that the terminal has room for."""
    columns = list(rows[0])
    for dispensable in (None, *DISPENSABLE):
        columns = [name for name in columns if name != dispensable]
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for name in columns:
            table.add_column(name, justify="left" if name in ("", "action") else "right", no_wrap=True)
        for row in rows:
            table.add_row(*(row[name] for name in columns))
        if console.measure(table, options=console.options.update(width=UNLIMITED)).maximum <= console.width:
            break
    return table


def _cells(outcome: ReplayOutcome) -> dict[str, str]:
    """A row by its columns, the answer first; intervals in full are in the report."""
    alpha = outcome.spec.alpha
    return {
        "": outcome.spec.label if alpha is None else f"{outcome.spec.name} {alpha:g}",
        "lift": shown(outcome.main["gain"], signed=True),
        "reward": shown(outcome.main["reward"]),
        "learner": f"{outcome.learner_share:.0%}" if outcome.rounds else "–",
        "free from": "not yet" if outcome.free_from is None else f"{outcome.free_from:,}",
        "below floor": " / ".join(f"{number:,}" for number in outcome.below.values()) or "–",
        "rounds": f"{outcome.rounds:,}",
    }


def _earned(estimate: Estimate) -> dict[str, str]:
    return {"earned on average": shown(estimate), "rows": f"{estimate.rows:,}"}
