"""The tidy table of a simulation: one row per policy, checkpoint and measure, with mean, error and quantiles."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from surefoot.simulation.atomic_files import whole_file
from surefoot.simulation.contestants import Entrant
from surefoot.simulation.engine import Outcome

if TYPE_CHECKING:
    import polars as pl

QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}

Columns: TypeAlias = dict[str, list[Any]]
COLUMNS = {
    "world": str,
    "policy": str,
    "alpha": float,
    "seed": int,
    "runs": int,
    "horizon": int,
    "round": int,
    "measure": str,
    "watched": float,
    "mean": float,
    "stderr": float,
    **dict.fromkeys(QUANTILES, float),
}


def measures_of(outcome: Outcome) -> Iterator[tuple[str, float | None, Any]]:
    """Every measure of the table: its name, the alpha that violations are judged by, and its values (runs, points)."""
    rounds = outcome.checkpoints.astype(np.float64)
    measures = outcome.measures
    yield "regret", None, measures["regret"]
    yield "regret_per_round", None, measures["regret"] / rounds
    yield "reward", None, measures["earned"]
    yield "baseline_reward", None, measures["owed"]
    yield "baseline_rounds", None, measures["baseline_rounds"]
    yield "baseline_share", None, measures["baseline_rounds"] / rounds
    yield "last_baseline_round", None, measures["last_baseline"]
    yield "worst_share", None, measures["worst_share"]
    own = [outcome.spec.alpha] if outcome.spec.alpha is not None else list(outcome.watched)
    for alpha in own:
        yield "violated_share", alpha, outcome.violations[:, :, outcome.watched.index(alpha)] / rounds


def shown_name(spec: Entrant) -> str:
    """What the table calls a policy: its own name if it has one, so that variants stay apart."""
    return spec.name or spec.policy


def columns_of(world: str, seed: int, outcome: Outcome) -> Columns:
    """The rows of one policy in one world, column by column."""
    rows: Columns = {name: [] for name in COLUMNS}
    points, rounds = len(outcome.checkpoints), outcome.checkpoints.tolist()
    for measure, watched, values in measures_of(outcome):
        runs = len(values)
        # A row for each point, so that every sum runs over numbers that lie side by side, as over one point alone.
        columns = np.ascontiguousarray(values.T)
        errors = columns.std(axis=1, ddof=1) / math.sqrt(runs) if runs > 1 else np.full(points, math.nan)
        quantiles = np.quantile(columns, list(QUANTILES.values()), axis=1).tolist()
        told = (world, shown_name(outcome.spec), outcome.spec.alpha, seed, runs, rounds[-1], measure, watched)
        same = ("world", "policy", "alpha", "seed", "runs", "horizon", "measure", "watched")
        found: Columns = {name: [value] * points for name, value in zip(same, told, strict=True)}
        found |= {"round": rounds, "mean": columns.mean(axis=1).tolist(), "stderr": errors.tolist()}
        found |= zip(QUANTILES, quantiles, strict=True)
        for name in COLUMNS:
            rows[name] += found[name]
    return rows


def to_table(policies: Iterable[Columns]) -> "pl.DataFrame":
    """The rows of several policies, as a polars table."""
    import polars as pl

    rows: Columns = {name: [] for name in COLUMNS}
    for columns in policies:
        for name in COLUMNS:
            rows[name] += columns[name]
    # Named, for a column that holds only None would have no type of its own.
    types = {str: pl.String, int: pl.Int64, float: pl.Float64}
    return pl.DataFrame(rows, schema={name: types[kind] for name, kind in COLUMNS.items()})


def write_table(table: "pl.DataFrame", folder: Path, name: str) -> None:
    """Write the table as CSV and as Parquet, each whole or not at all."""
    for suffix, write in ((".csv", table.write_csv), (".parquet", table.write_parquet)):
        with whole_file(folder / f"{name}{suffix}") as file:
            write(file)
