"""One HTML file about a reproduction of Section 5: charts, claims, numbers and settings, readable without a network.

Charts are plain Plotly descriptions, drawn by the JavaScript of the installed package, which the file carries along.
"""

import importlib
import json
import math
import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template

import polars as pl

from surefoot.errors import ConfigError
from surefoot.paper.charts import CHARTS
from surefoot.paper.claims import FIRST, Claim, judge
from surefoot.paper.paper_figures import instance_title, percent
from surefoot.paper.paper_page import PAGE
from surefoot.paper.report_tables import claim_table, most, number_table, ratio_table, scale_table, times
from surefoot.paper.sweep_rows import (
    all_alphas,
    at_round,
    fewer,
    horizon_of,
    last_checkpoint,
    of_world,
    panel_worlds,
    policies_of,
    pooled,
    runs_of,
    worlds,
)
from surefoot.simulation.atomic_files import whole_file

INSTANCES = {
    "as-written": "Features and θ as the paper draws them. Mean rewards are then larger than 1, which the paper's own "
    "assumptions exclude; signals are strong, and everything is learned quickly.",
    "normalized": "The same draws, with θ divided by the best mean reward, so that the best action pays 1 and the "
    "paper's assumptions hold; signals are weaker, and learning takes longer.",
}


USUAL = 0.1  # the alpha that is shown first
SAFE = (
    "SafeLUCB is not in the paper. It makes the same promise with the same α, but proves each move by everything that "
    "is known at once: the data, the bounds on noise and θ, a floor under the baseline's reward and, where it is told "
    "so, that every mean lies in [0, 1] or what the baseline earns. So it needs the baseline for fewer rounds. "
    "Where the paper's policy is still conservative at the horizon, the ratio is cut short."
)


