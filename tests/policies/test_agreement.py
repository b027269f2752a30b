"""Decision by decision, the policies equal the slow reference written straight from the paper."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

import surefoot
from tests import reference
from tests.worlds import World

TIE = 1e-9  # relative: closer than this, floating point may decide either way

LINEAR = {
    "LUCB": (surefoot.LUCB, reference.SlowLUCB, {}),
    "CLUCB": (surefoot.CLUCB, reference.SlowCLUCB, {}),
    "CLUCB2-latest": (surefoot.CLUCB2, reference.SlowCLUCB2, {"nesting": "latest"}),
    "CLUCB2-exact": (surefoot.CLUCB2, reference.SlowCLUCB2, {"nesting": "exact"}),
}


def run_both(name: str, world: World, *, rounds: int, late: bool, catalogue: bool, **settings: Any) -> Counter[str]:
    fast_class, slow_class, extra = LINEAR[name]
    fast: Any = fast_class(**settings, **extra)
    slow: Any = slow_class(**settings, **extra)
    seen: Counter[str] = Counter()
    waiting: list[tuple[Any, Any, float]] = []
    for _ in range(rounds):
        rows, baseline, means = world.round()
        known = float(means[baseline]) if name == "CLUCB" else None
        expected = slow.decide(rows, baseline, known)
        given = surefoot.Catalogue(rows) if catalogue else rows
        decision = fast.decide(given, baseline=baseline, baseline_reward=known)
        certificate = decision.certificate
        scale = 1 + abs(expected.guaranteed) + (abs(expected.required) if name != "LUCB" else 0)
        if certificate.proposal != expected.proposal:
            gap = expected.upper[expected.proposal] - expected.upper[certificate.proposal]
            assert gap <= TIE * abs(expected.upper).max(), f"round {decision.round}: another proposal by {gap}"
            seen["tie"] += 1
            return seen
        assert certificate.guaranteed == pytest.approx(expected.guaranteed, abs=1e-6 * scale)
        assert certificate.required == pytest.approx(expected.required, abs=1e-6 * scale)
        if abs(expected.guaranteed - expected.required) <= TIE * scale:
            seen["tie"] += 1
            return seen
        assert (decision.source, decision.action) == (expected.source, expected.action)
        assert (certificate.margin >= 0) == (decision.source == "learner")
        seen[decision.source] += 1
        waiting.append((decision, expected, world.reward(means[decision.action])))
        if not late or world.rng.random() < 0.5:
            for _, slow_made, reward in waiting:  # in the order of the decisions, whatever the order of arrival
                slow.observe(slow_made, reward)
            world.rng.shuffle(waiting)
            for made, _, reward in waiting:
                fast.observe(made, reward)
            waiting.clear()
    return seen


@pytest.mark.parametrize("name", ["LUCB", "CLUCB", "CLUCB2-latest"])
@pytest.mark.parametrize("dim", [2, 3, 8])
@pytest.mark.parametrize(
    ("changing", "moving", "late"), [(False, False, False), (True, True, False), (True, True, True)]
)
def test_every_decision_equals_the_slow_reference(
    name: str, dim: int, changing: bool, moving: bool, late: bool
) -> None:
    """Hundreds of short random runs per case, thousands in all, over ridges, noises, alphas and deltas."""
    rng = np.random.default_rng([dim, changing, moving, late])
    seen: Counter[str] = Counter()
    grid = itertools.product([0.3, 1.0, 2.5], [0.01, 0.1], [0.01, 0.1, 0.5, 0.9], [0.01, 0.2])
    for index, (ridge, noise, alpha, delta) in enumerate(itertools.chain(*itertools.repeat(list(grid), 2))):
        world = World(rng, dim, int(rng.integers(2, 9)), noise, changing, moving)
        settings = world.settings(ridge=ridge, delta=delta)
        if name != "LUCB":
            settings["alpha"] = alpha
        if name.startswith("CLUCB2") and not changing:
            settings["reward_floor"] = float(world.round()[2].min()) * 0.9
        catalogue = index % 2 == 0 and not changing
        seen += run_both(name, world, rounds=30, late=late, catalogue=catalogue, **settings)
    assert seen["tie"] <= 2
    assert seen["learner"] > 100
    assert name == "LUCB" or seen["baseline"] > 100


@pytest.mark.parametrize("late", [False, True])
def test_the_exact_clucb2_equals_the_slow_reference(late: bool) -> None:
    rng = np.random.default_rng([7, late])
    seen: Counter[str] = Counter()
    for ridge, alpha, dim in itertools.product([0.3, 1.0], [0.1, 0.6], [2, 4]):
        for changing in (False, True):
            world = World(rng, dim, 4, 0.02, changing, changing)
            settings = world.settings(ridge=ridge, delta=0.1)
            floor = 0.0 if changing else float(world.round()[2].min()) * 0.9
            seen += run_both(
                "CLUCB2-exact",
                world,
                rounds=14,
                late=late,
                catalogue=False,
                alpha=alpha,
                reward_floor=floor,
                **settings,
            )
    assert seen["tie"] <= 2
    assert min(seen["learner"], seen["baseline"]) > 10


def test_the_comparison_can_fail() -> None:
    """A noise understated by a tenth on one side only must be seen at once."""
    world = World(np.random.default_rng(1), 3, 5, 0.1, True, True)
    settings = world.settings(ridge=0.3, delta=0.1)
    fast = surefoot.CLUCB(alpha=0.1, **{**settings, "noise": 0.09})
    slow = reference.SlowCLUCB(alpha=0.1, **settings)
    differs = False
    for _ in range(30):
        rows, baseline, means = world.round()
        decision = fast.decide(rows, baseline=baseline, baseline_reward=float(means[baseline]))
        expected = slow.decide(rows, baseline, float(means[baseline]))
        differs |= not np.isclose(decision.certificate.guaranteed, expected.guaranteed, rtol=1e-6, atol=1e-9)
        if decision.source != expected.source:
            differs = True
            break
        reward = world.reward(means[decision.action])
        fast.observe(decision, reward)
        slow.observe(expected, reward)
    assert differs


def test_agreement_holds_in_many_dimensions() -> None:
    rng = np.random.default_rng(50)
    seen: Counter[str] = Counter()
    for name in ("LUCB", "CLUCB", "CLUCB2-latest"):
        for alpha in (0.01, 0.8):
            world = World(rng, 50, 20, 0.01, True, True)
            extra = {} if name == "LUCB" else {"alpha": alpha}
            settings = world.settings(ridge=0.3, delta=0.05)
            seen += run_both(name, world, rounds=150, late=False, catalogue=False, **settings, **extra)
    assert seen["tie"] == 0
    assert seen["learner"] > 100


def test_large_action_sets_are_screened_and_still_agree() -> None:
    """From 64 actions and dimensions on, rows are looked at in single precision first."""
    rng = np.random.default_rng(64)
    world = World(rng, 70, 90, 0.01, True, True)
    settings = world.settings(ridge=0.3, delta=0.05)
    assert run_both("LUCB", world, rounds=60, late=False, catalogue=False, **settings)["learner"] == 60


@pytest.mark.parametrize("known", [True, False])
def test_conservative_ucb_equals_the_slow_reference(known: bool) -> None:
    rng = np.random.default_rng([3, known])
    seen: Counter[str] = Counter()
    for alpha, noise in itertools.product([0.013, 0.11, 0.47, 0.93], [0.02, 0.3]):  # no exact ties
        for _ in range(6):
            arms = int(rng.integers(2, 6))
            means = rng.uniform(0.1, 1.0, size=arms)
            default = int(rng.integers(arms))
            mean = float(means[default]) if known else None
            fast = surefoot.ConservativeUCB(arms=arms, alpha=alpha, delta=0.05, noise=noise, baseline_reward=mean)
            slow = reference.SlowConservativeUCB(arms, alpha, 0.05, noise, mean)
            waiting: list[tuple[Any, Any, float]] = []
            for _ in range(60):
                decision, expected = fast.decide(baseline=default), slow.decide(default)
                assert decision.certificate.proposal == expected.proposal
                assert (decision.action, decision.source) == (expected.action, expected.source)
                if expected.required < np.inf:
                    assert decision.certificate.guaranteed == pytest.approx(expected.guaranteed, abs=1e-9)
                    assert decision.certificate.required == pytest.approx(expected.required, abs=1e-9)
                    surefoot.check(decision.certificate.proof)
                    assert decision.certificate.proof.value == pytest.approx(decision.certificate.margin, abs=1e-9)
                seen[decision.source] += 1
                waiting.append((decision, expected, float(means[decision.action] + noise * rng.normal())))
                if rng.random() < 0.7:
                    for made, slow_made, reward in waiting:
                        fast.observe(made, reward)
                        slow.observe(slow_made, reward)
                    waiting.clear()
    assert min(seen["learner"], seen["baseline"]) > 100


def test_ucb_equals_the_slow_reference() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        arms = int(rng.integers(2, 7))
        means = rng.uniform(size=arms)
        fast, slow = surefoot.UCB(arms=arms, noise=0.4), reference.SlowUCB(arms, 0.4)
        waiting: list[tuple[Any, Any, float]] = []
        for _ in range(80):
            decision, expected = fast.decide(), slow.decide()
            assert decision.action == expected.action
            waiting.append((decision, expected, float(means[decision.action] + 0.4 * rng.normal())))
            if rng.random() < 0.6:
                for made, slow_made, reward in waiting:
                    fast.observe(made, reward)
                    slow.observe(slow_made, reward)
                waiting.clear()
