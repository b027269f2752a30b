"""The guarantee, measured: violations over thousands of seeded runs, against a threshold computed from delta."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import surefoot
from surefoot import theory
from tests.worlds import World

FALSE_ALARM = 1e-6  # chance that a test fails although the guarantee holds exactly at delta


@dataclass
class Outcome:
    """What happened over one run, against the truth."""

    violated: bool = False
    covered: bool = True
    regret: float = 0.0
    baseline_rounds: int = 0


def run(policy: Any, world: World, *, rounds: int, alpha: float, known: bool) -> Outcome:
    outcome = Outcome()
    earned = owed = 0.0
    for _ in range(rounds):
        rows, baseline, means = world.round()
        decision = policy.decide(rows, baseline=baseline, baseline_reward=float(means[baseline]) if known else None)
        earned += means[decision.action]
        owed += means[baseline]
        outcome.violated |= earned < (1 - alpha) * owed - 1e-9
        outcome.regret += float(means.max() - means[decision.action])
        outcome.baseline_rounds += decision.source == "baseline"
        policy.observe(decision, world.reward(means[decision.action]))
        state = policy.ridge
        gap = state.theta - world.theta
        radius = theory.radius(state.count, **{k: v for k, v in policy.settings.items() if k in SETTINGS})
        outcome.covered &= float(gap @ state.gram @ gap) <= radius**2 or state.count == 0
    return outcome


SETTINGS = ("dim", "delta", "noise", "ridge", "theta_bound", "feature_bound")


def outcomes(
    name: str, *, runs: int, seed: int, alpha: float, delta: float, noise: float = 0.1, told: float = 1.0
) -> list[Outcome]:
    """Many runs of a policy that is told `told` times the true noise."""
    rng = np.random.default_rng(seed)
    found = []
    for index in range(runs):
        dim = (2, 3, 5)[index % 3]
        world = World(rng, dim, 6, noise, changing=index % 2 == 0, moving=False, rank=1)
        settings = world.settings(ridge=(0.3, 1.0, 2.5)[index // 3 % 3], delta=delta, noise=noise * told)
        policy: Any
        if name == "LUCB":
            policy = surefoot.LUCB(**settings)
        elif name == "CLUCB":
            policy = surefoot.CLUCB(alpha=alpha, **settings)
        else:
            policy = surefoot.CLUCB2(alpha=alpha, nesting="latest", **settings)
        found.append(run(policy, world, rounds=60, alpha=alpha, known=name == "CLUCB"))
    return found


def most_allowed(runs: int, delta: float) -> int:
    """The number of failures that chance alone exceeds with probability FALSE_ALARM at most."""
    return int(binom.isf(FALSE_ALARM, runs, delta))


@pytest.mark.parametrize("name", ["CLUCB", "CLUCB2"])
def test_violations_stay_within_what_delta_allows(name: str) -> None:
    found = outcomes(name, runs=2000, seed=11, alpha=0.05, delta=0.05)
    assert sum(o.violated for o in found) <= most_allowed(len(found), 0.05)
    assert sum(not o.covered for o in found) <= most_allowed(len(found), 0.05)
    assert sum(o.baseline_rounds < 60 for o in found) > 100, "the learner must have had its chances"


def test_the_unconstrained_learner_does_violate() -> None:
    found = outcomes("LUCB", runs=300, seed=11, alpha=0.05, delta=0.05)
    assert sum(o.violated for o in found) > most_allowed(len(found), 0.05)
    assert sum(not o.covered for o in found) <= most_allowed(len(found), 0.05)


@pytest.mark.parametrize("name", ["CLUCB", "CLUCB2"])
def test_a_noise_declared_far_too_small_is_seen(name: str) -> None:
    """The thresholds can be exceeded: this is what a wrong radius looks like."""
    found = outcomes(name, runs=200, seed=12, alpha=0.05, delta=0.05, noise=10.0, told=0.001)
    assert sum(not o.covered for o in found) > most_allowed(len(found), 0.05)
    if name == "CLUCB2":  # CLUCB's known rewards and small steps keep it above the floor even then
        assert sum(o.violated for o in found) > most_allowed(len(found), 0.05)


@pytest.mark.parametrize("name", ["LUCB", "CLUCB", "CLUCB2"])
def test_baseline_rounds_and_regret_stay_below_the_theorems(name: str) -> None:
    rng = np.random.default_rng(13)
    for index in range(60):
        world = World(rng, 3, 6, 0.1, changing=False, moving=False)
        _, baseline, means = world.round()
        settings = world.settings(ridge=min(0.3, world.feature_bound**2), delta=0.05)
        alpha = (0.1, 0.5)[index % 2]
        floor, gap = float(means[baseline]), float(means.max() - means[baseline])
        guard = {**settings, "alpha": alpha, "reward_floor": floor}
        policy: Any
        if name == "LUCB":
            policy, rounds_bound = surefoot.LUCB(**settings), 0.0
            regret_bound = theory.lucb_regret_bound(200, **settings)
        elif name == "CLUCB":
            policy = surefoot.CLUCB(alpha=alpha, **settings)
            rounds_bound = theory.conservative_rounds_bound(gap_floor=gap, **guard)
            regret_bound = theory.clucb_regret_bound(200, gap_floor=gap, gap_ceiling=gap, **guard)
        else:
            policy = surefoot.CLUCB2(nesting="latest", **guard)
            rounds_bound = theory.clucb2_conservative_rounds_bound(**guard)
            regret_bound = theory.clucb2_regret_bound(200, gap_ceiling=gap, **guard)
        outcome = run(policy, world, rounds=200, alpha=alpha, known=name == "CLUCB")
        if outcome.covered:
            assert outcome.baseline_rounds <= rounds_bound
            assert outcome.regret <= regret_bound


@pytest.mark.parametrize("known", [True, False])
def test_conservative_ucb_keeps_its_floor(known: bool) -> None:
    rng = np.random.default_rng([14, known])
    runs, violated, learner = 400, 0, 0
    for _ in range(runs):
        means = rng.uniform(0.2, 1.0, size=4)
        policy = surefoot.ConservativeUCB(
            arms=4, alpha=0.3, delta=0.05, noise=0.1, baseline_reward=float(means[0]) if known else None
        )
        earned, failed = 0.0, False
        for t in range(1, 121):
            decision = policy.decide(baseline=0)
            earned += means[decision.action]
            failed |= earned < (1 - 0.3) * t * means[0] - 1e-9
            learner += decision.source == "learner"
            policy.observe(decision, float(means[decision.action] + 0.1 * rng.normal()))
        violated += failed
    assert violated <= most_allowed(runs, 0.05)
    assert learner > runs


def test_data_that_contradict_the_assumptions_leave_only_the_baseline() -> None:
    """Coin flips where almost no noise was declared: no theta fits, so nothing is promised, and everybody is told."""
    rng = np.random.default_rng(0)
    policy = surefoot.CLUCB2(dim=2, alpha=0.1, delta=0.01, noise=0.001, ridge=0.01, theta_bound=1.0, feature_bound=1.0)
    for _ in range(30):
        decision = policy.decide(np.array([[1.0, 0.0], [0.6, 0.3]]), baseline=1)
        policy.observe(decision, float(rng.integers(2)))
    assert policy.is_refuted
    assert decision.source == "baseline"
    assert decision.certificate.guaranteed == -np.inf
    assert "the alarm is on" in decision.certificate.explain()
    surefoot.check(decision.certificate.proof)
    restored = surefoot.CLUCB2.from_state(policy.state())
    assert restored.is_refuted


@pytest.mark.long
@pytest.mark.parametrize("name", ["CLUCB", "CLUCB2"])
def test_violations_stay_within_what_delta_allows_over_many_more_runs(name: str) -> None:
    found = outcomes(name, runs=20_000, seed=15, alpha=0.02, delta=0.01)
    assert sum(o.violated for o in found) <= most_allowed(len(found), 0.01)
    assert sum(not o.covered for o in found) <= most_allowed(len(found), 0.01)
