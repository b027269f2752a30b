"""What every guard needs: figures that were computed elsewhere, the growth of bets by brute force, and the theorem."""

import math
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import ConfigError
from surefoot.guard_limit import _growth
from surefoot.simulation import simulate_guard
from surefoot.theory import guard_limit

TOLD: dict[str, Any] = {"alpha": 0.1, "delta": 0.05, "rounds": 20_000}


@pytest.mark.parametrize(
    ("learner", "baseline", "limit", "of_twelve"),
    [(0.4, 0.3, 589, 746), (0.3, 0.3, 2083, 3182), (0.024, 0.02, 6502, 9533)],
)
def test_the_schedule_needs_what_an_optimiser_found(
    learner: float, baseline: float, limit: float, of_twelve: float
) -> None:
    """The figures are the least of ten starts of an optimisation over all schedules."""
    settings = {"learner": learner, "baseline": baseline, **TOLD}
    assert guard_limit(**settings).computed == pytest.approx(limit, rel=0.01)
    assert guard_limit(**settings, rates=12).computed == pytest.approx(of_twelve, rel=0.01)


@pytest.mark.parametrize("deviation", [None, 0.1])
@pytest.mark.parametrize("mean", [0.02, 0.5, 0.93])
@pytest.mark.parametrize("s", [-60.0, -2.5, -0.3, 0.02, 1.3, 8.0])
def test_growth_is_the_best_over_all_centres(mean: float, s: float, deviation: float | None) -> None:
    width = 1.0 if deviation is None else min(1.0, deviation / math.sqrt(mean * (1.0 - mean)))
    values = (mean * (1.0 - width), mean + (1.0 - mean) * width)
    centres = np.linspace(0.0, 1.0, 200_001)
    factors = np.array([1.0 + s * (value - centres) for value in (*values, 0.0, 1.0)])
    with np.errstate(invalid="ignore", divide="ignore"):
        growth = s * centres + (1.0 - mean) * np.log(factors[0]) + mean * np.log(factors[1])
    best = growth[(factors >= 0.0).all(axis=0)].max()
    assert float(_growth(mean, np.array([[s]]), deviation)[0, 0]) == pytest.approx(best, abs=1e-4)


def test_the_theorem_is_below_the_schedule_and_says_nothing_where_it_does_not_apply() -> None:
    for learner, baseline, alpha in ((0.4, 0.3, 0.1), (0.3, 0.3, 0.05), (0.024, 0.02, 0.2), (0.013, 0.01, 0.01)):
        limit = guard_limit(learner=learner, baseline=baseline, alpha=alpha, delta=0.05, rounds=50_000)
        assert 0.0 < limit.proved < limit.computed
    for learner, baseline in ((0.2, 0.3), (0.8, 0.7)):
        assert guard_limit(learner=learner, baseline=baseline, **TOLD).proved == 0.0
    assert guard_limit(learner=0.4, baseline=0.3, agreement=0.5, **TOLD).proved == 0.0


def test_the_theorems_sum_is_what_its_conditions_give() -> None:
    """The least sum of holdouts h with sum of h_t t^2 >= c s^2/2 for every s from t_0 on, added up round by round."""
    c, start, rounds = 18.0, 40, 3000
    sums, kept = c * start**2 / 2.0, c / 2.0
    for s in range(start + 1, rounds + 1):
        added = c * s * s / 2.0 - sums
        sums, kept = sums + added, kept + added / (s * s)
    claimed = c * (math.log((rounds + 1) / (start + 1)) + 0.5 - 0.5 / start)
    assert claimed <= kept <= claimed * 1.02


def test_a_schedule_that_starts_late_or_holds_less_out_is_not_proved() -> None:
    """A tenth less holdout from half of the rounds on: no rate has the wealth that the schedule's own keeps."""
    limit = guard_limit(learner=0.3, baseline=0.3, **TOLD)
    held = np.diff(limit.kept) / np.diff(limit.times)
    rates = np.geomspace(1e-5, 30.0, 240)

    def least_wealth(held: Any) -> float:
        wealth, worst = np.zeros(rates.size), math.inf
        for many, h in zip(np.diff(limit.times), held, strict=True):
            p = 1.0 - h
            wealth += many * (
                p * _growth(0.3, rates[None], None)[0] + h * _growth(0.3, (rates * (0.1 - p) / h)[None], None)[0]
            )
            worst = min(worst, float(wealth.max())) if p > 0.1 + 1e-9 else worst
        return worst

    event = math.log(1 / 0.05)
    assert least_wealth(held) >= event - 1e-6
    late = np.where(limit.times[1:] > 10_000, 0.9 * held, held)
    assert least_wealth(late) < event


def test_our_guard_needs_more_than_the_limit_and_agreement_lowers_it() -> None:
    guard = surefoot.Guard(alpha=0.1, delta=0.05)
    found = simulate_guard(guard, lambda t, share, rng: (0.4, 0.3), rounds=20_000, runs=40, seed=3)
    limit = guard_limit(learner=0.4, baseline=0.3, **TOLD)
    assert limit.computed < found.baseline_rounds.mean() < 2.5 * limit.computed
    agreeing = guard_limit(learner=0.3, baseline=0.3, agreement=0.5, **TOLD).computed
    assert agreeing < 0.5 * guard_limit(learner=0.3, baseline=0.3, **TOLD).computed


@pytest.mark.parametrize(
    "wrong",
    [{"learner": 0.0}, {"baseline": 1.0}, {"alpha": 0.0}, {"rounds": 0}, {"agreement": 1.0}, {"deviation": -1.0}],
)
def test_bad_numbers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        guard_limit(**{"learner": 0.4, "baseline": 0.3, **TOLD, **wrong})
