"""Rows of a sweep's table: the worlds, policies, alphas and rounds that it holds, and how to pick them."""

from collections.abc import Sequence

import polars as pl

from surefoot.errors import InputError

PAPER = ("LUCB", "CLUCB", "CLUCB2", "CLUCB2-exact")
ORDER = ("LUCB", "UCB", "CLUCB", "CLUCB2", "CLUCB2-exact", "ConservativeUCB", "SafeLUCB")
KEYS = ("world", "policy", "alpha", "horizon", "round", "measure", "watched")


def pooled(table: pl.DataFrame) -> pl.DataFrame:
    """The table with all seeds of a world taken together: means by their runs, errors of independent samples."""
    if "seed" not in table.columns or table["seed"].n_unique() == 1:
        return table
    share = pl.col("runs") / pl.col("runs").sum()
    together = table.group_by(KEYS, maintain_order=True).agg(
        (share * pl.col("mean")).sum().alias("mean"),
        # Seeds draw different realisations, so variances add up.
        ((share * pl.col("stderr")) ** 2).sum().sqrt().alias("stderr"),
        pl.col("runs").sum(),
    )
    # Quantiles of seeds cannot be pooled, and are left out.
    return together.select(*KEYS, "runs", "mean", "stderr")


def worlds(table: pl.DataFrame) -> list[str]:
    """The worlds of a table, in alphabetical order."""
    return sorted(table["world"].unique().to_list())


def instance_title(world: str) -> str:
    """'paper/as-written' as a heading: 'as written'."""
    return world.rsplit("/", 1)[-1].replace("-", " ")


def section5_worlds(table: pl.DataFrame) -> list[str]:
    """The worlds in which LUCB and CLUCB were both run, as Section 5 compares them."""
    names = [world for world in worlds(table) if {"LUCB", "CLUCB"} <= set(of_world(table, world)["policy"].unique())]
    if not names:
        raise InputError(f"Section 5 compares CLUCB with LUCB, but no world holds both: {worlds(table)}. Run both.")
    return names


def of_world(table: pl.DataFrame, world: str) -> pl.DataFrame:
    """The rows of one world."""
    rows = table.filter(pl.col("world") == world)
    if rows.is_empty():
        raise InputError(f"`world` must be in the table, but got {world!r}. It holds {', '.join(worlds(table))}.")
    return rows


def alphas_of(table: pl.DataFrame, policy: str) -> list[float]:
    """The alphas that a policy was run with, smallest first; none for LUCB."""
    alphas = table.filter(pl.col("policy") == policy)["alpha"].drop_nulls().unique().sort()
    return [float(alpha) for alpha in alphas]


def curve(table: pl.DataFrame, policy: str, alpha: float | None, measure: str) -> pl.DataFrame:
    """One policy's measure over rounds."""
    rows = table.filter((pl.col("policy") == policy) & (pl.col("measure") == measure))
    # In polars null == null is null: without eq_missing LUCB would have no rows.
    return rows.filter(pl.col("alpha").eq_missing(pl.lit(alpha, dtype=pl.Float64))).sort("round")


def last_checkpoint(table: pl.DataFrame, at_most: int) -> int:
    """The last round up to `at_most` that the table knows."""
    known = table.filter(pl.col("round") <= at_most)["round"].to_list()
    if not known:
        raise InputError(f"The table must have a round up to {at_most}, but has none. Keep more checkpoints.")
    return int(max(known))


def at_round(table: pl.DataFrame, policy: str, measure: str, round_: int) -> pl.DataFrame:
    """A policy's measure at one round, by alpha; a violated share by the alpha that was watched."""
    rows = table.filter((pl.col("policy") == policy) & (pl.col("measure") == measure) & (pl.col("round") == round_))
    return rows.sort("watched" if measure == "violated_share" else "alpha")


def panel_worlds(table: pl.DataFrame) -> list[str]:
    """The worlds that figures show: those of Section 5's comparison where there are any, else all."""
    try:
        return section5_worlds(table)
    except InputError:
        return worlds(table)


def policies_of(table: pl.DataFrame) -> list[str]:
    """What the table calls its policies: LUCB first, then the paper's, then ours, variants by name."""

    def rank(name: str) -> tuple[int, str]:
        kinds = [place for place, kind in enumerate(ORDER) if name == kind or name.startswith((f"{kind},", f"{kind} "))]
        return (kinds[0] if kinds else len(ORDER), name)

    return sorted(table["policy"].unique().to_list(), key=rank)


def conservative_of(table: pl.DataFrame) -> list[str]:
    """The policies that keep a floor."""
    return [policy for policy in policies_of(table) if alphas_of(table, policy)]


def paper_or_all(table: pl.DataFrame) -> list[str]:
    """The policies of the paper's own figures, where CLUCB was run; else all that there are."""
    names = policies_of(table)
    return [name for name in names if name in PAPER] if "CLUCB" in names else names


def curves_of(table: pl.DataFrame) -> list[tuple[str, float | None]]:
    """Every policy and alpha of the table."""
    return [(policy, alpha) for policy in policies_of(table) for alpha in (alphas_of(table, policy) or (None,))]


def all_alphas(table: pl.DataFrame, policies: Sequence[str]) -> list[float]:
    """The alphas that any of the policies was run with, smallest first."""
    return sorted({alpha for policy in policies for alpha in alphas_of(table, policy)})


def horizon_of(table: pl.DataFrame) -> int:
    """The last round of the table."""
    return int(max(table["round"].to_list()))


def runs_of(table: pl.DataFrame, policy: str | None = None) -> int:
    """How many realisations a policy was run in; the most of any policy by default."""
    rows = table if policy is None else table.filter(pl.col("policy") == policy)
    return int(max(rows["runs"].to_list()))


def legend_of(table: pl.DataFrame, policy: str) -> str:
    """A policy's name, with its runs where others have more."""
    runs = runs_of(table, policy)
    return policy if runs == runs_of(table) else f"{policy} ({runs:,} runs)"


def fewer(table: pl.DataFrame, policy: str, rival: str, alpha: float) -> float | None:
    """How many times fewer rounds of the baseline than its rival's; None where one was not run, or never needed it."""
    last = [curve(table, name, alpha, "baseline_rounds")["mean"].to_list() for name in (policy, rival)]
    if not all(last) or last[0][-1] <= 0:
        return None
    return float(last[1][-1] / last[0][-1])


def times(ratio: float) -> str:
    """A ratio to read, with three digits at most."""
    return f"{ratio:,.{0 if ratio >= 20 else 1 if ratio >= 3 else 2}f}×"


def number(value: float, digits: int = 4) -> str:
    """A number to read: no exponent where thousands are meant."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """A percentage to read: short, and never 0 unless it is."""
    if 0 < value < 0.005:
        return "<0.01"
    return f"{value:.{0 if value >= 9.95 or value == 0 else 1 if value >= 0.995 else 2}f}"
