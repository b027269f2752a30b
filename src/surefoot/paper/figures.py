"""Figures 1, 2 and 3 of the paper, from the table of a sweep, and a fourth: the rounds that safety costs.

Curves of one alpha share a colour and a marker in every figure. Colours are steps of one map whose lightness is
monotone, and policies differ in line style, marker or hatch, so that a grey print can be read. The first two figures
show the paper's policies, the others every policy that keeps a floor.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from surefoot.arrays import Vector
from surefoot.atomic_files import whole_file
from surefoot.errors import InputError
from surefoot.paper.claims import FIRST, SURE
from surefoot.paper.sweep_rows import (
    all_alphas,
    alphas_of,
    at_round,
    conservative_of,
    curve,
    horizon_of,
    instance_title,
    last_checkpoint,
    legend_of,
    of_world,
    panel_worlds,
    paper_or_all,
    percent,
    policies_of,
    pooled,
    worlds,
)
from surefoot.reports.figures import (
    DARK_GREY,
    DASHES,
    GREY,
    INK,
    LEAST,
    MARKERS,
    PAPER_STYLE,
    STYLE,
    SVG_STYLE,
    PolicyStyle,
    colour_of,
    inline_svg,
    legend_below,
    styles_for,
)
from surefoot.reports.html_page import Html


def figure1(table: pl.DataFrame, ax: Axes, *, note: str | None = None) -> Axes:
    """Per-step regret over rounds, with bands of 1.96 standard errors; all but the first with a floor thin and bare."""
    _one_world(table)
    policies, styles = paper_or_all(table), styles_for(policies_of(table))
    alphas, first = all_alphas(table, policies), _main(table, policies)
    for policy in policies:
        for alpha in alphas_of(table, policy):
            _regret_line(ax, curve(table, policy, alpha, "regret_per_round"), policy, alpha, alphas, styles, first)
        if not alphas_of(table, policy):
            rows = curve(table, policy, None, "regret_per_round")
            _band(ax, rows, INK)
            style = {"color": INK, "ls": DASHES[styles[policy].dash]}
            ax.plot(rows["round"].to_list(), rows["mean"].to_list(), lw=2.4, label=policy, zorder=3, **style)
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.margins(x=0.01)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
    ax.set_xlabel("Round $t$")
    ax.set_ylabel("Per-step regret  $R_t / t$")
    return _finish(ax, note, loc="lower left", handles=_line_handles(table, policies, styles))


def figure2(table: pl.DataFrame, ax: Axes, *, note: str | None = None) -> Axes:
    """Percentage of the first 1,000 rounds in violation, by alpha; a bar of height zero says so."""
    _one_world(table)
    first, styles = last_checkpoint(table, FIRST), styles_for(policies_of(table))
    shares = [(policy, at_round(table, policy, "violated_share", first)) for policy in paper_or_all(table)]
    shares = [(policy, rows) for policy, rows in shares if not rows.is_empty()]
    alphas = sorted({float(alpha) for _, rows in shares for alpha in rows["watched"]})
    width = 0.86 / max(1, len(shares))
    for place, (policy, rows) in enumerate(shares):
        offset = (place - (len(shares) - 1) / 2) * width
        heights, errors = 100 * rows["mean"].to_numpy(), 100 * SURE * _errors(rows)
        xs = np.array([alphas.index(alpha) for alpha in rows["watched"]]) + offset
        ax.bar(xs, heights, 0.92 * width, label=policy, **styles[policy].bar)
        bars = errors > 0
        low = np.minimum(errors, heights)[bars]  # no share is below zero
        ax.errorbar(xs[bars], heights[bars], [low, errors[bars]], fmt="none", ecolor=GREY, elinewidth=0.9)
        for x, height, error in zip(xs, heights, errors, strict=True):
            ax.annotate(percent(height), (x, height + error), (0, 1.5), textcoords="offset points", **_centred)
    ax.set_xticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
    ax.xaxis.grid(visible=False)
    ax.set_ylim(0, max(1.1 * ax.dataLim.y1, 1e-6) if ax.dataLim.y1 > 0 else 1.0)
    ax.set_xlabel(r"$\alpha$")
    ax.set_ylabel(f"Violated, % of the first {first:,} rounds")
    return _finish(ax, note)


def figure3(table: pl.DataFrame, ax: Axes, *, note: str | None = None) -> Axes:
    """Per-step regret at the horizon against alpha, with bars of 1.96 standard errors; LUCB as a level line."""
    _one_world(table)
    horizon, handles = horizon_of(table), []
    for row in at_round(table, "LUCB", "regret_per_round", horizon).iter_rows(named=True):
        error = SURE * float(np.nan_to_num(row["stderr"] or 0.0))
        handles.append(ax.axhline(row["mean"], color=INK, lw=2.0, label="LUCB"))
        ax.axhspan(row["mean"] - error, row["mean"] + error, color=INK, alpha=0.15, lw=0)
    handles += _lines_by_alpha(table, ax, "regret_per_round")
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"Per-step regret at round {horizon:,}")
    return _finish(ax, note, handles=handles)


def figure4(table: pl.DataFrame, ax: Axes, *, note: str | None = None) -> Axes:
    """Mean rounds played by the baseline against alpha, both logarithmic, with bars of 1.96 standard errors."""
    _one_world(table)
    horizon = horizon_of(table)
    handles = _lines_by_alpha(table, ax, "baseline_rounds", least=LEAST)
    ax.set_yscale("log")
    ax.axhline(horizon, color=GREY, lw=0.8, ls=":")
    ax.annotate(f"all {horizon:,} rounds", (1, horizon), (-2, 2), xycoords=("axes fraction", "data"), **_level)
    ax.set_ylim(max(0.8 * LEAST, 0.6 * ax.dataLim.y0), 1.8 * horizon)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value > LEAST else f"≤ {LEAST}"))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel(f"Rounds played by the baseline, of {horizon:,}")
    return _finish(ax, note, handles=handles, loc="lower left")


FIGURES = {draw.__name__: draw for draw in (figure1, figure2, figure3, figure4)}


def save_figures(table: pl.DataFrame, folder: str | os.PathLike[str], *, note: str | None = None) -> list[Path]:
    """Write figure1 to figure4 as .png and .pdf, a panel per world that has LUCB and CLUCB, or per world if none has.

    Files appear whole or not at all.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    rows, paths = pooled(table), []
    with mpl.rc_context(PAPER_STYLE):
        for name, draw in FIGURES.items():
            figure = _panels(rows, draw, note)
            for suffix, metadata in (("png", None), ("pdf", {"CreationDate": None})):  # the same table, the same bytes
                paths.append(Path(folder) / f"{name}.{suffix}")
                with whole_file(paths[-1]) as file:
                    figure.savefig(file, format=suffix, metadata=metadata)
    return paths


