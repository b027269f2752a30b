"""Four pictures of a replay: the lift, reward against the floor, the learner's share, and the gate's margin.

Each takes the outcomes and an Axes, and returns the Axes. Policies differ in dashes, alphas in colour; dots are floors.
"""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from surefoot.replay.replay_outcome import ReplayOutcome
from surefoot.reports.figures import FLOOR, GREY, INK, LINES, STYLE, SVG_STYLE, inline_svg, legend_below, series_colour
from surefoot.reports.html_page import Html

SETTLED = 0.1  # of the rounds: averages over fewer swing too wide to set a scale
# With a fixed salt the same figure is the same file.
REPLAY_STYLE = STYLE | {"svg.fonttype": "path", "svg.hashsalt": "surefoot"}


def lift_figure(outcomes: Sequence[ReplayOutcome], ax: Axes) -> Axes:
    """The lift over the baseline a round, by policy, with its interval.

    Parameters
    ----------
    outcomes : sequence of ReplayOutcome
        What `replay` returned.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> lift_figure([], ax) is ax
    True
    """
    for place, (outcome, look) in enumerate(_looks(outcomes)):
        lift = outcome.main["gain"]
        if np.isfinite(lift.value):
            ax.plot([lift.low, lift.high], [place, place], color=look["color"], lw=2.0, solid_capstyle="butt")
            ax.plot([lift.value], [place], "o", color=look["color"], ms=6)
    ax.axvline(0.0, color=GREY, lw=1.0, zorder=1)
    ax.set_yticks(range(len(outcomes)), [outcome.spec.label for outcome in outcomes])
    ax.set_ylim(max(len(outcomes), 1) - 0.5, -0.5)
    ax.set_xlabel("Lift over the baseline, reward a round")
    return ax


def reward_figure(outcomes: Sequence[ReplayOutcome], ax: Axes) -> Axes:
    """Earned as a share of what the baseline would have earned, over rounds; each alpha's floor as a dotted line.

    Parameters
    ----------
    outcomes : sequence of ReplayOutcome
        What `replay` returned.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> reward_figure([], ax) is ax
    True
    """
    reached = [1.0]
    for outcome, look in _looks(outcomes):
        rounds, owed = outcome.curves["round"], np.where(outcome.curves["owed"] > 0, outcome.curves["owed"], np.nan)
        share = outcome.curves["earned"] / owed
        known = np.isfinite(share)
        settled = share[(rounds >= SETTLED * rounds.max()) & known]
        # What lies below a floor is shown early or late; what shoots above in a few rounds says nothing.
        reached += [float(np.quantile(share[known], 0.02))] if known.any() else []
        reached += [float(settled.max())] if settled.size else []
        ax.plot(rounds, share, label=outcome.spec.label, **look)
    if outcomes and len(reached) == 1:
        ax.text(0.5, 0.5, "The baseline earned nothing: no share of it to show", transform=ax.transAxes, ha="center",
                fontsize=8, color=INK)  # fmt: skip
    alphas = _alphas(outcomes)
    low, high = min([*reached, *(1 - alpha for alpha in alphas)]), max(reached)
    room = 0.12 * (high - low or 1.0)
    for alpha, colour in alphas.items():
        ax.axhline(1 - alpha, color=colour, lw=1.6, ls=FLOOR, zorder=1)
        ax.annotate(f"floor, α = {alpha:g}", (0.01, 1 - alpha), (0, -2), xycoords=("axes fraction", "data"),
                    textcoords="offset points", ha="left", va="top", fontsize=8, color=INK)  # fmt: skip
    ax.axhline(1.0, color=GREY, lw=1.0, zorder=1)
    ax.set_ylim(max(0.0, low - room), high + room)
    ax.set_ylabel("Earned, of what the baseline would have")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return _finish(ax)


