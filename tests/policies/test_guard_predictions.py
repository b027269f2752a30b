"""A ceiling of the baseline's mean and predictions that follow the context: together only where the ceiling does, too.

One visitor in five is rich. For the rich the baseline earns 1 for sure, for the others nothing: 0.2 on average. Bets
that could be ruined book a round at its worst, and with a prediction these are the rounds of the rich.
"""

from typing import Any

import numpy as np
import pytest

from surefoot import Guard, floor
from surefoot.errors import ConfigError, InputError
from tests.policies.safe_runs import most_allowed

ALPHA, DELTA, RESERVE, RUNS = 0.1, 0.05, 2.0, 20
TOLD: dict[str, Any] = {"alpha": ALPHA, "delta": DELTA, "ramp": "gate", "cap": 0.2, "reserve": RESERVE}


def least_slack(guard: Guard, seed: int, *, is_predicted: bool) -> float:
    """Proposals lose all from the rich, and give a little to the others: less than they take."""
    rng, slack, least = np.random.default_rng(seed), 0.0, 0.0
    for _ in range(2000):
        baseline = float(rng.random() < 0.2)
        learner = 0.0 if baseline else 0.08
        made = guard.decide(baseline=0, proposal=1, prediction=baseline if is_predicted else None)
        slack += made.share * (learner - baseline) + ALPHA * baseline
        least = min(least, slack)
        guard.observe(made, learner if made.source == "learner" else baseline)
    return least


@pytest.mark.parametrize(
    ("told", "is_predicted"),
    [({"baseline_ceiling": 0.2}, False), ({"baseline_ceiling": 1.0, "ceiling_given_context": True}, True), ({}, True)],
    ids=["on average, not predicted", "given the context", "no ceiling"],
)
def test_a_true_ceiling_keeps_the_floor(told: dict[str, Any], is_predicted: bool) -> None:
    guards = (Guard(**TOLD, **told, seed=seed) for seed in range(RUNS))
    below = sum(least_slack(one, seed, is_predicted=is_predicted) < -RESERVE for seed, one in enumerate(guards))
    assert below <= most_allowed(RUNS, DELTA)


def test_a_ceiling_on_average_takes_no_predictions() -> None:
    guard = Guard(**TOLD, baseline_ceiling=0.2)
    with pytest.raises(InputError, match="ceiling_given_context=True"):
        guard.decide(baseline=0, proposal=1, prediction=1.0)
    assert guard.rounds == 0
    metrics = {"quality": floor(0, 1, alpha=0.1, baseline_ceiling=0.2), "clicks": floor(0, 1, alpha=0.1)}
    several = Guard(delta=0.05, metrics=metrics)
    several.decide(baseline=0, proposal=1, prediction={"clicks": 0.5})
    with pytest.raises(InputError, match="'quality'"):
        several.decide(baseline=0, proposal=1, prediction={"clicks": 0.5, "quality": 0.5})


def test_the_declaration_belongs_to_a_ceiling() -> None:
    with pytest.raises(ConfigError, match="`ceiling_given_context`"):
        Guard(**TOLD, ceiling_given_context=True)


def test_a_false_declaration_is_what_the_promise_rests_on() -> None:
    """The same world below its floor: a test that could not fail would show nothing."""
    guard = Guard(**TOLD, baseline_ceiling=0.2, ceiling_given_context=True, seed=0)
    assert least_slack(guard, 0, is_predicted=True) < -2.0 * RESERVE