def picture(table: pl.DataFrame, name: str, label: str, *, place: int) -> Html:
    """A figure of one world for a page, whose colours it follows; `place` is that of the world."""
    alphas = all_alphas(table, conservative_of(table))
    tones = {colour_of(alpha, alphas): colour_of(alpha, alphas, dark=True) for alpha in alphas}
    tones |= {style.light: style.dark for style in styles_for(policies_of(table)).values()}
    with mpl.rc_context(STYLE | SVG_STYLE):
        figure = Figure(figsize=(3.9, 4.0), layout="constrained")
        legend_below(FIGURES[name](table, figure.subplots()), figure)
        return inline_svg(figure, f"{name}-{place}", label, tones=tones)


_centred: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 6.2, "color": DARK_GREY}
_level: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "fontsize": 7, "color": DARK_GREY}


def _panels(table: pl.DataFrame, draw: Callable[..., Axes], note: str | None) -> Figure:
    names = panel_worlds(table)
    figure = Figure(figsize=(max(6.0, 5.2 * len(names)), 4.2), layout="constrained", dpi=200)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    entries: dict[str, Artist] = {}
    for panel, world in zip(panels, names, strict=True):
        draw(of_world(table, world), panel, note=note)
        panel.set_title(instance_title(world), loc="left", fontweight="bold")
        legend = panel.get_legend()
        entries |= zip((text.get_text() for text in legend.get_texts()), legend.legend_handles, strict=True)
        legend.remove()
    if entries:  # none where no policy keeps a floor
        columns = math.ceil(len(entries) / math.ceil(len(entries) / 5))  # rows of equal length
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
    return figure


