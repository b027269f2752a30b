"""The limit of rare rewards: its numbers, and that none of them lies beyond what a test of two rates needs."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from surefoot.simulation.rewards import RewardLimit


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("is_known", [False, True])
def test_rewards_at_the_limit_are_the_limit_once(share: float, is_known: bool) -> None:
    limit = RewardLimit(lift=0.25, alpha=0.15, delta=0.01, is_known=is_known)
    rounds = limit.rounds(0.03, share)
    arm, baseline = np.array([rounds * share * 0.03 * 1.25]), np.array([rounds * (1 - share) * 0.03])
    assert arm[0] == pytest.approx(limit.rewards(share))
    assert limit.times(arm, baseline) == pytest.approx(1.0)
    assert limit.times(2 * arm, 2 * baseline) == pytest.approx(2.0)
    # Straight from the inequality.
    left = 1.25**2 / arm + (0.0 if is_known else 0.85**2 / baseline)
    assert left == pytest.approx(0.4**2 / (2 * math.log(100)))


def test_two_poisson_rates_are_told_apart_by_about_as_many() -> None:
    """At the limit, the difference of the two rates is sqrt(2 ln(1/delta)) standard deviations from 0."""
    limit, rng = RewardLimit(lift=0.5, alpha=0.1, delta=0.001), np.random.default_rng(0)
    rounds = limit.rounds(0.001, 0.5)
    arm, baseline = (rng.poisson(rounds * 0.5 * 0.001 * factor, 200_000) for factor in (1.5, 1.0))
    proved = (arm - 0.9 * baseline) / np.sqrt(arm + 0.81 * baseline)
    assert proved.mean() == pytest.approx(math.sqrt(2 * math.log(1000)), rel=0.02)
    assert norm.sf(math.sqrt(2 * math.log(1000))) < 0.001  # so that fewer could not do


def test_what_was_never_seen_is_far_from_the_limit() -> None:
    limit = RewardLimit(lift=0.5, alpha=0.1, delta=0.001)
    assert limit.times(np.array([100.0]), np.array([1e-12])) == pytest.approx(0.0, abs=1e-9)
    assert limit.rounds(0.02, 1.0) == math.inf
