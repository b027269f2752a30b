"""SafeLUCB's promise, measured where it hurts: every radius, gate, fact and constraint against the truth.

Over seeded runs neither a bound above the truth nor a broken constraint may happen more often than delta allows.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from surefoot.simulation.engine import simulate
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.rewards import Bernoulli, Gaussian
from surefoot.simulation.worlds import ArmsWorld, Baseline, ContextualWorld
from tests.policies.safe_runs import (
    CONSTRAINTS,
    DELTA,
    FACTS,
    GATES,
    RADII,
    Outcome,
    Place,
    assert_within_delta,
    most_allowed,
    new_policy,
    play,
)

Order = Callable[[list[Any]], int]


@pytest.mark.parametrize("radius", RADII)
def test_every_gate_fact_and_constraint_stays_within_delta(radius: str) -> None:
    learned = matrix(radius, runs=1080)
    assert min(learned.values()) > 30, "the learner must have had its chances everywhere"


def matrix(radius: str, *, runs: int, rounds: int = 30, order: Order | None = None) -> Counter[str]:
    """Every gate, fact, constraint and world, each within delta; in how many runs of each the learner played."""
    rng = np.random.default_rng([21, RADII.index(radius)])
    groups: dict[str, list[Outcome]] = {}
    kinds, constraints = ("plain", "changing", "adversarial", "moving", "arms"), list(CONSTRAINTS)
    cells = 18 * len(constraints)  # of gates, facts and constraints
    for index in range(runs):
        chosen = {
            "gate": GATES[index % 3],
            "facts": FACTS[index // 3 % 6],
            "constraint": constraints[index // 18 % len(constraints)],
            "world": kinds[index // cells % 5] if index < 5 * cells else kinds[int(rng.integers(5))],
        }
        place = Place(rng, kind=chosen["world"], dim=2 + index % 2)
        policy = new_policy(place, radius=radius, **{k: v for k, v in chosen.items() if k != "world"})
        outcome = play(policy, place, facts=chosen["facts"], rounds=rounds, order=order)
        for key, value in chosen.items():
            groups.setdefault(f"{key} {value}", []).append(outcome)
    assert_within_delta(groups)
    return Counter({name: sum(o.learner_rounds > 0 for o in found) for name, found in groups.items()})


def outcomes(runs: int, seed: int, rounds: int, order: Any = None, **chosen: Any) -> list[Outcome]:
    """Many runs in one kind of world, over every gate and some facts in turn."""
    rng = np.random.default_rng([seed, runs])
    extra = chosen.pop("extra", {})
    radius, constraint = chosen.pop("radius", "amm"), chosen.pop("constraint", "cumulative")
    found = []
    for index in range(runs):
        place = Place(rng, **chosen)
        facts = ("none", "range", "all", "interval")[index // 3 % 4]
        policy = new_policy(place, radius=radius, gate=GATES[index % 3], facts=facts, constraint=constraint, **extra)
        found.append(play(policy, place, facts=facts, rounds=rounds, order=order))
    return found


@pytest.mark.parametrize("radius", ["logdet", "amm", "dual", "residual"])
@pytest.mark.parametrize(
    "scene",
    [
        pytest.param({"dim": 1, "actions": 3, "rounds": 60, "runs": 120}, id="one dimension"),
        pytest.param({"dim": 50, "actions": 4, "rounds": 12, "runs": 24, "kind": "changing"}, id="fifty dimensions"),
        pytest.param({"kind": "clicks", "scale": 0.03, "rounds": 60, "runs": 96}, id="rare clicks"),
        pytest.param({"kind": "adversarial", "noise": 0.3, "rounds": 50, "runs": 96}, id="rows chosen against it"),
    ],
)
def test_the_guarantee_holds_where_it_hurts(radius: str, scene: dict[str, Any]) -> None:
    found = outcomes(seed=22, radius=radius, **scene)
    assert_within_delta({radius: found})


ORDERS: dict[str, Order] = {
    "newest first": lambda waiting: len(waiting) - 1,
    "oldest first": lambda waiting: 0,
    "learner's last": lambda waiting: int(np.argmin([made.source == "learner" for made, _ in waiting])),
    "most surprising row first": lambda waiting: int(np.argmax([made.features[0] for made, _ in waiting])),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_guarantee_holds_whatever_the_order_of_late_rewards(order: str) -> None:
    """Rewards are handed in in any order, and learned in that of the decisions."""
    found = outcomes(seed=23, runs=96, rounds=50, kind="changing", order=ORDERS[order])
    assert_within_delta({order: found})
    assert sum(o.learner_rounds > 0 for o in found) > 48


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("radius", RADII)
def test_the_whole_matrix_stays_within_delta_with_late_rewards_in_any_order(radius: str, order: str) -> None:
    learned = matrix(radius, runs=2160, rounds=60, order=ORDERS[order])
    assert min(learned.values()) > 60, "the learner must have had its chances everywhere"


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("radius", ["paper", "amm"])
def test_the_guarantee_holds_in_a_misspecified_world_once_that_is_declared(radius: str, constraint: str) -> None:
    found = outcomes(seed=24, runs=72, rounds=40, kind="changing", misfit=0.03, radius=radius, constraint=constraint)
    assert_within_delta({constraint: found})


def specs(**common: Any) -> list[Spec]:
    return [
        Spec("SafeLUCB", alpha=0.1, delta=DELTA, **{**common, **own})
        for own in (
            {},
            {"reward_range": (0.0, 1.0)},
            {"reward_range": (0.0, 1.0), "knows_baseline": True, "optimism": "facts"},
            {"gate": "joint", "radius": "logdet"},
            {"gate": "ledger", "radius": "residual"},
            {"gate": "facts", "radius": "dual", "realised_share": 0.5},
            {"constraint": {"name": "checkpoints", "every": 1}},
        )
    ]


WORLDS = {
    "arms": ArmsWorld(actions=4, dim=4, rewards=Gaussian(0.1), baseline=Baseline(rank=1), low=0.2),
    "clicks": ArmsWorld(actions=3, dim=3, rewards=Bernoulli(), baseline=Baseline(rank=1), low=0.01, high=0.05),
    "contextual, late": ContextualWorld(actions=5, dim=3, rewards=Gaussian(0.1), baseline=Baseline(rank=2), delay=5.0),
}


def assert_long_runs_keep_the_floor(world: str, *, runs: int, horizon: int) -> None:
    for found in simulate(WORLDS[world], specs(), runs=runs, horizon=horizon, seed=32):
        assert int((found.violations[:, -1, 0] > 0).sum()) <= most_allowed(runs), found.spec
        if world != "clicks":
            assert (found.measures["baseline_rounds"][:, -1] < horizon).mean() > 0.5, found.spec


@pytest.mark.parametrize("world", WORLDS)
def test_long_runs_keep_the_floor(world: str) -> None:
    assert_long_runs_keep_the_floor(world, runs=60, horizon=400)


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
def test_many_more_long_runs_keep_the_floor(world: str) -> None:
    assert_long_runs_keep_the_floor(world, runs=2000, horizon=4000)