def _main(table: pl.DataFrame, policies: list[str]) -> str | None:
    """The policy drawn thick: the first that keeps a floor."""
    return next((policy for policy in policies if alphas_of(table, policy)), None)


def _regret_line(
    ax: Axes,
    rows: pl.DataFrame,
    policy: str,
    alpha: float,
    alphas: list[float],
    styles: dict[str, PolicyStyle],
    first: str | None,
) -> None:
    colour, is_first = colour_of(alpha, alphas), policy == first
    if is_first:
        _band(ax, rows, colour)
    place, count = alphas.index(alpha), len(alphas)
    ax.plot(
        rows["round"].to_list(),
        rows["mean"].to_list(),
        color=colour,
        ls="-" if is_first else DASHES[styles[policy].dash],
        lw=1.5 if is_first else 0.9,
        marker=MARKERS[place % len(MARKERS)] if is_first else None,
        markevery=(0.12 * place / count, 0.12),  # shifted, so that markers of two lines never coincide
        ms=4.5,
        mec="w",
        mew=0.5,
        label=_label(policy, alpha),
    )


def _line_handles(table: pl.DataFrame, policies: list[str], styles: dict[str, PolicyStyle]) -> list[Line2D]:
    """One entry per alpha; the thin lines of the others take the colours of theirs."""
    alphas, first = all_alphas(table, policies), _main(table, policies)
    free = [policy for policy in policies if not alphas_of(table, policy)]
    handles = [Line2D([], [], color=INK, lw=2.4, ls=DASHES[styles[policy].dash], label=policy) for policy in free]
    for alpha in alphas if first else ():
        mark = MARKERS[alphas.index(alpha) % len(MARKERS)]
        look: dict[str, Any] = {"color": colour_of(alpha, alphas), "marker": mark, "ms": 5, "mec": "w", "mew": 0.5}
        handles.append(Line2D([], [], label=_label(str(first), alpha), **look))
    others = [policy for policy in policies if policy not in free and policy != first]
    return handles + [
        Line2D([], [], color=DARK_GREY, lw=0.9, ls=DASHES[styles[policy].dash], label=f"{policy}, colour as its α")
        for policy in others
    ]


def _lines_by_alpha(table: pl.DataFrame, ax: Axes, measure: str, *, least: float = 0.0) -> list[Line2D]:
    """A line per policy that keeps a floor, its measure at the horizon over a logarithmic axis of alphas."""
    policies, styles, handles = conservative_of(table), styles_for(policies_of(table)), []
    for policy in policies:
        rows, look = at_round(table, policy, measure, horizon_of(table)), styles[policy].line
        ys, errors = np.maximum(rows["mean"].to_numpy(), least), SURE * _errors(rows)
        ax.errorbar(
            rows["alpha"].to_list(), ys, [np.minimum(errors, ys - least), errors], capsize=3, elinewidth=0.9, **look
        )
        handles.append(Line2D([], [], label=legend_of(table, policy), **look))
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(all_alphas(table, policies)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel(r"$\alpha$")
    return handles


def _label(policy: str, alpha: float) -> str:
    return rf"{policy}, $\alpha$ = {alpha:g}"


def _band(ax: Axes, rows: pl.DataFrame, colour: str) -> None:
    mean, error = rows["mean"].to_numpy(), SURE * _errors(rows)
    ax.fill_between(rows["round"].to_numpy(), mean - error, mean + error, color=colour, alpha=0.09, lw=0)


def _errors(rows: pl.DataFrame) -> Vector:
    """Standard errors, zero where a single run gives none."""
    errors: Vector = np.nan_to_num(rows["stderr"].cast(pl.Float64).fill_null(0.0).to_numpy())
    return errors


def _one_world(table: pl.DataFrame) -> None:
    if len(worlds(table)) != 1:
        raise InputError(f"An axes shows one world, but the table has {worlds(table)}. Use `of_world` to pick one.")


def _finish(ax: Axes, note: str | None, *, loc: Any = "upper right", handles: list[Line2D] | None = None) -> Axes:
    ax.legend(handles=handles or ax.get_legend_handles_labels()[0], loc=loc)
    if note:
        ax.text(1, 1.01, note, transform=ax.transAxes, ha="right", va="bottom", size=6.5, style="italic", color=GREY)
    return ax
