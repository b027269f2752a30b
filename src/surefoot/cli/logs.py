"""`surefoot replay` and `surefoot fit-baseline`: what a log of your own says."""

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from surefoot.cli.options import parse_numbers, progress_bar, stderr
from surefoot.errors import ConfigError
from surefoot.experiment.configuration import read_configuration
from surefoot.linear.encoding import Column, Encoder, HashedColumn, NumericColumn
from surefoot.replay.baseline_fit import Fit, configuration_of
from surefoot.replay.baseline_fit import fit_baseline as fit
from surefoot.replay.columns import Columns, guess_columns
from surefoot.replay.comparison import Comparison, compare
from surefoot.replay.doubts import Doubt
from surefoot.replay.estimates import Estimate
from surefoot.replay.evaluation import EvaluatorName, ReplayOutcome
from surefoot.replay.propensities import estimate_propensities
from surefoot.replay.replayed_policy import GUARD, PLAYABLE
from surefoot.replay.table_files import open_table
from surefoot.replay.table_log import TableLog, kind_of, read_items, read_log
from surefoot.replay.verdict import lift_text, of_differing, shown
from surefoot.scalars import precisely

LogArgument = Annotated[
    list[Path], typer.Argument(help="Parquet, CSV, JSON lines (.gz too) or VW's DSJSON; several files make one log.")
]
BaselineOption = Annotated[str, typer.Option(help="Today's action, or 'logged' for the strategy that wrote the log.")]
ActionColumn = Annotated[str | None, typer.Option("--action", help="Column of the action that was played.")]
RewardColumn = Annotated[str | None, typer.Option("--reward", help="Column of its reward.")]
PropensityColumn = Annotated[
    str | None, typer.Option("--propensity", help="Column of the probability with which it was chosen.")
]
Context = Annotated[
    list[str] | None, typer.Option("--context", help="Context columns or patterns: age,plan,x*; or repeat it.")
]
Categorical = Annotated[list[str] | None, typer.Option(help="Context columns whose numbers are labels.")]
BaselineColumn = Annotated[str | None, typer.Option(help="Column of the action that the baseline would play.")]
OfferedColumn = Annotated[
    str | None,
    typer.Option("--offered", help="Column of the actions that could be played, where they change: a list, or a|b."),
]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column of ids, which must not repeat.")]
ActionFeatures = Annotated[
    Path | None,
    typer.Option(
        help="CSV with a line per action: its name, then numbers or labels, to be multiplied with the context."
    ),
]
Hashed = Annotated[
    list[str] | None,
    typer.Option(
        "--hash", help="Context column with very many labels, and buckets: user_agent:64; repeat for several."
    ),
]
RewardBounds = Annotated[
    str | None, typer.Option("--reward-bounds", help="Bounds on every single reward, such as 0,1.")
]
Exploration = Annotated[
    float | None,
    typer.Option("--exploration", help="LUCB's radius as a constant (LinUCB's alpha), which costs its regret bound."),
]
Uniform = Annotated[bool, typer.Option("--uniform", help="Every action had the same probability.")]
EstimatePropensities = Annotated[
    bool, typer.Option("--estimate-propensities", help="Estimate the propensity of each action from the context.")
]
FormatOption = Annotated[str | None, typer.Option(help="parquet, csv, jsonl or dsjson; by the file's name by default.")]
MaxBad = Annotated[int, typer.Option(help="Number of bad rows to skip before giving up.")]


DISPENSABLE = ("reward", "rounds", "free from", "below floor", "of differing")  # baseline and lift tell the reward, too
UNLIMITED = 10_000  # columns of a terminal
MOST_ACTIONS = 20  # that a terminal lists; the report has them all


def columns_of(
    paths: Sequence[Path],
    format_: str | None,
    action: str | None,
    reward: str | None,
    propensity: str | None,
    context: list[str] | None,
    categorical: list[str] | None,
    baseline: str | None,
    id_: str | None,
    label: str | None = None,
    offered: str | None = None,
    hashed: list[str] | None = None,
) -> Columns | None:
    """The columns that were named, completed from the header; None if none was named."""
    named_columns = (action, reward, propensity, context, categorical, baseline, id_, label, offered, hashed)
    if format_ not in (None, "parquet", "csv", "jsonl", "dsjson"):
        raise ConfigError(f"`--format` must be parquet, csv, jsonl or dsjson, but got {format_!r}.")
    if not any(named_columns):
        return None
    kind = format_ or kind_of(paths)
    if kind == "dsjson":
        raise ConfigError(
            "Columns must not be named for DSJSON (--action, --context, --hash and so on): its names are fixed."
        )
    header = open_table(paths[0], kind).header
    context, categorical = separate(context, header), separate(categorical, header)
    guessed = guess_columns(header)
    named = {name for name in (action, reward, propensity, baseline, id_, label, offered) if name}
    left = tuple(name for name in guessed.context if name not in named)
    return Columns(
        action=action or guessed.action,
        reward=None if label else reward or guessed.reward,
        propensity=propensity or guessed.propensity,
        context=tuple(context) if context else left,
        categorical=(*(categorical or ()), *guessed.categorical),
        baseline=baseline or guessed.baseline,
        id=id_ or guessed.id,
        offered=offered or guessed.offered,
        features=None if context else guessed.features,
        is_guess=guessed.is_guess and not context,
        hashed=_parse_hashes(hashed or []),
    )


