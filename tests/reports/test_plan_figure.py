"""The picture of a plan shows its medians and its floors."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from surefoot.reports.figures import FLOOR, LINES, legend_below
from surefoot.reports.plan import plan_figure, plan_html
from surefoot.simulation.rollout_plan import plan


def is_dotted(line: Line2D) -> bool:
    pattern: Any = line._unscaled_dash_pattern  # type: ignore[attr-defined]
    return pattern[1] is not None and tuple(pattern[1]) == FLOOR[1]


def test_the_picture_shows_medians_and_floors() -> None:
    found = plan(
        dim=3, actions=6, noise=0.1, baseline_reward=0.4, lift=0.25, per_day=200, alphas=[0.1, 0.4], days=3, runs=8
    )
    axes = Figure().subplots()
    assert plan_figure(found, axes) is axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert [outcome.spec.policy for outcome in found.outcomes] == ["SafeLUCB", "SafeLUCB", "CLUCB", "CLUCB"]
    for outcome in found.outcomes:
        ahead = 100 * (outcome.measures["earned"] / outcome.measures["owed"] - 1)
        drawn = np.asarray(lines[outcome.spec.label].get_ydata(), dtype=float)
        assert drawn == pytest.approx(np.median(ahead, axis=0))
        assert drawn.min() >= -100 * (outcome.spec.alpha or 0.0)
    assert {lines[f"{name}, α = 0.1"].get_linestyle() for name in ("SafeLUCB", "CLUCB")} == {"-", "--"}
    # Dots are for floors alone.
    dotted = {round(float(np.asarray(line.get_ydata())[0]), 9) for line in axes.get_lines() if is_dotted(line)}
    assert dotted == {-10.0, -40.0}
    assert FLOOR not in LINES
    levels = {round(float(np.asarray(line.get_ydata())[0]), 9) for line in axes.get_lines()}
    assert {-10.0, -40.0} <= levels
    assert [text.get_text() for text in axes.texts] == ["floor for α = 0.1", "floor for α = 0.4"]


def test_the_legend_has_room_for_every_pattern_of_lines() -> None:
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for place, look in enumerate(LINES):
        axes.plot([0, 1], [place, place], linestyle=look, linewidth=1.6, label=str(place))
    axes.legend()
    legend_below(axes, figure)
    (legend,) = figure.legends
    patterns = [line._unscaled_dash_pattern[1] or () for line in axes.get_lines()]  # type: ignore[attr-defined]
    assert legend.handlelength * legend._fontsize >= 1.6 * max(map(sum, patterns))  # type: ignore[attr-defined]


def test_click_plot_shows_when_the_learner_is_free_and_when_enough_rewards_have_come() -> None:
    settings = {"dim": 3, "actions": 4, "noise": 0.5, "baseline_reward": 0.05, "lift": 0.5, "per_day": 2_000, "days": 4}
    found = plan(**settings, alphas=[0.001, 0.3], runs=4, policies=["safe"], clicks=True)  # type: ignore[arg-type]
    axes = Figure().subplots()
    plan_figure(found, axes)
    far, near = found.answers
    marks = {line.get_label(): float(np.asarray(line.get_xdata())[0]) for line in axes.get_lines()}
    assert far.needed_day > 3 * found.days  # too far away to be drawn
    assert (marks["enough rewards"], marks["free (median)"]) == (near.needed_day, near.free_day)
    plain = plan(**settings, alphas=[0.3], runs=4, policies=["safe"])  # type: ignore[arg-type]
    axes = Figure().subplots()
    plan_figure(plain, axes)
    assert "enough rewards" not in {line.get_label() for line in axes.get_lines()}
    assert ["Triangles" in plan_html(one) for one in (found, plain)] == [True, False]
