"""`surefoot fit-baseline LOG`: estimate the baseline from a log, and write a configuration."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

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
)
from surefoot.cli.progress import console as errors
from surefoot.errors import ConfigError
from surefoot.replay.baseline_fit import Fit
from surefoot.replay.baseline_fit import fit_baseline as fit
from surefoot.replay.fitted_configuration import configuration_of
from surefoot.replay.log_files import TableLog
from surefoot.replay.open_log import read_log
from surefoot.replay.propensity_model import estimate_propensities, with_estimates
from surefoot.scalars import precisely

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
        float | None, typer.Option(help="What is learned if no reward came within the window.")
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
    found = fit(log_read, level=level, reward_bounds=parse_pair(reward_bounds), uniform=uniform)
    found = replace(found, doubts=with_estimates(found.doubts, log_read))
    if out is not None:
        if not isinstance(read, TableLog) or read.columns.features is not None:
            raise ConfigError("A configuration needs a table with context columns; this log brings its own features.")
        configuration = configuration_of(
            found,
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
        typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
        return
    for name, why in read.left_out.items():
        errors.print(f"no context: {name} ({why}); --context names those that are", highlight=False)
    _print(found, read.name, out)


def _refuse_policy_options(called: typer.Context) -> None:
    """Without a file to write they would change nothing, and nobody would be told."""
    sources = {name: called.get_parameter_source(name) for name in CONFIGURED}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        told = ", ".join(f"`--{name.replace('_', '-')}`" for name in given)
        raise ConfigError(f"{told} must come with `--out`: what is estimated from the log does not depend on a policy.")


def _print(found: Fit, name: str, out: Path | None) -> None:
    console = Console()
    table = Table("", "estimate", "interval", "to declare", title=f"{name}: {found.rows:,} rows")
    low, high = found.reward_bounds
    for what, estimate, declared in (
        ("baseline's mean reward", found.baseline_reward, f"{found.baseline_reward.value:.4g}"),
        ("noise (standard deviation)", found.noise, f"{found.declared.noise:.4g}"),
        ("||theta||", found.theta_norm, f"{found.theta_bound:.4g}"),
    ):
        interval = f"{estimate.low:.4g} to {estimate.high:.4g} ({precisely(estimate.level)})"
        table.add_row(what, f"{estimate.value:.4g}", interval, declared)
    table.add_row("length of features", "", "", f"{found.feature_bound:.4g}")
    table.add_row("rewards", "", f"{low:.4g} to {high:.4g}", "")
    console.print(table)
    console.print(f"The baseline's reward is {found.baseline_rests_on}.", highlight=False)
    console.print("Noise to declare is half the range of rewards, which holds whatever their distribution.")
    console.print(
        "theta's bound is the length of the longest theta that the rows and the range of rewards leave possible."
    )
    doubts = Table("", "assumption", "seen in the log")
    for doubt in found.doubts:
        doubts.add_row("DOUBTFUL" if doubt.is_doubtful else "no doubt", doubt.assumption, doubt.seen)
    console.print(doubts)
    if out is not None:
        console.print(f"Wrote {out}", highlight=False)