def refuse_both(uniform: bool, estimated: bool) -> None:
    """Propensities are stated or estimated."""
    if uniform and estimated:
        raise ConfigError("`--uniform` states what `--estimate-propensities` estimates: give one of them.")


def separate(names: list[str] | None, known: Sequence[str]) -> list[str] | None:
    """Names that may be separated by commas, unless one with a comma is known."""
    if names is None:
        return None
    return [part for name in names for part in ([name] if name in known else map(str.strip, name.split(",")))]


def refuse_other_columns(
    encoder: Encoder, context: list[str] | None, categorical: list[str] | None, hashed: list[str] | None
) -> None:
    """Options that say otherwise than a configuration, which alone decides how a context is read."""
    names = [part.name for part in encoder.parts]
    labels = [part.name for part in encoder.parts if not isinstance(part, NumericColumn)]
    context, categorical = separate(context, names), separate(categorical, names)
    for option, given, known in (("--context", context, names), ("--categorical", categorical, labels)):
        if odd := [pattern for pattern in given or () if not any(_is_among(name, [pattern]) for name in known)]:
            raise ConfigError(_otherwise(option, odd[0], encoder))
    if context and (left := [name for name in names if not _is_among(name, context)]):
        raise ConfigError(_otherwise("--context", f"{', '.join(context)} without {left[0]}", encoder))
    for name, buckets in _parse_hashes(hashed or []).items():
        if HashedColumn(name, buckets) not in encoder.parts:
            raise ConfigError(_otherwise("--hash", f"{name}:{buckets}", encoder))


def _is_among(name: str, patterns: list[str]) -> bool:
    names = (name, re.sub(r"\[\d+\]$", "", name))  # an entry of a list is a column of its own
    return any(one == pattern or fnmatch.fnmatchcase(one, pattern) for one in names for pattern in patterns)


def _otherwise(option: str, given: str, encoder: Encoder) -> str:
    return (
        f"`{option}` must agree with the configuration, which says how a context is read, but got {given}. Its columns "
        f"are {', '.join(_shown_part(part) for part in encoder.parts)}. Leave the option out, or fit again."
    )


def _shown_part(part: Column) -> str:
    kind = f"{part.buckets} buckets" if isinstance(part, HashedColumn) else "labels"
    return part.name if isinstance(part, NumericColumn) else f"{part.name} ({kind})"


def _parse_hashes(texts: list[str]) -> dict[str, int]:
    buckets = dict(map(_parse_hash, texts))
    if len(buckets) < len(texts):
        raise ConfigError(f"`--hash` must name every column once, but got {', '.join(texts)}.")
    return buckets


def _parse_hash(text: str) -> tuple[str, int]:
    name, _, buckets = text.rpartition(":")
    if not name or not buckets.isdecimal() or len(buckets) > 9:
        raise ConfigError(
            f"`--hash` must be a column and a number of buckets, such as user_agent:64, but got {text!r}."
        )
    return name, int(buckets)


