"""The report's charts: plain Plotly descriptions of what the figures show, for a light and a dark page."""

import math
from typing import Any

import polars as pl

from surefoot.paper.claims import FIRST, SURE
from surefoot.paper.sweep_rows import (
    all_alphas,
    alphas_of,
    at_round,
    conservative_of,
    curve,
    curves_of,
    horizon_of,
    last_checkpoint,
    legend_of,
    number,
    paper_or_all,
    percent,
    policies_of,
)
from surefoot.reports.policy_style import LEAST, POLICY_STYLES, colour_of, styles_for

Chart = dict[str, Any]


def regret_chart(table: pl.DataFrame) -> Chart:
    """Figure 1: per-step regret over rounds."""
    shown, styles, traces = paper_or_all(table), styles_for(policies_of(table)), []
    alphas, main = all_alphas(table, shown), next((name for name in shown if alphas_of(table, name)), None)
    for policy, alpha in curves_of(table):
        if policy not in shown:
            continue
        rows = curve(table, policy, alpha, "regret_per_round")
        light, dark = POLICY_STYLES["LUCB"].tones if alpha is None else _tones(alpha, alphas)
        name = policy if alpha is None else f"{policy}, α = {alpha:g}"
        first = alpha is None or policy == main
        if first:
            traces.append(_band(rows["round"].to_list(), rows, name, light, dark))
        traces.append(
            _line(rows["round"].to_list(), rows, name, light, dark)
            | {
                "legendgroup": name,
                "line": {
                    "width": 3 if alpha is None else 2 if first else 1.2,
                    "dash": "solid" if policy == main else styles[policy].dash,
                },
            }
        )
    return _chart(traces, x={"title": "Round t", "type": "log", "dtick": 1, "tickformat": ",d"}, y="Per-step regret")


def violation_chart(table: pl.DataFrame) -> Chart:
    """Figure 2: percentage of the first rounds in violation, by alpha."""
    first, styles, traces = last_checkpoint(table, FIRST), styles_for(policies_of(table)), []
    for policy in paper_or_all(table):
        rows = at_round(table, policy, "violated_share", first)
        if rows.is_empty():
            continue
        heights, errors = [100 * _clean(v) for v in rows["mean"]], [100 * SURE * _clean(v) for v in rows["stderr"]]
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
                "marker": {"pattern": {"shape": styles[policy].pattern, "fillmode": "overlay", "size": 6}},
                "hovertemplate": "%{y:.3g}% ± %{customdata:.2g}%<extra>" + policy + ", α = %{x}</extra>",
                "meta": {"tones": styles[policy].tones},
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
    horizon, alphas, traces = horizon_of(table), all_alphas(table, conservative_of(table)), []
    lucb = at_round(table, "LUCB", "regret_per_round", horizon)
    if alphas and not lucb.is_empty():
        ends, level, tones = [alphas[0] / 1.2, alphas[-1] * 1.2], pl.concat([lucb, lucb]), POLICY_STYLES["LUCB"].tones
        traces.append(_band(ends, level, "LUCB", *tones))
        traces.append(_line(ends, level, "LUCB", *tones) | {"line": {"width": 3}, "legendgroup": "LUCB"})
    traces += _lines_by_alpha(table, "regret_per_round")
    return _chart(traces, x=_alpha_axis(alphas), y=f"Per-step regret at round {horizon:,}")


def conservative_chart(table: pl.DataFrame) -> Chart:
    """Figure 4: mean rounds played by the baseline, by alpha."""
    alphas, horizon = all_alphas(table, conservative_of(table)), horizon_of(table)
    lines = _lines_by_alpha(table, "baseline_rounds", least=LEAST)
    chart = _chart(lines, x=_alpha_axis(alphas), y=f"Rounds played by the baseline, of {horizon:,}")
    powers = [10.0**k for k in range(round(math.log10(LEAST)), math.ceil(math.log10(horizon)) + 1)]
    ticks = {"tickvals": powers, "ticktext": [f"{p:,.0f}" if p > LEAST else f"≤ {LEAST}" for p in powers]}
    chart["layout"]["yaxis"] |= {"type": "log", "rangemode": "normal", **ticks}
    return chart


CHARTS = {
    "regret": regret_chart,
    "violations": violation_chart,
    "horizon": horizon_chart,
    "conservative": conservative_chart,
}


def _lines_by_alpha(table: pl.DataFrame, measure: str, *, least: float = 0.0) -> list[Chart]:
    """A line per policy that keeps a floor, with its errors; what is below `least` is drawn there, and told exactly."""
    styles, traces = styles_for(policies_of(table)), []
    for policy in conservative_of(table):
        rows, name = at_round(table, policy, measure, horizon_of(table)), legend_of(table, policy)
        means, errors = [_clean(mean) for mean in rows["mean"]], [SURE * _clean(error) for error in rows["stderr"]]
        ys = [max(mean, least) for mean in means]
        # On a logarithmic axis a bar must not reach zero.
        below = [min(error, y - least) for error, y in zip(errors, ys, strict=True)]
        line = _line(rows["alpha"].to_list(), rows, name, *styles[policy].tones) | styles[policy].page_line
        bars = {"error_y": {"type": "data", "array": errors, "arrayminus": below, "symmetric": False}}
        told = {"text": [f"{number(mean)}" for mean in means], "y": ys}
        told["hovertemplate"] = "%{text} ± %{customdata:.2g}<extra>" + name + ", α = %{x:,}</extra>"
        traces.append(line | bars | told)
    return traces


def _alpha_axis(alphas: list[float]) -> Chart:
    ticks = {"tickvals": alphas, "ticktext": [f"{alpha:g}" for alpha in alphas]}
    return {"title": "α", "type": "log", **ticks}


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
        "customdata": [SURE * _clean(value) for value in rows["stderr"]],
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


def _watched(table: pl.DataFrame) -> list[float]:
    return [float(alpha) for alpha in table["watched"].drop_nulls().unique().sort()]


def _tones(alpha: float, alphas: list[float]) -> tuple[str, str]:
    return colour_of(alpha, alphas), colour_of(alpha, alphas, dark=True)
