"""The guard's promise in worlds whose means are known: constant, drifting, and chosen by who knows the share.

Runs that are ever below the floor, and runs whose bank ever holds more than was true, are counted against the limit
that a binomial of so many runs at delta exceeds once in ten thousand.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from surefoot import Guard, ceiling, floor
from surefoot.simulation import simulate_guard
from tests.policies.guard_worlds import CREDIT_WORLDS, WORLDS

BOTH = {"quality": floor(0, 1, alpha=0.1), "cost": ceiling(0, 1, alpha=0.2)}


def limit(runs: int, delta: float) -> int:
    return int(binom.ppf(1 - 1e-4, runs, delta))


def two_metrics(name: str) -> Callable[..., tuple[Any, Any]]:
    """The world for quality, and for cost the same with both sides changed about."""
    world = WORLDS[name]()

    def both(t: int, share: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        learner, baseline = (np.broadcast_to(mean, share.shape) for mean in world(t, share, rng))
        return np.stack([learner, baseline], axis=1), np.stack([baseline, learner], axis=1)

    return both


def check(guard: Guard, world: Any, runs: int, rounds: int, delta: float, **how: Any) -> None:
    found = simulate_guard(guard, world, rounds=rounds, runs=runs, seed=runs + rounds, **how)
    assert found.broken <= limit(runs, delta)
    assert found.overclaimed <= limit(runs, delta)


@pytest.mark.parametrize("name", WORLDS)
def test_the_floor_holds(name: str) -> None:
    check(Guard(alpha=0.1, delta=0.2), WORLDS[name](), 300, 1200, 0.2)


@pytest.mark.parametrize("name", ["better", "good until trusted", "a teaser", "a sawtooth", "random means"])
@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.1, "promise": "played", "reserve": 10.0},
        {"alpha": 0.3, "promise": "played"},
        {"alpha": 0.01},
        {"alpha": 0.5, "ramp": "gate", "min_holdout": 0.001},
        {"alpha": 0.2, "goal": "save"},
        {"alpha": 0.1, "reserve": 3.0},
        {"metrics": {"cost": ceiling(0, 1, alpha=0.2)}},
    ],
    ids=lambda told: " ".join(f"{key}" for key in told),
)
def test_the_floor_holds_with_every_kind_of_promise(settings: dict[str, Any], name: str) -> None:
    check(Guard(delta=0.2, **settings), WORLDS[name](), 200, 1000, 0.2)


@pytest.mark.parametrize("name", ["better", "good until trusted", "a teaser"])
def test_the_floor_holds_with_late_rewards_and_rewards_inside_their_bounds(name: str) -> None:
    check(Guard(alpha=0.1, delta=0.2), WORLDS[name](), 200, 1000, 0.2, delay=50)
    check(Guard(alpha=0.1, delta=0.2), WORLDS[name](), 200, 1000, 0.2, deviation=0.2)


@pytest.mark.parametrize("name", ["better", "random means", "good until half trusted", "worst in proportion"])
def test_every_metric_keeps_its_promise(name: str) -> None:
    check(Guard(delta=0.2, metrics=BOTH), two_metrics(name), 200, 1000, 0.2)


def test_a_guard_that_does_not_pay_its_delta_is_caught() -> None:
    guard = Guard(alpha=0.1, delta=0.2)
    (promise,) = guard.step_settings.metrics
    promise.event = math.log(0.5)
    guard.step_settings.metrics = [promise]
    found = simulate_guard(guard, WORLDS["worst in proportion"](), rounds=1200, runs=300, seed=1)
    assert found.overclaimed > limit(300, 0.2)
    assert found.broken > limit(300, 0.2)


@pytest.mark.parametrize("told", [{}, {"goal": "save"}, {"ramp": "gate"}], ids=["earn", "save", "gate"])
@pytest.mark.parametrize("name", CREDIT_WORLDS)
def test_the_floor_holds_where_agreement_pays(name: str, told: dict[str, Any]) -> None:
    check(Guard(alpha=0.1, delta=0.2, **told), CREDIT_WORLDS[name](), 200, 1500, 0.2)


@pytest.mark.long
@pytest.mark.parametrize("delta", [0.2, 0.05])
@pytest.mark.parametrize("told", [{}, {"goal": "save"}, {"ramp": "gate"}], ids=["earn", "save", "gate"])
@pytest.mark.parametrize("name", CREDIT_WORLDS)
def test_the_floor_holds_where_agreement_pays_in_a_thousand_long_runs(
    name: str, told: dict[str, Any], delta: float
) -> None:
    check(Guard(alpha=0.1, delta=delta, **told), CREDIT_WORLDS[name](), 1000, 6000, delta)
    check(Guard(alpha=0.1, delta=delta, **told), CREDIT_WORLDS[name](), 1000, 3000, delta, delay=100)


@pytest.mark.long
@pytest.mark.parametrize("delta", [0.2, 0.05])
@pytest.mark.parametrize("name", WORLDS)
def test_the_floor_holds_in_a_thousand_long_runs(name: str, delta: float) -> None:
    check(Guard(alpha=0.1, delta=delta), WORLDS[name](), 1000, 6000, delta)


@pytest.mark.long
@pytest.mark.parametrize("delta", [0.2, 0.05])
@pytest.mark.parametrize("name", ["better", "equal", "good until trusted", "a teaser", "a sawtooth", "random means"])
def test_other_promises_hold_in_a_thousand_long_runs(name: str, delta: float) -> None:
    check(Guard(alpha=0.2, delta=delta, promise="played"), WORLDS[name](), 1000, 4000, delta)
    check(Guard(delta=delta, metrics=BOTH), two_metrics(name), 1000, 4000, delta)
    check(Guard(alpha=0.1, delta=delta), WORLDS[name](), 1000, 4000, delta, delay=200)


@pytest.mark.parametrize(("lost", "side"), [(0.0, "learner"), (1.0, "learner"), (1.0, "baseline"), (0.0, "baseline")])
def test_whoever_loses_rewards_on_purpose_cannot_move_the_lift(lost: float, side: str) -> None:
    """Both sides earn the same; at a small share, one lost reward of the learner is worth ten of the baseline's."""
    runs, wrong = 24, 0
    for seed in range(runs):
        rng, guard, is_wrong = np.random.default_rng(seed), Guard(alpha=0.3, delta=0.1, cap=0.1, seed=seed + 1), False
        for _ in range(600):
            decision, reward = guard.decide(baseline="a", proposal="b"), float(rng.random() < 0.5)
            if decision.source == side and reward == lost:
                guard.abandon(decision)
            else:
                guard.observe(decision, reward)
            low, high = guard.lift_intervals["reward"]
            is_wrong |= not low <= 0.0 <= high
        wrong += is_wrong
    assert wrong <= limit(runs, 0.05)


