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
from surefoot.paper.claims import (
    FIRST,
    SURE,
    Claim,
    alphas_of,
    at_round,
    curve,
    judge,
    last_checkpoint,
    number,
    of_world,
    section5_worlds,
    worlds,
)
from surefoot.paper.figures import POLICIES, colour_of, instance_title, percent, write_whole

Chart = dict[str, Any]

INSTANCES = {
    "as-written": "Features and θ as the paper draws them. Mean rewards are then larger than 1, which the paper's own "
    "assumptions exclude; signals are strong, and everything is learned quickly.",
    "normalized": "The same draws, with θ divided by the best mean reward, so that the best action pays 1 and the "
    "paper's assumptions hold; signals are weaker, and learning takes longer.",
}
DASHES = {"CLUCB": "solid", "CLUCB2": "dash", "CLUCB2-exact": "dot"}
PATTERNS = {"LUCB": "", "CLUCB": "/", "CLUCB2": ".", "CLUCB2-exact": "x"}
TONES = {  # by policy, on a light and on a dark page
    "LUCB": ("#1a1a1a", "#f2f2f2"),
    "CLUCB": ("#1f6f8b", "#5cc4d6"),
    "CLUCB2": ("#7a57b0", "#b79ae6"),
    "CLUCB2-exact": ("#a5502a", "#e5a07c"),
}


def write_report(
    table: pl.DataFrame, path: str | os.PathLike[str], *, settings: Mapping[str, object], note: str | None = None
) -> Path:
    """Write the page; the file appears whole or not at all."""
    names = section5_worlds(table)
    judged = {world: judge(table, world) for world in names}
    charts = {f"{kind}-{i}": make(of_world(table, w)) for i, w in enumerate(names) for kind, make in _CHARTS.items()}
    page = Template(_PAGE).substitute(
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


def regret_chart(table: pl.DataFrame) -> Chart:
    """Figure 1: per-step regret over rounds."""
    alphas, traces = _every_alpha(table), []
    for policy, alpha in _curves(table):
        rows = curve(table, policy, alpha, "regret_per_round")
        light, dark = TONES["LUCB"] if alpha is None else _tones(alpha, alphas)
        name = policy if alpha is None else f"{policy}, α = {alpha:g}"
        first = policy in ("LUCB", "CLUCB")
        if first:
            traces.append(_band(rows["round"].to_list(), rows, name, light, dark))
        traces.append(
            _line(rows["round"].to_list(), rows, name, light, dark)
            | {
                "legendgroup": name,
                "line": {"width": 3 if alpha is None else 2 if first else 1.2, "dash": DASHES.get(policy, "solid")},
            }
        )
    return _chart(traces, x={"title": "Round t", "type": "log", "dtick": 1, "tickformat": ",d"}, y="Per-step regret")


def violation_chart(table: pl.DataFrame) -> Chart:
    """Figure 2: percentage of the first rounds in violation, by alpha."""
    first, traces = last_checkpoint(table, FIRST), []
    for policy in POLICIES:
        rows = at_round(table, policy, "violated_share", first)
        if rows.is_empty():
            continue
        heights, errors = [100 * _clean(v) for v in rows["mean"]], [100 * _clean(v) for v in rows["stderr"]]
        traces.append(
            {
                "type": "bar",
                "name": policy,
                "x": [f"{alpha:g}" for alpha in rows["watched"]],
                "y": heights,
                "customdata": errors,
                "text": [percent(height) for height in heights],
                "textposition": "outside",
                "textangle": 0,
                "cliponaxis": False,
                "marker": {"pattern": {"shape": PATTERNS[policy], "fillmode": "overlay", "size": 6}},
                "hovertemplate": "%{y:.3g}% ± %{customdata:.2g}%<extra>" + policy + ", α = %{x}</extra>",
                "meta": {"tones": TONES[policy]},
            }
        )
    axis = {
        "title": "α",
        "type": "category",
        "showgrid": False,
        "categoryarray": [f"{alpha:g}" for alpha in _watched(table)],
    }
    return _chart(traces, x=axis, y=f"% of the first {first:,} rounds")


def horizon_chart(table: pl.DataFrame) -> Chart:
    """Figure 3: per-step regret at the horizon, by alpha."""
    horizon, alphas, traces = _horizon(table), _every_alpha(table), []
    lucb = at_round(table, "LUCB", "regret_per_round", horizon)
    ends = [alphas[0] / 1.2, alphas[-1] * 1.2]
    level = pl.concat([lucb, lucb])
    traces.append(_band(ends, level, "LUCB", *TONES["LUCB"]))
    traces.append(_line(ends, level, "LUCB", *TONES["LUCB"]) | {"line": {"width": 3}, "legendgroup": "LUCB"})
    for policy in POLICIES[1:]:
        rows = at_round(table, policy, "regret_per_round", horizon)
        if not rows.is_empty():
            look = {"mode": "lines+markers", "line": {"width": 2, "dash": DASHES[policy]}, "marker": {"size": 8}}
            bars = {"error_y": {"type": "data", "array": [SURE * _clean(error) for error in rows["stderr"]]}}
            xs = rows["alpha"].to_list()
            traces.append(_line(xs, rows, policy, *TONES[policy]) | look | bars)
    ticks = {"tickvals": alphas, "ticktext": [f"{alpha:g}" for alpha in alphas]}
    return _chart(traces, x={"title": "α", "type": "log", **ticks}, y=f"Per-step regret at round {horizon:,}")


_CHARTS = {"regret": regret_chart, "violations": violation_chart, "horizon": horizon_chart}


def _chart(traces: list[Chart], *, x: Chart, y: str) -> Chart:
    x = x | {"title": {"text": x["title"]}}
    return {"data": traces, "layout": {"xaxis": x, "yaxis": {"title": {"text": y}, "rangemode": "tozero"}}}


def _line(xs: list[Any], rows: pl.DataFrame, name: str, light: str, dark: str) -> Chart:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": xs,
        "y": [_clean(value) for value in rows["mean"]],
        "customdata": [_clean(value) for value in rows["stderr"]],
        "hovertemplate": "%{y:.4g} ± %{customdata:.2g}<extra>" + name + ", at %{x:,}</extra>",
        "meta": {"tones": (light, dark)},
    }


