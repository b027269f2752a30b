"""Figures 1, 2 and 3 of the paper, from the table of a sweep.

Curves of one alpha share a colour and a marker in every figure. Colours are steps of one map whose lightness is
monotone, and policies differ in line style or hatch, so that a grey print can be read.
"""

import os
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from surefoot.arrays import Vector
from surefoot.errors import InputError
from surefoot.paper.claims import (
    FIRST,
    SURE,
    alphas_of,
    at_round,
    curve,
    last_checkpoint,
    of_world,
    section5_worlds,
    worlds,
)

POLICIES = ("LUCB", "CLUCB", "CLUCB2", "CLUCB2-exact")
INK = "#1a1a1a"
MARKERS = "osD^v<p>h8d*"
DASHES: dict[str, Any] = {"CLUCB": "-", "CLUCB2": (0, (4, 2)), "CLUCB2-exact": (0, (1, 1.5))}
FILLS = {
    "LUCB": ("#3b3b3b", ""),
    "CLUCB": ("#7ad0bb", "/////"),
    "CLUCB2": ("#d5cde8", "..."),
    "CLUCB2-exact": ("w", "xx"),
}
LOOKS: dict[str, Any] = {
    "CLUCB": {"color": "#31688e", "ls": "-", "lw": 1.6, "marker": "o", "ms": 5},
    "CLUCB2": {"color": "#8a6bb8", "ls": DASHES["CLUCB2"], "lw": 1.1, "marker": "s", "ms": 5, "mfc": "w"},
    "CLUCB2-exact": {"color": "#b0562f", "ls": DASHES["CLUCB2-exact"], "lw": 1.1, "marker": "D", "ms": 5, "mfc": "w"},
}
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "pdf.fonttype": 42,
}


def figure1(table: pl.DataFrame, ax: Axes, *, note: str | None = None) -> Axes:
    """Per-step regret over rounds, with bands of 1.96 standard errors; CLUCB2 thin and without bands."""
    _one_world(table)
    alphas = _all_alphas(table)
    lucb = curve(table, "LUCB", None, "regret_per_round")
    if not lucb.is_empty():
        _band(ax, lucb, INK)
        ax.plot(lucb["round"].to_list(), lucb["mean"].to_list(), color=INK, lw=2.4, label="LUCB", zorder=3)
    for policy in POLICIES[1:]:
        for alpha in alphas_of(table, policy):
            _regret_line(ax, table, policy, alpha, alphas)
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.margins(x=0.01)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
    ax.set_xlabel("Round $t$")
    ax.set_ylabel("Per-step regret  $R_t / t$")
    return _finish(ax, note, loc="lower left", handles=_line_handles(table, alphas))


def figure2(table: pl.DataFrame, ax: Axes, *, note: str | None = None) -> Axes:
    """Percentage of the first 1,000 rounds in violation, by alpha; a bar of height zero says so."""
    _one_world(table)
    first = last_checkpoint(table, FIRST)
    shown = [(policy, at_round(table, policy, "violated_share", first)) for policy in POLICIES]
    shown = [(policy, rows) for policy, rows in shown if not rows.is_empty()]
    alphas = sorted({float(alpha) for _, rows in shown for alpha in rows["watched"]})
    width = 0.86 / max(1, len(shown))
    for place, (policy, rows) in enumerate(shown):
        offset = (place - (len(shown) - 1) / 2) * width
        colour, hatch = FILLS[policy]
        heights, errors = 100 * rows["mean"].to_numpy(), 100 * SURE * _errors(rows)
        xs = np.array([alphas.index(alpha) for alpha in rows["watched"]]) + offset
        ax.bar(xs, heights, 0.92 * width, color=colour, hatch=hatch, edgecolor=INK, lw=0.6, label=policy)
        drawn = errors > 0
        low = np.minimum(errors, heights)[drawn]
        ax.errorbar(xs[drawn], heights[drawn], [low, errors[drawn]], fmt="none", ecolor="#8a8a8a", elinewidth=0.9)
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
    horizon, alphas = int(max(table["round"].to_list())), _all_alphas(table)
    handles = []
    for row in at_round(table, "LUCB", "regret_per_round", horizon).iter_rows(named=True):
        error = SURE * float(np.nan_to_num(row["stderr"] or 0.0))
        handles.append(ax.axhline(row["mean"], color=INK, lw=2.0, label="LUCB"))
        ax.axhspan(row["mean"] - error, row["mean"] + error, color=INK, alpha=0.15, lw=0)
    for policy in POLICIES[1:]:
        rows = at_round(table, policy, "regret_per_round", horizon)
        if not rows.is_empty():
            xs, ys, errors = rows["alpha"].to_list(), rows["mean"].to_list(), SURE * _errors(rows)
            ax.errorbar(xs, ys, errors, capsize=3, **LOOKS[policy])
            handles.append(Line2D([], [], label=policy, **LOOKS[policy]))
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(FixedLocator(alphas))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel(r"$\alpha$")
    ax.set_ylabel(f"Per-step regret at round {horizon:,}")
    return _finish(ax, note, handles=handles)


