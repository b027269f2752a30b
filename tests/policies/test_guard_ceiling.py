"""A ceiling of the baseline's mean must hold whatever is known of a round, and not only on average over visitors.

One visitor in five is rich. For the rich the baseline earns 1 for sure, for the others nothing: 0.2 on average. Who
they are shows in a prediction, in what is proposed, or in the rounds that are held. The proposal earns nothing.
"""

from typing import Any

import numpy as np
import pytest

from surefoot import Guard
from tests.policies.safe_runs import most_allowed

ALPHA, DELTA, RESERVE, RUNS, RICH = 0.1, 0.05, 2.0, 100, 0.2
WAYS = ("prediction", "agreement", "hold")


def runs_below(ceiling: float | None, way: str) -> int:
    """Runs in which the reserve is spent, and more, on proposals that earn nothing."""
    return sum(_least_slack(ceiling, way, seed) < -RESERVE for seed in range(RUNS))


def _least_slack(ceiling: float | None, way: str, seed: int) -> float:
    guard = Guard(alpha=ALPHA, delta=DELTA, ramp="gate", reserve=RESERVE, baseline_ceiling=ceiling, seed=seed)
    rng, slack, least = np.random.default_rng(seed), 0.0, 0.0
    for _ in range(150):
        rich = bool(rng.random() < RICH)
        asked: dict[str, Any] = {"proposal": int(rich) if way == "agreement" else 1, "hold": way == "hold" and not rich}
        decision = guard.decide(baseline=0, prediction=float(rich) if way == "prediction" else None, **asked)
        slack += (ALPHA - decision.share) * (rich if way != "nothing" else RICH)
        least = min(least, slack)
        guard.observe(decision, 0.0 if decision.source == "learner" else float(rich))
    return least


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ceiling", [None, 1.0])
def test_a_true_ceiling_keeps_the_floor(ceiling: float | None, way: str) -> None:
    assert runs_below(ceiling, way) <= most_allowed(RUNS, DELTA)


def test_an_average_is_a_true_ceiling_where_nothing_tells_visitors_apart() -> None:
    assert runs_below(RICH, "nothing") <= most_allowed(RUNS, DELTA)


@pytest.mark.parametrize("way", WAYS)
def test_an_average_is_a_false_ceiling_where_something_does(way: str) -> None:
    """The same worlds below their floor: tests that could not fail would show nothing."""
    assert runs_below(RICH, way) > most_allowed(RUNS, DELTA)
