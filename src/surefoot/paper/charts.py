"""The report's charts: plain Plotly descriptions of what the figures show, for a light and a dark page."""

import math
from typing import Any

import polars as pl

from surefoot.paper.claims import FIRST, SURE, alphas_of, at_round, curve, last_checkpoint
from surefoot.paper.figures import POLICIES, colour_of, percent

Chart = dict[str, Any]

DASHES = {"CLUCB": "solid", "CLUCB2": "dash", "CLUCB2-exact": "dot"}
PATTERNS = {"LUCB": "", "CLUCB": "/", "CLUCB2": ".", "CLUCB2-exact": "x"}
TONES = {  # by policy, on a light and on a dark page
    "LUCB": ("#1a1a1a", "#f2f2f2"),
    "CLUCB": ("#1f6f8b", "#5cc4d6"),
    "CLUCB2": ("#7a57b0", "#b79ae6"),
    "CLUCB2-exact": ("#a5502a", "#e5a07c"),
}


def regret_chart(table: pl.DataFrame) -> Chart:
    """Figure 1: per-step regret over rounds."""
    alphas, traces = _every_alpha(table), []
    for policy, alpha in curves_of(table):
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
    horizon, alphas, traces = horizon_of(table), _every_alpha(table), []
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


CHARTS = {"regret": regret_chart, "violations": violation_chart, "horizon": horizon_chart}


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


def curves_of(table: pl.DataFrame) -> list[tuple[str, float | None]]:
    """Every policy and alpha of the table."""
    conservative = [(policy, alpha) for policy in POLICIES[1:] for alpha in alphas_of(table, policy)]
    return [("LUCB", None), *conservative] if "LUCB" in table["policy"] else [*conservative]


def _every_alpha(table: pl.DataFrame) -> list[float]:
    return sorted({alpha for policy in POLICIES[1:] for alpha in alphas_of(table, policy)})


def _watched(table: pl.DataFrame) -> list[float]:
    return [float(alpha) for alpha in table["watched"].drop_nulls().unique().sort()]


def _tones(alpha: float, alphas: list[float]) -> tuple[str, str]:
    return colour_of(alpha, alphas), colour_of(alpha, alphas, dark=True)


def horizon_of(table: pl.DataFrame) -> int:
    """The last round of the table."""
    return int(max(table["round"].to_list()))