def test_rounds_that_agree_pay_and_are_not_counted_as_the_baselines() -> None:
    def world(t: int, share: Any, rng: np.random.Generator) -> tuple[float, float, Any]:
        return 0.3, 0.4, rng.random(share.size) < 0.5

    for goal, least in (("earn", 0.0), ("save", 0.25)):
        told: dict[str, Any] = {"alpha": 0.1, "delta": 0.05, "goal": goal}
        found = simulate_guard(Guard(**told), world, rounds=6000, runs=20, seed=4)
        assert found.broken == found.overclaimed == 0
        assert float((1.0 - found.baseline_rounds / 3000).mean()) > least
    alone = simulate_guard(Guard(**told), lambda t, share, rng: (0.3, 0.4), rounds=3000, runs=20, seed=4)
    assert found.baseline_rounds.mean() < 0.8 * alone.baseline_rounds.mean()


def kept_back(runs: int, lost: float, side: str, **how: Any) -> tuple[int, int]:
    """Whoever hands rewards in keeps one kind of them back, for a while or for good; overclaims of bank and lift.

    Proposals pay far less than the baseline, so that what is proved of them must never look well.
    """
    overclaimed = missed = 0
    for seed in range(runs):
        rng, guard, back = np.random.default_rng(seed), Guard(alpha=0.3, delta=0.2, seed=seed, **how), list[Any]()
        slack, is_wrong, is_missed = 0.0, False, False
        for t in range(600):
            decision = guard.decide(baseline=0, proposal=1)
            slack += decision.share * 0.3 + (0.3 - decision.share) * 0.5
            reward = float(rng.random() < (0.3 if decision.source == "learner" else 0.5))
            if decision.source == side and reward == lost:
                back.append((decision, reward))
            else:
                guard.observe(decision, reward)
            if t == 500:
                for one, came in back[::2]:
                    guard.observe(one, came)
            is_wrong |= guard.banks["reward"] > slack + 1e-9
            low, high = guard.lift_intervals["reward"]
            is_missed |= not low <= -0.2 <= high
        overclaimed += is_wrong
        missed += is_missed
    return overclaimed, missed


