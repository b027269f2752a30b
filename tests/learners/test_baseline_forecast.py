"""A guarded learner predicts the baseline's rewards by itself, from what is known before the coin."""

from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import StateError
from surefoot.learners import CallableLearner, GuardedLearner

BASELINE, LEARNER = (0.05, 0.85), (0.05, 0.85)


class Newest(CallableLearner):
    """Proposes the last action, and has a state, which is empty."""

    def __init__(self) -> None:
        super().__init__(lambda _, actions: actions[-1])

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Any) -> None:
        pass


def guarded(predict: bool = True, **settings: Any) -> GuardedLearner:
    return GuardedLearner(Newest(), surefoot.Guard(alpha=0.1, delta=0.05, predict=predict, **{"seed": 1, **settings}))


def rounds_of(
    shop: GuardedLearner, rng: np.random.Generator, rounds: int, means: Any = (BASELINE, LEARNER)
) -> list[Any]:
    decisions = []
    for _ in range(rounds):
        who = int(rng.random() < 0.5)
        context = {"device": ("phone", "desk")[who], "age": float(rng.integers(18, 80)), "noise": float(rng.normal())}
        decision = shop.decide(context, ["old", "new"], "old")
        shop.observe(decision, float(rng.random() < means[decision.source == "learner"][who]))
        decisions.append(decision)
    return decisions


def kept(predict: bool, means: Any, rounds: int = 4000) -> int:
    found = [
        sum(
            one.source == "baseline"
            for one in rounds_of(guarded(predict, seed=seed), np.random.default_rng(seed), rounds, means)
        )
        for seed in range(4)
    ]
    return sum(found)


def test_a_context_that_tells_saves_rounds_of_the_baseline() -> None:
    assert kept(True, (BASELINE, LEARNER)) < 0.8 * kept(False, (BASELINE, LEARNER))


def test_a_context_that_tells_nothing_costs_next_to_nothing() -> None:
    means = ((0.3, 0.3), (0.33, 0.33))
    assert kept(True, means) < 1.03 * kept(False, means)


def test_it_continues_from_its_state_to_the_bit() -> None:
    shop, rng = guarded(), np.random.default_rng(5)
    rounds_of(shop, rng, 500)
    again = GuardedLearner.from_state(shop.state(), Newest())
    pairs = [rounds_of(one, np.random.default_rng(6), 300) for one in (shop, again)]
    assert [one.share for one in pairs[0]] == [one.share for one in pairs[1]]
    assert shop._forecast.state() == again._forecast.state()


def test_a_damaged_forecast_is_refused() -> None:
    shop = guarded()
    rounds_of(shop, np.random.default_rng(5), 60)
    state = shop.state()
    with pytest.raises(StateError, match="damaged"):
        GuardedLearner.from_state({**state, "forecast": state["forecast"][:2]}, Newest())


@pytest.mark.parametrize("ceiling", [None, 0.9])
def test_under_a_ceiling_it_predicts_nothing(ceiling: float | None) -> None:
    shop = guarded(baseline_ceiling=ceiling)
    rounds_of(shop, np.random.default_rng(5), 300)
    assert (shop._forecast.predict({"device": "desk"}) is None) is (ceiling is not None)


@pytest.mark.parametrize(
    "context", [None, {}, [], object(), {"a": None, "b": float("nan"), "c": [1], "d": 10**400, "person": "ada"}]
)
def test_a_context_without_anything_to_go_by_is_no_error(context: Any) -> None:
    shop = guarded()
    for _ in range(100):
        shop.observe(shop.decide(context, ["old", "new"], "old"), 0.5)
    assert shop._forecast.predict(context) is None