def _band(xs: list[Any], rows: pl.DataFrame, name: str, light: str, dark: str) -> Chart:
    means, errors = [_clean(value) for value in rows["mean"]], [SURE * _clean(value) for value in rows["stderr"]]
    upper = [_clean(mean + error) for mean, error in zip(means, errors, strict=True)]
    lower = [_clean(mean - error) for mean, error in zip(means, errors, strict=True)]
    return {
        "type": "scatter",
        "x": [*xs, *reversed(xs)],
        "y": [*upper, *reversed(lower)],
        "fill": "toself",
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": name,
        "name": name,
        "opacity": 0.5,
        "meta": {"tones": (light, dark), "band": True},
    }


def _clean(value: float | None) -> float:
    """Six digits are enough for a chart; what is missing is drawn as zero."""
    return 0.0 if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _curves(table: pl.DataFrame) -> list[tuple[str, float | None]]:
    conservative = [(policy, alpha) for policy in POLICIES[1:] for alpha in alphas_of(table, policy)]
    return [("LUCB", None), *conservative] if "LUCB" in table["policy"] else [*conservative]


def _every_alpha(table: pl.DataFrame) -> list[float]:
    return sorted({alpha for policy in POLICIES[1:] for alpha in alphas_of(table, policy)})


def _watched(table: pl.DataFrame) -> list[float]:
    return [float(alpha) for alpha in table["watched"].drop_nulls().unique().sort()]


def _tones(alpha: float, alphas: list[float]) -> tuple[str, str]:
    return colour_of(alpha, alphas), colour_of(alpha, alphas, dark=True)


def _horizon(table: pl.DataFrame) -> int:
    return int(max(table["round"].to_list()))


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
    runs, horizon, first = _most(rows, "runs"), _horizon(rows), last_checkpoint(rows, FIRST)
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
    horizon, first = _horizon(rows), last_checkpoint(rows, FIRST)
    heads = ("Policy", "α", f"Baseline rounds of {horizon:,}", f"Regret per round at {horizon:,}",
             f"Below the floor, % of first {first:,}")  # fmt: skip
    body = ""
    for policy, alpha in _curves(rows):
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
        f"<h3>{escape(world)}</h3><p>{_most(rows, 'runs'):,} runs of {_horizon(rows):,} rounds.</p>"
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
            f'<tr><th scope="row">{escape(world)}</th><td>{_most(rows, "runs"):,}</td><td>{_horizon(rows):,}</td>'
            f"<td>{len(_curves(rows))}</td></tr>"
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


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Section 5, reproduced: conservative bandits against their claims</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --page: #fcfcfb; --card: #ffffff; --ink: #1c1e21; --soft: #5b6067; --line: #dcdfe3;
  --yes: #12653a; --yes-back: #e0f3e7; --no: #9a2a1b; --no-back: #fce7e3; --note: #6b4b00; --note-back: #fff3d6; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --card: #1c1f24; --ink: #e9eaec; --soft: #a5abb3;
  --line: #343940; --yes: #8fdcae; --yes-back: #16321f; --no: #ffb1a3; --no-back: #43201a; --note: #ffdc8f;
  --note-back: #3a2f12; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: clamp(1.5rem, 4vw, 2.1rem); line-height: 1.2; margin: 0 0 .75rem; }