@pytest.mark.parametrize(("lost", "side"), [(0.0, "learner"), (1.0, "baseline")])
@pytest.mark.parametrize("told", [{"ramp": "gate"}, {}, {"goal": "save"}], ids=["gate", "earn", "save"])
def test_rewards_that_are_kept_back_while_others_come_move_no_bank(
    lost: float, side: str, told: dict[str, Any]
) -> None:
    overclaimed, missed = kept_back(60, lost, side, **told)
    assert overclaimed <= limit(60, 0.2)
    assert missed <= limit(60, 0.05)


def test_a_guard_that_leaves_late_rounds_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Guard._learn_round

    def learn_what_came(guard: Guard, entry: Any, reward: Any) -> None:
        if not math.isnan(reward[0]):
            plain(guard, (*entry[:2], 1), reward)

    monkeypatch.setattr(Guard, "_learn_round", learn_what_came)
    overclaimed, missed = kept_back(60, 0.0, "learner", ramp="gate")
    assert overclaimed > limit(60, 0.2)
    assert missed > limit(60, 0.05)


@pytest.mark.parametrize("told", [{"ramp": "free"}, {}, {"goal": "save"}], ids=["free", "earn", "save"])
def test_bad_news_that_are_kept_back_while_agreeing_rounds_gamble_move_no_bank(told: dict[str, Any]) -> None:
    """The world hands rewards in up to where the bank looks best, and then lets proposals agree until luck turns."""
    runs, delta, overclaimed = 60, 0.2, 0
    for seed in range(runs):
        guard, rng, kept_back = (
            Guard(alpha=0.3, delta=delta, seed=seed, **told),
            np.random.default_rng(seed),
            list[Any](),
        )
        slack, is_wrong = 0.0, False
        for t in range(400):
            agrees = len(kept_back) >= 40
            decision = guard.decide(baseline=0, proposal=0 if agrees else 1)
            means = (0.5, 0.5) if agrees else (0.2, 0.5)
            slack += decision.share * (means[0] - means[1]) + 0.3 * means[1]
            reward = float(rng.random() < means[decision.source == "baseline"])
            if agrees:
                guard.observe(decision, reward)
            else:
                # What it brings to the estimate of the slack, of which only the best beginning is handed in.
                value = reward - (0.0 if decision.source == "learner" else 0.7 * reward / (1.0 - decision.share))
                kept_back.append((decision, reward, value))
                best = int(np.argmax(np.cumsum([0.0, *(one[2] for one in kept_back)])))
                for one, come, _ in kept_back[:best]:
                    guard.observe(one, come)
                kept_back = kept_back[best:]
            is_wrong |= guard.banks["reward"] > slack + 1e-9
            if t % 150 == 149:
                for one, come, _ in kept_back:
                    guard.observe(one, come)
                kept_back = []
        overclaimed += is_wrong
    assert overclaimed <= limit(runs, delta)