def parse_pair(text: str | None) -> tuple[float, float] | None:
    """Two numbers between which rewards lie."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"`--reward-bounds` must be two numbers, such as 0,1, but got {text!r}.") from None
    if not low < high:
        raise ConfigError(f"`low < high` must hold for `--reward-bounds`, but got {text!r}.")
    return low, high


def read_action_features(path: Path | None, action: str | None = None) -> dict[str, tuple[float, ...]] | None:
    """Features of every action, from a table of its own: its name, then numbers, or labels as 0s and a 1."""
    return None if path is None else read_items(path, action)


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
        typer.Option(
            help="experiment.toml, as fit-baseline writes it: its policy is played. Default: fit one from this log."
        ),
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
    seed: Annotated[int, typer.Option(help="Seed for rejecting rows.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder; results/replay-NAME by default.")] = None,
    per_day: Annotated[
        float | None, typer.Option(help="Your traffic in rounds a day, to show the wait in days.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table; write no files.")] = False,
) -> None:
    """Show what policies would have done on your log.

    Prints a table, and writes report.html, replay.json and figures.
    """
    refuse_both(uniform, estimate_chances)
    live = read_configuration(config) if config is not None else None
    if live is not None:
        refuse_other_columns(live.encoder, context, categorical, hashed)
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
    read = read_log(
        log,
        format=cast("Any", format),
        columns=columns,
        baseline=live.baseline if live is not None and live.baseline and baseline == "logged" else baseline,
        actions=live.actions if live is not None else None,
        encoder=live.encoder if live is not None else None,
        action_features=read_action_features(action_features, action) or (live.action_features if live else None),
        max_bad=max_bad,
    )
    with nullcontext(None) if as_json else progress_bar("replaying", "rows") as report:
        comparison = compare(
            estimate_propensities(read) if estimate_chances else read,
            policies=policy,
            configuration=live,
            alphas=None if alpha is None else parse_numbers("--alpha", alpha),
            evaluator=cast("EvaluatorName", evaluator or ("full" if label else "rejection")),
            uniform=uniform,
            reward_bounds=parse_pair(reward_bounds),
            noise=noise,
            theta_bound=theta_bound,
            baseline_reward=baseline_reward,
            delta=delta,
            ridge=ridge,
            exploration=exploration,
            level=level,
            seed=seed,
            per_day=per_day,
            progress=report,
        )
    if as_json:
        typer.echo(json.dumps(comparison.as_dict(), indent=2, ensure_ascii=False))
        return
    folder = out or Path("results") / f"replay-{log[0].name.split('.')[0]}"
    comparison.write(folder)
    _print(comparison)
    Console().print(f"Wrote report.html, replay.json and the figures to {folder}/", highlight=False)


def _print(comparison: Comparison) -> None:
    console, log, outcomes = Console(), comparison.log, comparison.outcomes
    if comparison.verdict is not None:
        text, is_good = comparison.verdict
        console.print(text, style="bold green" if is_good else "bold yellow", highlight=False)
    for name, why in log.left_out.items():
        stderr.print(f"no context: {name} ({why}); --context names those that are", highlight=False)
    for line, reason in log.bad.shown:
        stderr.print(f"left out, line {line:,}: {reason}", highlight=False)
    baseline = outcomes[0].main["baseline"]
    table = _fitting(console, [_cells(outcome, comparison.doubts) for outcome in outcomes])
    table.title = f"{log.name}: {outcomes[0].rows:,} rows by {outcomes[0].evaluator}"
    table.caption = f"baseline: {shown(baseline)} a round; [ ]: {precisely(baseline.level)} interval"
    console.print(table)
    earned = outcomes[0].actions
    if 1 < len(earned) <= MOST_ACTIONS:
        console.print(_fitting(console, [{"action": name, **_earned(one)} for name, one in earned.items()]))
    alphas = ", ".join(f"{alpha:g}" for alpha in next((o.below for o in outcomes if o.spec.alpha is None), ()))
    if alphas:
        console.print(f"below floor: rounds; of LUCB, which keeps none, by alpha {alphas}", highlight=False)
    for doubt in comparison.doubts:
        if doubt.is_doubtful:
            console.print(f"doubtful: {doubt.assumption} ({doubt.seen})", highlight=False)


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


def _cells(outcome: ReplayOutcome, doubts: Sequence[Doubt]) -> dict[str, str]:
    """A row by its columns, the answer first; intervals in full are in the report."""
    alpha = outcome.spec.alpha
    return {
        "": outcome.spec.label if alpha is None else f"{outcome.spec.name} {alpha:g}",
        "lift": lift_text(outcome, outcome.main["gain"], doubts),
        "reward": shown(outcome.main["reward"]),
        "learner": f"{outcome.learner_share:.0%}" if outcome.rounds else "–",
        "of differing": of_differing(outcome),
        "free from": "not yet" if outcome.free_from is None else f"{outcome.free_from:,}",
        "below floor": " / ".join(f"{number:,}" for number in outcome.below.values()) or "–",
        "rounds": f"{outcome.rounds:,}",
    }


def _earned(estimate: Estimate) -> dict[str, str]:
    return {"earned on average": shown(estimate), "rows": f"{estimate.rows:,}"}


CONFIGURED = (
    "policy", "alpha", "delta", "ridge", "radius", "exploration", "reward_window", "default_reward", "despite_doubt",
)  # fmt: skip


def fit_baseline(
    called: typer.Context,
    log: LogArgument,
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
    action_features: ActionFeatures = None,
    uniform: Uniform = False,
    estimate_chances: EstimatePropensities = False,
    reward_bounds: RewardBounds = None,
    policy: Annotated[str, typer.Option(help="Policy to write into the configuration.")] = "SafeLUCB",
    alpha: Annotated[float, typer.Option(help="Share of the baseline's reward you accept losing.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Probability that the guarantee fails.")] = 0.001,
    ridge: Annotated[float | None, typer.Option(help="Regulariser; the policy's own by default.")] = None,
    radius: Annotated[
        str | None, typer.Option(help="Radius of the confidence set; the policy's own by default.")
    ] = None,
    exploration: Exploration = None,
    reward_window: Annotated[float | None, typer.Option(help="Seconds until a reward is learned.")] = None,
    default_reward: Annotated[
        float | None, typer.Option(help="Reward assumed when none arrives within the window.")
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    format: FormatOption = None,  # noqa: A002
    max_bad: MaxBad = 0,
    out: Annotated[Path | None, typer.Option(help="Write the configuration to this TOML file.")] = None,
    despite_doubt: Annotated[
        bool, typer.Option("--despite-doubt", help="Write it although the log casts doubt on a linear model.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Estimate from a log what an experiment declares.

    That is the baseline's reward, the noise and the bounds; what the guarantee assumes is tested. --out writes them.
    """
    refuse_both(uniform, estimate_chances)
    if out is None:
        _refuse_policy_options(called)
    columns = columns_of(
        log,
        format,
        action,
        reward,
        propensity,
        context,
        categorical,
        baseline_column,
        id_column,
        offered=offered,
        hashed=hashed,
    )
    read = read_log(
        log,
        format=cast("Any", format),
        columns=columns,
        baseline=baseline,
        action_features=read_action_features(action_features, action),
        max_bad=max_bad,
    )
    log_read = estimate_propensities(read) if estimate_chances else read
    fitted = fit(log_read, level=level, reward_bounds=parse_pair(reward_bounds), uniform=uniform)
    if out is not None:
        if not isinstance(read, TableLog) or read.columns.features is not None:
            raise ConfigError("A configuration needs a table with context columns; this log brings its own features.")
        configuration = configuration_of(
            fitted,
            read,
            policy=policy,
            alpha=alpha,
            delta=delta,
            ridge=ridge,
            radius=radius,
            reward_bounds=parse_pair(reward_bounds),
            reward_window=reward_window,
            default_reward=default_reward,
            despite_doubt=despite_doubt,
            exploration=exploration,
        )
        configuration.new_policy()  # a configuration that no policy accepts is not written
        configuration.write(out)
    if as_json:
        typer.echo(json.dumps(fitted.as_dict(), indent=2, ensure_ascii=False))
        return
    for name, why in read.left_out.items():
        stderr.print(f"no context: {name} ({why}); --context names those that are", highlight=False)
    _print_fit(fitted, read.name, out)