def share_figure(outcomes: Sequence[ReplayOutcome], ax: Axes) -> Axes:
    """Share of the rounds so far that the learner played.

    Parameters
    ----------
    outcomes : sequence of ReplayOutcome
        What `replay` returned.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> share_figure([], ax) is ax
    True
    """
    for outcome, look in _looks(outcomes):
        ax.plot(outcome.curves["round"], outcome.curves["learner_share"], label=outcome.spec.label, **look)
    ax.set_ylim(-0.02, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_ylabel("Rounds played by the learner")
    return _finish(ax)


def margin_figure(outcomes: Sequence[ReplayOutcome], ax: Axes) -> Axes:
    """What the gate could prove beyond what it had to; below 0 the baseline played. Policies with a floor only.

    Parameters
    ----------
    outcomes : sequence of ReplayOutcome
        What `replay` returned.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> margin_figure([], ax) is ax
    True
    """
    largest = 1.0
    for outcome, look in _looks(outcomes):
        margins = outcome.curves["margin"]
        if np.isfinite(margins).any():
            largest = max(largest, float(np.nanmin(np.abs(margins[np.isfinite(margins)]))))
            ax.plot(outcome.curves["round"], margins, label=outcome.spec.label, **look)
    ax.axhline(0.0, color=GREY, lw=1.0, zorder=1)
    ax.set_yscale("symlog", linthresh=largest)
    ax.set_ylabel("Proved above the floor (rewards)")
    return _finish(ax)


FIGURES: dict[str, tuple[Callable[[Sequence[ReplayOutcome], Axes], Axes], str]] = {
    "lift": (lift_figure, "Lift over the baseline"),
    "reward": (reward_figure, "Reward against the floor"),
    "share": (share_figure, "How often the learner was allowed to act"),
    "margin": (margin_figure, "Margin of the gate"),
}


def draw(name: str, outcomes: Sequence[ReplayOutcome], kind: str = "png") -> bytes:
    """One of the figures as a file: png, svg or pdf."""
    with mpl.rc_context(REPLAY_STYLE):
        written = BytesIO()
        metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        _drawn(name, outcomes).savefig(written, format=kind, dpi=160, metadata=metadata)
    return written.getvalue()


def picture(name: str, outcomes: Sequence[ReplayOutcome]) -> Html:
    """One of the figures for a page, whose colours it follows."""
    with mpl.rc_context(STYLE | SVG_STYLE):
        label = f"{FIGURES[name][1]}; the last values are in the table above"
        return inline_svg(_drawn(name, outcomes), name, label)


def _drawn(name: str, outcomes: Sequence[ReplayOutcome]) -> Figure:
    # As wide as a phone shows it: on a wide screen it grows, and its letters with it.
    height = 0.9 + 0.3 * len(outcomes) if name == "lift" else 3.2 + 0.1 * len(outcomes)
    figure = Figure(figsize=(3.9, height), layout="constrained")
    # Without pyplot, which keeps every figure in memory and may look for a display.
    FigureCanvasAgg(figure)
    legend_below(FIGURES[name][0](outcomes, figure.add_subplot()), figure)
    return figure


def _alphas(outcomes: Sequence[ReplayOutcome]) -> dict[float, str]:
    alphas = sorted({outcome.spec.alpha for outcome in outcomes if outcome.spec.alpha is not None})
    return {alpha: series_colour(place) for place, alpha in enumerate(alphas)}


def _looks(outcomes: Sequence[ReplayOutcome]) -> list[tuple[ReplayOutcome, dict[str, Any]]]:
    alphas = _alphas(outcomes)
    kept, free = [
        list(dict.fromkeys(_name(outcome) for outcome in outcomes if (outcome.spec.alpha is None) is is_free))
        for is_free in (False, True)
    ]
    found = []
    for outcome in outcomes:
        alpha = outcome.spec.alpha
        dashes = LINES[(free if alpha is None else kept).index(_name(outcome)) % len(LINES)]
        colour = alphas[alpha] if alpha is not None else INK
        found.append((outcome, {"color": colour, "ls": dashes, "lw": 1.6 if alpha is not None else 2.0}))
    return found


def _name(outcome: ReplayOutcome) -> str:
    """Of a policy, whatever its floor; without one, by what else it was told."""
    return outcome.spec.label if outcome.spec.alpha is None else outcome.spec.name


def _finish(ax: Axes) -> Axes:
    if not 0 < ax.dataLim.x1 < np.inf:  # a logarithm needs something to scale
        ax.set_xlim(1, 10)
    ax.set_xscale("log")
    ax.margins(x=0.01)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
    ax.set_xlabel("Round")
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return ax
