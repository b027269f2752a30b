"""The tidy table of a simulation: one row per policy, checkpoint and measure, with mean, error and quantiles."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.simulation.atomic_files import whole_file
from surefoot.simulation.contestants import Entrant
from surefoot.simulation.engine import Outcome

if TYPE_CHECKING:
    import polars as pl

QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


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


def rows_of(world: str, seed: int, outcome: Outcome) -> Iterator[dict[str, Any]]:
    """The rows of one policy in one world."""
    for measure, watched, values in measures_of(outcome):
        runs = len(values)
        # A row for each point, so that every sum runs over numbers that lie side by side, as over one point alone.
        columns = np.ascontiguousarray(values.T)
        quantiles = np.quantile(columns, list(QUANTILES.values()), axis=1).T.tolist()
        errors = columns.std(axis=1, ddof=1) / math.sqrt(runs) if runs > 1 else np.full(len(columns), math.nan)
        told = zip(outcome.checkpoints.tolist(), columns.mean(axis=1).tolist(), errors.tolist(), quantiles, strict=True)
        for round_, mean, error, several in told:
            yield {
                "world": world,
                "policy": shown_name(outcome.spec),
                "alpha": outcome.spec.alpha,
                "seed": seed,
                "runs": runs,
                "horizon": int(outcome.checkpoints[-1]),
                "round": round_,
                "measure": measure,
                "watched": watched,
                "mean": mean,
                "stderr": error,
                **dict(zip(QUANTILES, several, strict=True)),
            }


def to_table(results: Iterable[tuple[str, int, Outcome]]) -> "pl.DataFrame":
    """All rows of several (world, seed, outcome), as a polars table."""
    import polars as pl

    # Named, for a column that holds only None would have no type of its own.
    types: dict[str, Any] = dict.fromkeys(("alpha", "watched", "mean", "stderr", *QUANTILES), pl.Float64)
    types |= dict.fromkeys(("seed", "runs", "horizon", "round"), pl.Int64)
    rows = [row for world, seed, outcome in results for row in rows_of(world, seed, outcome)]
    return pl.DataFrame(rows, schema_overrides=types)


def write_table(table: "pl.DataFrame", folder: Path, name: str) -> None:
    """Write the table as CSV and as Parquet, each whole or not at all."""
    for suffix, write in ((".csv", table.write_csv), (".parquet", table.write_parquet)):
        with whole_file(folder / f"{name}{suffix}") as file:
            write(file)