def write_report(
    table: pl.DataFrame,
    path: str | os.PathLike[str],
    *,
    settings: Mapping[str, object],
    note: str | None = None,
    rivals: Mapping[str, str] | None = None,
) -> Path:
    """Write the page; the file appears whole or not at all.

    `rivals` names for a policy of ours the one of the paper that its conservative rounds are held against.
    """
    table = pooled(table)
    names, against = panel_worlds(table), rivals or {}
    judged = {world: _judged(table, world) for world in names}
    charts = {f"{kind}-{i}": make(of_world(table, w)) for i, w in enumerate(names) for kind, make in CHARTS.items()}
    page = Template(PAGE).substitute(
        note=f'<p class="note" role="note">{escape(note)}</p>' if note else "",
        glance=_glance(table, judged, against),
        worlds="".join(_section(table, world, judged[world], i, against) for i, world in enumerate(names)),
        others=_others(table, [world for world in worlds(table) if world not in names]),
        settings=_settings(settings),
        scale=scale_table(table),
        charts=json.dumps(charts, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        plotly=_plotly(),
    )
    with whole_file(Path(path)) as file:
        file.write(page.encode())
    return Path(path)


def _judged(table: pl.DataFrame, world: str) -> list[Claim]:
    """Section 5's claims, where LUCB and CLUCB were both run; none elsewhere."""
    return judge(table, world) if {"LUCB", "CLUCB"} <= set(policies_of(of_world(table, world))) else []


def _glance(table: pl.DataFrame, judged: Mapping[str, list[Claim]], rivals: Mapping[str, str]) -> str:
    cards = "".join(_card(of_world(table, world), world, claims, rivals) for world, claims in judged.items())
    return f'<ul class="cards">{cards}</ul>'


def _card(rows: pl.DataFrame, world: str, claims: list[Claim], rivals: Mapping[str, str]) -> str:
    title = escape(instance_title(world))
    held = sum(claim.holds for claim in claims)
    head = f"<strong>{held} of {len(claims)}</strong> claims hold on the instance “{title}”." if claims else (
        f"<strong>{title}</strong>")  # fmt: skip
    return f"<li>{head} {_worst(rows, rivals)}{_ratios(rows, rivals)}</li>"


def _worst(rows: pl.DataFrame, rivals: Mapping[str, str]) -> str:
    """The largest share of rounds below the floor of LUCB, CLUCB and ours; of all where CLUCB was not run."""
    first, names = last_checkpoint(rows, FIRST), policies_of(rows)
    if "CLUCB" in names:
        names = [name for name in names if name in ("LUCB", "CLUCB") or name in rivals]
    shares = {name: at_round(rows, name, "violated_share", first)["mean"].to_list() for name in names}
    said = [f"{escape(name)} {percent(100 * max(found))}%" for name, found in shares.items() if found]
    return f"Below the floor in the first {first:,} rounds, at worst: {'; '.join(said)} of them."


def _ratios(rows: pl.DataFrame, rivals: Mapping[str, str]) -> str:
    """How many times fewer rounds of the baseline ours need, at the alpha nearest to 0.1."""
    ours = [name for name in policies_of(rows) if name in rivals]
    alpha = min(all_alphas(rows, ours), key=lambda alpha: abs(math.log(alpha / USUAL)), default=USUAL)
    ratios = {name: fewer(rows, name, rivals[name], alpha) for name in ours}
    said = [
        f"{times(ratio)} with {escape(name)}, against {escape(rivals[name])}" for name, ratio in ratios.items() if ratio
    ]
    return f" Times fewer rounds of the baseline at α = {alpha:g}: {'; '.join(said)}." if said else ""


def _section(table: pl.DataFrame, world: str, claims: list[Claim], place: int, rivals: Mapping[str, str]) -> str:
    rows, title = of_world(table, world), escape(instance_title(world))
    runs = _runs(rows)
    figures = "".join(
        f'<figure><h3>{heading}</h3><div class="chart" id="{kind}-{place}" role="img" aria-label="{heading}, {title}; '
        f'the numbers are in the table below"></div><figcaption>{text} {runs}</figcaption></figure>'
        for kind, (heading, text) in _captions(rows).items()
    )
    ours = any(name in rivals for name in policies_of(rows))
    safe = f"<h3>Beyond the paper: SafeLUCB</h3><p>{SAFE}</p>{ratio_table(rows, title, rivals)}" if ours else ""
    judged = f"<h3>What the paper says, and what we measured</h3>{claim_table(claims, title)}" if claims else ""
    return (
        f'<section aria-labelledby="world-{place}"><h2 id="world-{place}">Instance: {title}</h2>'
        f"<p>{escape(INSTANCES.get(world.rsplit('/', 1)[-1], ''))}</p>{figures}{safe}{judged}"
        f"<h3>Key numbers</h3>{number_table(rows, title)}</section>"
    )


def _runs(rows: pl.DataFrame) -> str:
    """How many runs; a legend names the policies that had fewer."""
    whole = most(rows, "runs")
    fewer_runs = any(runs_of(rows, name) < whole for name in policies_of(rows))
    return f"{whole:,} runs{', fewer where the legend says so' if fewer_runs else ''}."


def _captions(rows: pl.DataFrame) -> dict[str, tuple[str, str]]:
    horizon, first = horizon_of(rows), last_checkpoint(rows, FIRST)
    return {
        "regret": ("Regret per round over time", "Bands: mean ± 1.96 standard errors. Lower is better. Flat starts are "
                   "the conservative phase, in which the baseline plays. Drag to zoom, double-click to go back; "
                   "a click in the legend hides a line."),
        "violations": (f"Rounds below the floor, among the first {first:,}",
                       "A round counts when all that was earned so far is less than 1 − α of what the baseline would "
                       "have earned. Zero is shown as 0."),
        "horizon": (f"Regret per round after {horizon:,} rounds", "Bars: ± 1.96 standard errors. A smaller α promises "
                    "more and learns later."),
        "conservative": (f"Rounds played by the baseline, of {horizon:,}", "What safety costs. Lower is better; a grid "
                         "line is a factor of ten. Filled markers know the baseline's reward, open ones do not. "
                         "Bars: ± 1.96 standard errors."),
    }  # fmt: skip


def _others(table: pl.DataFrame, names: list[str]) -> str:
    parts = [
        f"<h3>{escape(world)}</h3><p>{most(rows, 'runs'):,} runs of {horizon_of(rows):,} rounds.</p>"
        f"{number_table(rows, escape(world))}"
        for world in names
        for rows in (of_world(table, world),)
    ]
    return f"<section><h2>Other runs</h2>{''.join(parts)}</section>" if parts else ""


def _settings(settings: Mapping[str, object]) -> str:
    rows = "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd>" for name, value in settings.items())
    return f"<dl>{rows}</dl>"


def _plotly() -> str:
    try:
        return str(importlib.import_module("plotly.offline").get_plotlyjs())
    except ModuleNotFoundError as missing:
        raise ConfigError(
            "The interactive report needs plotly, but it is not installed: pip install plotly"
        ) from missing
