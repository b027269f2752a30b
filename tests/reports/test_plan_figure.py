"""The picture of a plan shows its medians and its floors."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from surefoot.reports.plan_figure import plan_figure
from surefoot.simulation.rollout_plan import plan


def test_the_picture_shows_medians_and_floors() -> None:
    found = plan(
        dim=3, actions=6, noise=0.1, baseline_reward=0.4, gain=0.25, per_day=200, alphas=[0.1, 0.4], days=3, runs=8
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
    levels = {round(float(np.asarray(line.get_ydata())[0]), 9) for line in axes.get_lines()}
    assert {-10.0, -40.0} <= levels
    assert [text.get_text() for text in axes.texts] == ["floor for α = 0.1", "floor for α = 0.4"]
