"""One HTML file about a reproduction of Section 5: charts, claims, numbers and settings, readable without a network.

Charts are plain Plotly descriptions, drawn by the JavaScript of the installed package, which the file carries along.
"""

import importlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import polars as pl

from surefoot.errors import ConfigError
from surefoot.paper.charts import CHARTS, curves_of, horizon_of
from surefoot.paper.claims import (
    FIRST,
    Claim,
    at_round,
    curve,
    judge,
    last_checkpoint,
    number,
    of_world,
    section5_worlds,
    worlds,
)
from surefoot.paper.figures import instance_title, percent, write_whole
from surefoot.paper.page import PAGE

INSTANCES = {
    "as-written": "Features and θ as the paper draws them. Mean rewards are then larger than 1, which the paper's own "
    "assumptions exclude; signals are strong, and everything is learned quickly.",
    "normalized": "The same draws, with θ divided by the best mean reward, so that the best action pays 1 and the "
    "paper's assumptions hold; signals are weaker, and learning takes longer.",
}


def write_report(
    table: pl.DataFrame, path: str | os.PathLike[str], *, settings: Mapping[str, object], note: str | None = None
) -> Path:
    """Write the page; the file appears whole or not at all."""
    names = section5_worlds(table)
    judged = {world: judge(table, world) for world in names}
    charts = {f"{kind}-{i}": make(of_world(table, w)) for i, w in enumerate(names) for kind, make in CHARTS.items()}
    page = Template(PAGE).substitute(
        note=f'<p class="note" role="note">{escape(note)}</p>' if note else "",
        glance=_glance(table, judged),
        worlds="".join(_section(table, world, judged[world], i) for i, world in enumerate(names)),
        others=_others(table, [world for world in worlds(table) if world not in names]),
        settings=_settings(settings),
        scale=_scale(table),
        charts=json.dumps(charts, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        plotly=_plotly(),
    )
    return write_whole(Path(path), page.encode())


def _glance(table: pl.DataFrame, judged: Mapping[str, list[Claim]]) -> str:
    cards = []
    for world, claims in judged.items():
        rows = of_world(table, world)
        first = last_checkpoint(rows, FIRST)
        worst = {name: max(at_round(rows, name, "violated_share", first)["mean"]) for name in ("LUCB", "CLUCB")}
        cards.append(
            f"<li><strong>{sum(claim.holds for claim in claims)} of {len(claims)}</strong> claims hold on the instance "
            f"“{escape(instance_title(world))}”. Below the floor in the first {first:,} rounds, at worst: "
            f"LUCB {percent(100 * worst['LUCB'])}% of them, CLUCB {percent(100 * worst['CLUCB'])}%.</li>"
        )
    return f'<ul class="cards">{"".join(cards)}</ul>'


def _section(table: pl.DataFrame, world: str, claims: Iterable[Claim], place: int) -> str:
    rows, title = of_world(table, world), escape(instance_title(world))
    runs, horizon, first = _most(rows, "runs"), horizon_of(rows), last_checkpoint(rows, FIRST)
    captions = {
        "regret": ("Regret per round over time", "Bands: mean ± 1.96 standard errors. Lower is better. Flat starts are "
                   "the conservative phase, in which the baseline plays. Drag to zoom, double-click to go back; "
                   "a click in the legend hides a line."),
        "violations": (f"Rounds below the floor, among the first {first:,}",
                       "A round counts when all that was earned so far is less than 1 − α of what the baseline would "
                       "have earned. Zero is shown as 0."),
        "horizon": (f"Regret per round after {horizon:,} rounds", "Bars: ± 1.96 standard errors. A smaller α promises "
                    "more and learns later."),
    }  # fmt: skip
    figures = "".join(
        f'<figure><h3>{heading}</h3><div class="chart" id="{kind}-{place}" role="img" aria-label="{heading}, {title}; '
        f'the numbers are in the table below"></div><figcaption>{text} {runs:,} runs.</figcaption></figure>'
        for kind, (heading, text) in captions.items()
    )
    return (
        f'<section aria-labelledby="world-{place}"><h2 id="world-{place}">Instance: {title}</h2>'
        f"<p>{escape(INSTANCES.get(world.rsplit('/', 1)[-1], ''))}</p>{figures}"
        f"<h3>What the paper says, and what we measured</h3>{_claim_table(claims, title)}"
        f"<h3>Key numbers</h3>{_number_table(rows, title)}</section>"
    )


def _claim_table(claims: Iterable[Claim], title: str) -> str:
    body = "".join(
        f'<tr><td><span class="{"yes" if c.holds else "no"}">{"✓ holds" if c.holds else "✗ does not hold"}</span></td>'
        f"<td>{escape(c.text)}</td><td>{escape(c.measured)}<details><summary>How it was judged</summary>"
        f"{escape(c.detail)}</details></td></tr>"
        for c in claims
    )
    return _scrolled(f"Claims, {title}", ("Verdict", "The paper", "Measured"), body, "claims")


def _number_table(rows: pl.DataFrame, title: str) -> str:
    horizon, first = horizon_of(rows), last_checkpoint(rows, FIRST)
    heads = ("Policy", "α", f"Baseline rounds of {horizon:,}", f"Regret per round at {horizon:,}",
             f"Below the floor, % of first {first:,}")  # fmt: skip
    body = ""
    for policy, alpha in curves_of(rows):
        played, regret = (
            curve(rows, policy, alpha, measure).row(-1, named=True)
            for measure in ("baseline_rounds", "regret_per_round")
        )
        broken = curve(rows, policy, alpha, "violated_share").filter(pl.col("round") == first).sort("watched")
        shares = [f"{percent(100 * row['mean'])}" for row in broken.iter_rows(named=True)]
        below = shares[0] if len(shares) == 1 else f"{shares[0]} to {shares[-1]} (by α)" if shares else "–"
        shown = ("–" if alpha is None else f"{alpha:g}", _plus_minus(played), _plus_minus(regret), below)
        body += f'<tr><th scope="row">{policy}</th>{"".join(f"<td>{cell}</td>" for cell in shown)}</tr>'
    return _scrolled(f"Key numbers, {title}", heads, body, "numbers")


def _others(table: pl.DataFrame, names: list[str]) -> str:
    parts = [
        f"<h3>{escape(world)}</h3><p>{_most(rows, 'runs'):,} runs of {horizon_of(rows):,} rounds.</p>"
        f"{_number_table(rows, escape(world))}"
        for world in names
        for rows in (of_world(table, world),)
    ]
    return f"<section><h2>Other runs</h2>{''.join(parts)}</section>" if parts else ""


def _scale(table: pl.DataFrame) -> str:
    body = ""
    for world in worlds(table):
        rows = of_world(table, world)
        body += (
            f'<tr><th scope="row">{escape(world)}</th><td>{_most(rows, "runs"):,}</td><td>{horizon_of(rows):,}</td>'
            f"<td>{len(curves_of(rows))}</td></tr>"
        )
    return _scrolled("What was run", ("World", "Runs", "Rounds", "Policies"), body, "numbers")


def _settings(settings: Mapping[str, object]) -> str:
    rows = "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd>" for name, value in settings.items())
    return f"<dl>{rows}</dl>"


def _scrolled(label: str, heads: Iterable[str], body: str, kind: str) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table class="{kind}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _plus_minus(row: dict[str, Any]) -> str:
    known = row["stderr"] is not None and math.isfinite(row["stderr"])
    return f"{number(row['mean'])} ± {number(row['stderr'], 2)}" if known else number(row["mean"])


def _most(rows: pl.DataFrame, column: str) -> int:
    return int(max(rows[column].to_list()))


def _plotly() -> str:
    try:
        return str(importlib.import_module("plotly.offline").get_plotlyjs())
    except ModuleNotFoundError as missing:
        raise ConfigError(
            "The interactive report needs plotly, but it is not installed: pip install plotly"
        ) from missing
