"""The picture of a plan: what is gained over the baseline, day by day, and the floor that is never crossed."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surefoot.simulation.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ("-", "--", "-.", ":")


def plan_figure(plan: Plan, ax: "Axes") -> "Axes":
    """Draw the reward above the baseline's, as a share of it: median and the middle 80% of worlds, and each floor."""
    per_day = float(plan.settings["per_day"])
    shades = np.linspace(0.15, 0.6, len(plan.outcomes))
    for outcome, shade, i in zip(plan.outcomes, shades, range(len(plan.outcomes)), strict=True):
        days = outcome.checkpoints / per_day
        ahead = 100 * (outcome.measures["earned"] / outcome.measures["owed"] - 1)
        low, middle, high = np.quantile(ahead, [0.1, 0.5, 0.9], axis=0)
        color = (shade * 0.4, shade, min(1.0, shade + 0.3))
        alpha = outcome.spec.alpha or 0.0
        ax.plot(days, middle, STYLES[i % 4], color=color, label=f"α = {alpha:g}", linewidth=1.8)
        ax.fill_between(days, low, high, color=color, alpha=0.15, linewidth=0)
        ax.axhline(-100 * alpha, linestyle=STYLES[i % 4], color=color, linewidth=0.8)
        ax.annotate(f"floor for α = {alpha:g}", (days[-1], -100 * alpha), (-2, 2), textcoords="offset points",
                    ha="right", va="bottom", fontsize=8, color=color)  # fmt: skip
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda day, _: f"{day:g}")
    ax.set_xlabel("days since the start")
    ax.set_ylabel("total reward, % above the baseline's")
    ax.legend(frameon=False, loc="upper left")
    return ax


def save_plan(plan: Plan, path: Path) -> None:
    """Write the picture, whole or not at all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    plan_figure(plan, figure.subplots())
    temporary = path.with_name(f".{path.stem}.tmp{path.suffix}")
    figure.savefig(temporary, dpi=200)
    os.replace(temporary, path)
