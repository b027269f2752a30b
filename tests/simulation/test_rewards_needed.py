"""How many rare rewards bounds that hold at all times need: the numbers, and how many fewer a single look needs."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from surefoot.simulation.rewards_needed import RewardsNeeded


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("is_known", [False, True])
def test_what_is_needed_is_needed_once(share: float, is_known: bool) -> None:
    needed = RewardsNeeded(lift=0.25, alpha=0.15, delta=0.01, is_known=is_known)
    rounds = needed.rounds(0.03, share)
    arm, baseline = np.array([rounds * share * 0.03 * 1.25]), np.array([rounds * (1 - share) * 0.03])
    assert arm[0] == pytest.approx(needed.rewards(share))
    assert needed.times(arm, baseline) == pytest.approx(1.0)
    assert needed.times(2 * arm, 2 * baseline) == pytest.approx(2.0)
    # Straight from the inequality.
    left = 1.25**2 / arm + (0.0 if is_known else 0.85**2 / baseline)
    assert left == pytest.approx(0.4**2 / (2 * math.log(100)))


def test_two_poisson_rates_are_told_apart_by_about_as_many() -> None:
    """With what is needed, the difference of the two rates is sqrt(2 ln(1/delta)) standard deviations from 0."""
    needed, rng = RewardsNeeded(lift=0.5, alpha=0.1, delta=0.001), np.random.default_rng(0)
    rounds = needed.rounds(0.001, 0.5)
    arm, baseline = (rng.poisson(rounds * 0.5 * 0.001 * factor, 200_000) for factor in (1.5, 1.0))
    proved = (arm - 0.9 * baseline) / np.sqrt(arm + 0.81 * baseline)
    assert proved.mean() == pytest.approx(math.sqrt(2 * math.log(1000)), rel=0.02)
    # No limit: one look at a time fixed in advance needs fewer.
    assert norm.isf(0.001) ** 2 < 0.7 * 2 * math.log(1000)
    assert norm.isf(0.05) ** 2 < 0.5 * 2 * math.log(20)


def test_what_was_never_seen_is_far_from_enough() -> None:
    needed = RewardsNeeded(lift=0.5, alpha=0.1, delta=0.001)
    assert needed.times(np.array([100.0]), np.array([1e-12])) == pytest.approx(0.0, abs=1e-9)
    assert needed.rounds(0.02, 1.0) == math.inf