h2 { margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { margin: 1.75rem 0 .5rem; font-size: 1.05rem; }
p, figcaption, li { max-width: 46rem; }
.lead { font-size: 1.08rem; }
.note { padding: .6rem .9rem; border-radius: .5rem; background: var(--note-back);
  color: var(--note); font-weight: 600; }
.cards { list-style: none; padding: 0; display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); }
.cards li, figure { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; }
.cards strong { font-size: 1.35rem; }
figure { margin: 1rem 0; } figure h3 { margin: 0 0 .3rem; }
figcaption, details, footer { color: var(--soft); font-size: .9rem; }
.chart { min-height: 24rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .6rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; }
.numbers td, .numbers th { white-space: nowrap; font-variant-numeric: tabular-nums; }
.numbers thead th { white-space: normal; min-width: 6rem; }
.claims { min-width: 38rem; } .claims td:first-child { white-space: nowrap; } .claims td:nth-child(2) { width: 38%; }
.yes, .no { display: inline-block; padding: .1rem .55rem; border-radius: 1rem; font-weight: 600; font-size: .85rem; }
.yes { color: var(--yes); background: var(--yes-back); } .no { color: var(--no); background: var(--no-back); }
summary { cursor: pointer; } dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; }
  figure { padding: .6rem .4rem; } figure h3, figcaption { padding: 0 .4rem; } }
</style>
</head>
<body>
<header>
<h1>Can a program learn a better strategy without ever losing ground?</h1>
<p class="lead">A company has a strategy that works, the baseline, and wants software to find a better one while it
is in use. An ordinary learner (LUCB) tries poor choices at first and can earn less than the baseline would have; a
conservative learner (CLUCB) tries only what it can show to be affordable, so that with high probability it never falls
below a floor: the share 1 − α of what the baseline would have earned. This page repeats the experiment of the paper
that proposed it (“Conservative Contextual Linear Bandits”, Section 5) and says, claim by claim, whether our numbers
agree.</p>
$note
</header>
<main>
<section aria-labelledby="glance"><h2 id="glance">At a glance</h2>
$glance
<p>Regret is what was missed against always playing the best action. LUCB is the learner without a floor; CLUCB knows
what the baseline earns; CLUCB2, where shown, has to learn that too.</p>
</section>
$worlds
$others
<section aria-labelledby="run"><h2 id="run">What was run</h2>
$scale
<h3>Settings</h3>
$settings
</section>
</main>
<footer>
<p>A number after ± in a table is one standard error over runs. Written by surefoot; needs no network.</p>
</footer>
<noscript>
<p class="note">The charts need JavaScript; every number they show at the horizon is in the tables.</p>
</noscript>
<script type="application/json" id="charts">$charts</script>
<script>$plotly</script>
<script>
(function () {
  "use strict";
  var charts = JSON.parse(document.getElementById("charts").textContent);
  var darkness = window.matchMedia("(prefers-color-scheme: dark)");
  function styled(trace, dark) {
    var tone = trace.meta.tones[dark ? 1 : 0], back = dark ? "#1c1f24" : "#ffffff";
    var copy = Object.assign({}, trace);
    if (trace.type === "bar") {
      copy.marker = { color: tone, line: { color: tone, width: 1 },
        pattern: Object.assign({ fgcolor: back, solidity: 0.35 }, trace.marker.pattern) };
    } else {
      copy.line = Object.assign({ color: tone }, trace.line);
      if (trace.marker) { copy.marker = Object.assign({ color: tone }, trace.marker); }
      if (trace.meta.band) { copy.fillcolor = tone + "1c"; }
    }
    return copy;
  }
  function draw() {
    var dark = darkness.matches, ink = dark ? "#e9eaec" : "#1c1e21", grid = dark ? "#343940" : "#e4e6e9";
    Object.keys(charts).forEach(function (id) {
      var place = document.getElementById(id), narrow = place.clientWidth < 560, chart = charts[id];
      var axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true, fixedrange: narrow };
      var layout = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", barmode: "group", bargap: 0.25,
        font: { color: ink, family: "system-ui, sans-serif", size: narrow ? 11 : 13 }, hovermode: "closest",
        margin: { l: 10, r: 12, t: 16, b: 10 }, height: 460,
        legend: { orientation: "h", x: 0, xanchor: "left", y: -0.18, yanchor: "top", font: { size: narrow ? 10 : 12 } },
        xaxis: Object.assign({}, axis, chart.layout.xaxis), yaxis: Object.assign({}, axis, chart.layout.yaxis) };
      if (narrow) { layout.height = 400 + 12 * chart.data.length; }
      Plotly.react(place, chart.data.map(function (t) { return styled(t, dark); }), layout,
        { responsive: true, displaylogo: false, displayModeBar: false });
    });
  }
  draw();
  darkness.addEventListener("change", draw);
}());
</script>
</body>
</html>
"""
