"""The picture of a plan: the lift over the baseline, day by day, and the floor that is never crossed."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surefoot.reports.figure_style import DARK_GREY, FLOOR, LINES, PAPER, STYLE, legend_below
from surefoot.reports.inline_svg import SVG_STYLE, inline_svg
from surefoot.reports.markup import Html
from surefoot.simulation.atomic_files import whole_file
from surefoot.simulation.rollout_plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vp"  # by alpha
FURTHEST = 3.0  # times the days of a plan: beyond that a mark would squeeze all else


def plan_figure(plan: Plan, ax: "Axes") -> "Axes":
    """Draw the reward above the baseline's, as a share of it: medians, and each floor.

    The first policy is drawn with the middle 80% of worlds. A policy has a line style, an alpha a colour and a marker.
    """
    from surefoot.reports.policy_style import colour_of

    per_day, alphas = float(plan.settings["per_day"]), sorted({answer.alpha for answer in plan.answers})
    for outcome in plan.outcomes:
        alpha, policy = outcome.spec.alpha or 0.0, plan.policies.index(outcome.spec.policy)
        days = outcome.checkpoints / per_day
        ahead = 100 * (outcome.measures["earned"] / outcome.measures["owed"] - 1)
        low, middle, high = np.quantile(ahead, [0.1, 0.5, 0.9], axis=0)
        colour, place = colour_of(alpha, alphas), alphas.index(alpha)
        ax.plot(
            days,
            middle,
            linestyle=LINES[policy % len(LINES)],
            color=colour,
            label=outcome.spec.label,
            linewidth=1.8 if policy == 0 else 1.2,
            marker=MARKERS[place % len(MARKERS)],
            markevery=(0.04 * place, 0.12),
            markersize=4.5,
            markerfacecolor=colour if policy == 0 else PAPER,
        )
        if policy == 0:
            ax.fill_between(days, low, high, color=colour, alpha=0.13, linewidth=0)
    for alpha in alphas:
        ax.axhline(-100 * alpha, linestyle=FLOOR, color=colour_of(alpha, alphas), linewidth=1.6)
        ax.annotate(f"floor for α = {alpha:g}", (1, -100 * alpha), (-2, 2), xycoords=("axes fraction", "data"),
                    textcoords="offset points", ha="right", va="bottom", fontsize=8)  # fmt: skip
    ax.axhline(0, color=DARK_GREY, linewidth=0.8)
    _mark_freedom(plan, ax)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda day, _: f"{day:g}")
    ax.set_xlabel("days since the start")
    ax.set_ylabel("total reward, % above the baseline's")
    ax.legend(frameon=False, loc="upper left", ncols=len(plan.policies), fontsize=8)
    return ax


def _mark_freedom(plan: Plan, ax: "Axes") -> None:
    """Of clicks: on which day the first policy is free, and on which enough rewards have come."""
    from surefoot.reports.policy_style import colour_of

    alphas, named = sorted({answer.alpha for answer in plan.answers}), set()
    for answer in plan.of(plan.policies[0]):
        colour = colour_of(answer.alpha, alphas)
        for day, face, label in (
            (answer.needed_day, PAPER, "enough rewards"),
            (answer.free_day, colour, "free (median)"),
        ):
            if math.isinf(answer.needed_day) or day > FURTHEST * plan.days:
                continue
            shown = None if label in named else label  # once in the legend
            named.add(label)
            ax.plot([day], [0.0], "v", color=colour, markerfacecolor=face, markersize=8, zorder=5, label=shown)


def save_plan(plan: Plan, path: Path) -> None:
    """Write the picture, whole or not at all."""
    figure = _drawn(plan)
    with whole_file(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=200)


def plan_picture(plan: Plan) -> Html:
    """The picture for a page, whose colours it follows."""
    import matplotlib as mpl

    from surefoot.reports.policy_style import colour_of

    alphas = sorted({answer.alpha for answer in plan.answers})
    tones = {colour_of(alpha, alphas): colour_of(alpha, alphas, dark=True) for alpha in alphas}
    with mpl.rc_context(STYLE | SVG_STYLE):
        return inline_svg(_drawn(plan), "plan", "Reward against the floor, day by day", tones=tones)


def _drawn(plan: Plan) -> "Figure":
    # Imported here, so that a plan without a picture needs no matplotlib.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.9, 4.0), layout="constrained")
    legend_below(plan_figure(plan, figure.subplots()), figure)
    return figure
