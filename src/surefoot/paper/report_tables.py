"""The report's tables: claims, ratios, key numbers, what was run."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from surefoot.paper.claims import FIRST, SURE, Claim
from surefoot.paper.sweep_rows import (
    all_alphas,
    curve,
    curves_of,
    fewer,
    horizon_of,
    last_checkpoint,
    number,
    of_world,
    percent,
    policies_of,
    worlds,
)
from surefoot.reports.frame import Verdict, badge
from surefoot.reports.markup import Html, tag
from surefoot.reports.tables import row, table


def claim_table(claims: Iterable[Claim], title: str) -> Html:
    """Each sentence of the paper, what was measured, and the verdict."""
    return table(f"Claims, {title}", ("Verdict", "The paper", "Measured"), [_claim(c) for c in claims], "claims")


def _claim(claim: Claim) -> Html:
    held = badge(Verdict("✓ holds" if claim.holds else "✗ does not hold", is_good=claim.holds))
    judged = tag("details", tag("summary", "How it was judged"), claim.detail)
    return row(tag("td", held), claim.text, tag("td", claim.measured, judged))


def ratio_table(rows: pl.DataFrame, title: str, rivals: Mapping[str, str]) -> Html:
    """How many times fewer rounds of the baseline each policy of ours needs than the paper's, by alpha."""
    ours = [name for name in policies_of(rows) if name in rivals]
    alphas, body = all_alphas(rows, ours), []
    for name in ours:
        ratios = [fewer(rows, name, rivals[name], alpha) for alpha in alphas]
        body.append(row(rivals[name], *("–" if ratio is None else times(ratio) for ratio in ratios), head=name))
    heads = ("Rounds of the baseline, times fewer", "than the paper's", *(f"α = {alpha:g}" for alpha in alphas))
    return table(f"Ratios, {title}", heads, body, "numbers")


def number_table(rows: pl.DataFrame, title: str) -> Html:
    """Every policy and alpha: rounds of the baseline, regret, and rounds below the floor."""
    horizon, first = horizon_of(rows), last_checkpoint(rows, FIRST)
    heads = ("Policy", "α", "Runs", f"Baseline rounds of {horizon:,}", f"Regret per round at {horizon:,}",
             f"Below the floor, % of first {first:,}", f"% of all {horizon:,}")  # fmt: skip
    body = []
    for policy, alpha in curves_of(rows):
        played, regret = (
            curve(rows, policy, alpha, measure).row(-1, named=True)
            for measure in ("baseline_rounds", "regret_per_round")
        )
        below = [_below(rows, policy, alpha, round_) for round_ in (first, horizon)]
        head = ("–" if alpha is None else f"{alpha:g}", f"{played['runs']:,}")
        body.append(row(*head, _plus_minus(played), _plus_minus(regret), *below, head=policy))
    return table(f"Key numbers, {title}", heads, body, "numbers")


def _below(rows: pl.DataFrame, policy: str, alpha: float | None, round_: int) -> str:
    """The share of rounds below the floor; for a policy without one, over all alphas that were watched."""
    broken = curve(rows, policy, alpha, "violated_share").filter(pl.col("round") == round_).sort("watched")
    shares = [percent(100 * row["mean"]) for row in broken.iter_rows(named=True)]
    return shares[0] if len(shares) == 1 else f"{shares[0]} to {shares[-1]} (by α)" if shares else "–"


def scale_table(table_: pl.DataFrame) -> Html:
    """How much was run in every world."""
    body = []
    for world in worlds(table_):
        rows = of_world(table_, world)
        body.append(row(_several(rows), f"{horizon_of(rows):,}", str(len(curves_of(rows))), head=world))
    return table("What was run", ("World", "Runs", "Rounds", "Policies"), body, "numbers")


def _several(rows: pl.DataFrame) -> str:
    """The numbers of runs, largest first."""
    return " and ".join(f"{runs:,}" for runs in rows["runs"].unique().sort(descending=True))


def times(ratio: float) -> str:
    """A ratio, to three digits at most."""
    return f"{ratio:,.{0 if ratio >= 20 else 1 if ratio >= 3 else 2}f}×"


def most(rows: pl.DataFrame, column: str) -> int:
    """The largest number of a column."""
    return int(max(rows[column].to_list()))


def _plus_minus(row: dict[str, Any]) -> str:
    known = row["stderr"] is not None and math.isfinite(row["stderr"])
    return f"{number(row['mean'])} ± {number(SURE * row['stderr'], 2)}" if known else number(row["mean"])
