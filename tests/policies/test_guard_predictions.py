"""A ceiling of the baseline's mean and predictions that follow the context: together only where the ceiling does, too.

One visitor in five is rich. For the rich the baseline earns 1 for sure, for the others nothing: 0.2 on average. The
proposal earns nothing. What is promised is about means given all that predictions know; without predictions, about the
mean over visitors.
"""

from typing import Any

import numpy as np
import pytest

from surefoot import Guard, floor
from surefoot.errors import ConfigError, InputError
from tests.policies.safe_runs import most_allowed

ALPHA, DELTA, RESERVE, RUNS = 0.1, 0.05, 2.0, 100
TOLD: dict[str, Any] = {"alpha": ALPHA, "delta": DELTA, "ramp": "gate", "reserve": RESERVE}


def below(told: dict[str, Any], *, is_predicted: bool) -> int:
    """Runs in which the reserve is spent, and more, on proposals that earn nothing."""
    return sum(_least_slack(Guard(**TOLD, **told, seed=seed), seed, is_predicted) < -RESERVE for seed in range(RUNS))


def _least_slack(guard: Guard, seed: int, is_predicted: bool) -> float:
    rng, slack, least = np.random.default_rng(seed), 0.0, 0.0
    for _ in range(60):
        baseline = float(rng.random() < 0.2)
        made = guard.decide(baseline=0, proposal=1, prediction=baseline if is_predicted else None)
        slack += (ALPHA - made.share) * (baseline if is_predicted else 0.2)
        least = min(least, slack)
        guard.observe(made, 0.0 if made.source == "learner" else baseline)
    return least


@pytest.mark.parametrize(
    ("told", "is_predicted"),
    [({"baseline_ceiling": 0.2}, False), ({"baseline_ceiling": 1.0, "ceiling_given_context": True}, True), ({}, True)],
    ids=["on average, not predicted", "given the context", "no ceiling"],
)
def test_a_true_ceiling_keeps_the_floor(told: dict[str, Any], is_predicted: bool) -> None:
    assert below(told, is_predicted=is_predicted) <= most_allowed(RUNS, DELTA)


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
    told = {"baseline_ceiling": 0.2, "ceiling_given_context": True}
    assert below(told, is_predicted=True) > most_allowed(RUNS, DELTA)