def _refuse_policy_options(called: typer.Context) -> None:
    """Without a file to write they would change nothing, and nobody would be told."""
    sources = {name: called.get_parameter_source(name) for name in CONFIGURED}
    options = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if options:
        names = ", ".join(f"`--{name.replace('_', '-')}`" for name in options)
        raise ConfigError(
            f"{names} must come with `--out`: what is estimated from the log does not depend on a policy."
        )


def _print_fit(fitted: Fit, name: str, out: Path | None) -> None:
    console = Console()
    table = Table("", "estimate", "interval", "to declare", title=f"{name}: {fitted.rows:,} rows")
    low, high = fitted.reward_bounds
    for what, estimate, declared in (
        ("baseline's mean reward", fitted.baseline_reward, f"{fitted.baseline_reward.value:.4g}"),
        ("noise (standard deviation)", fitted.noise, f"{fitted.declared.noise:.4g}"),
        ("||theta||", fitted.theta_norm, f"{fitted.theta_bound:.4g}"),
    ):
        interval = f"{estimate.low:.4g} to {estimate.high:.4g} ({precisely(estimate.level)})"
        table.add_row(what, f"{estimate.value:.4g}", interval, declared)
    table.add_row("length of features", "", "", f"{fitted.feature_bound:.4g}")
    table.add_row("rewards", "", f"{low:.4g} to {high:.4g}", "")
    console.print(table)
    console.print(f"The baseline's reward is {fitted.baseline_rests_on}.", highlight=False)
    console.print("Noise to declare is half the range of rewards, which holds whatever their distribution.")
    console.print(
        "theta's bound is the length of the longest theta that the rows and the range of rewards leave possible."
    )
    doubts = Table("", "assumption", "seen in the log")
    for doubt in fitted.doubts:
        doubts.add_row("DOUBTFUL" if doubt.is_doubtful else "no doubt", doubt.assumption, doubt.seen)
    console.print(doubts)
    if out is not None:
        console.print(f"Wrote {out}", highlight=False)