def save_figures(table: pl.DataFrame, folder: str | os.PathLike[str], *, note: str | None = None) -> list[Path]:
    """Write figure1 to figure3 as .png and .pdf, one panel per world that has LUCB and CLUCB.

    Files appear whole or not at all.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    for number, draw in enumerate((figure1, figure2, figure3), start=1):
        with mpl.rc_context(STYLE):
            figure = _panels(table, draw, note)
            for suffix in ("png", "pdf"):
                held = BytesIO()
                dated = {"CreationDate": None} if suffix == "pdf" else {}  # the same table gives the same bytes
                figure.savefig(held, format=suffix, dpi=200, metadata=dated)
                written.append(write_whole(Path(folder) / f"figure{number}.{suffix}", held.getvalue()))
    return written


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file beside its place and move it there, so that no reader sees half of it."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    return path


def instance_title(world: str) -> str:
    """'paper/as-written' as a heading: 'as written'."""
    return world.rsplit("/", 1)[-1].replace("-", " ")


def percent(value: float) -> str:
    """A percentage above a bar: short, and never 0 unless it is."""
    if 0 < value < 0.005:
        return "<0.01"
    return f"{value:.{0 if value >= 9.95 or value == 0 else 1 if value >= 0.995 else 2}f}"


def colour_of(alpha: float, alphas: list[float], *, dark: bool = False) -> str:
    """An alpha's colour: along viridis by its rank, short of the end that the background would swallow."""
    along = alphas.index(alpha) / max(1, len(alphas) - 1)
    return to_hex(mpl.colormaps["viridis"](0.97 - 0.62 * along if dark else 0.85 * along))


_centred: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 6.2, "color": "#333333"}


def _panels(table: pl.DataFrame, draw: Callable[..., Axes], note: str | None) -> Figure:
    names = section5_worlds(table)
    figure = Figure(figsize=(max(6.0, 5.2 * len(names)), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    entries: dict[str, Artist] = {}
    for panel, world in zip(panels, names, strict=True):
        draw(of_world(table, world), panel, note=note)
        panel.set_title(instance_title(world), loc="left", fontweight="bold")
        legend = panel.get_legend()
        entries |= zip((text.get_text() for text in legend.get_texts()), legend.legend_handles, strict=True)
        legend.remove()
    columns = min(len(entries), 5)
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
    return figure


def _regret_line(ax: Axes, table: pl.DataFrame, policy: str, alpha: float, alphas: list[float]) -> None:
    rows = curve(table, policy, alpha, "regret_per_round")
    colour, first = colour_of(alpha, alphas), policy == "CLUCB"
    if first:
        _band(ax, rows, colour)
    place, count = alphas.index(alpha), len(alphas)
    ax.plot(
        rows["round"].to_list(),
        rows["mean"].to_list(),
        color=colour,
        ls=DASHES[policy],
        lw=1.5 if first else 0.9,
        marker=MARKERS[place % len(MARKERS)] if first else None,
        markevery=(0.12 * place / count, 0.12),
        ms=4.5,
        mec="w",
        mew=0.5,
        label=_label(policy, alpha),
    )


def _line_handles(table: pl.DataFrame, alphas: list[float]) -> list[Line2D]:
    """One entry per alpha; the thin lines of CLUCB2 take the colours of theirs."""
    handles = [Line2D([], [], color=INK, lw=2.4, label="LUCB")]
    for alpha in alphas:
        mark = MARKERS[alphas.index(alpha) % len(MARKERS)]
        look: dict[str, Any] = {"color": colour_of(alpha, alphas), "marker": mark, "ms": 5, "mec": "w", "mew": 0.5}
        handles.append(Line2D([], [], label=_label("CLUCB", alpha), **look))
    others = [policy for policy in POLICIES[2:] if alphas_of(table, policy)]
    return handles + [
        Line2D([], [], color="#666666", lw=0.9, ls=DASHES[policy], label=f"{policy}, colour as its α")
        for policy in others
    ]


def _label(policy: str, alpha: float) -> str:
    return rf"{policy}, $\alpha$ = {alpha:g}"


def _band(ax: Axes, rows: pl.DataFrame, colour: str) -> None:
    mean, error = rows["mean"].to_numpy(), SURE * _errors(rows)
    ax.fill_between(rows["round"].to_numpy(), mean - error, mean + error, color=colour, alpha=0.09, lw=0)


def _errors(rows: pl.DataFrame) -> Vector:
    """Standard errors, zero where a single run gives none."""
    errors: Vector = np.nan_to_num(rows["stderr"].cast(pl.Float64).fill_null(0.0).to_numpy())
    return errors


def _all_alphas(table: pl.DataFrame) -> list[float]:
    return sorted({alpha for policy in POLICIES[1:] for alpha in alphas_of(table, policy)})


def _one_world(table: pl.DataFrame) -> None:
    if len(worlds(table)) != 1:
        raise InputError(f"An axes shows one world, but the table has {worlds(table)}. Use `of_world` to pick one.")


def _finish(ax: Axes, note: str | None, *, loc: Any = "upper right", handles: list[Line2D] | None = None) -> Axes:
    ax.legend(handles=handles, loc=loc) if handles else ax.legend(loc=loc)
    if note:
        ax.text(
            1, 1.01, note, transform=ax.transAxes, ha="right", va="bottom", size=6.5, style="italic", color="#777777"
        )
    return ax
