"""What once went wrong, each as a test."""

import pickle
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import surefoot
from surefoot.core import native
from surefoot.errors import ConfigError, InputError, StateError
from surefoot.linear.nested import Nested
from surefoot.simulation.engine import simulate
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.worlds import Baseline, FunctionWorld

TOLD: dict[str, Any] = {
    "dim": 2, "delta": 0.01, "noise": 0.1, "ridge": 1.0, "theta_bound": 1.0, "feature_bound": 1.0
}  # fmt: skip
ROWS = np.array([[0.6, 0.0], [0.0, 0.8]])
WAITING = 9  # place in a saved ridge


def test_the_favourite_of_last_time_never_wins_by_rounding() -> None:
    """Means far above the widths: bar - mean is mostly rounding, and the better row must still be seen."""
    rng = np.random.default_rng(0)
    core = surefoot.LUCB(**TOLD).core
    rows = np.array([[0.6, 0.0], [0.0, 0.8], [0.1, 0.2]])
    core.adopt(rows)
    for _ in range(5000):
        mean, width = 10.0 ** rng.uniform(0, 8), 10.0 ** rng.uniform(-7, -3)
        means, squares = np.array([mean, mean + width / 2, mean - 1]), np.full(3, width**2)
        core.ridge.favourite = int(rng.integers(3))
        core.restore_scores(means, squares, [], 0.0, 0.0, 0.0)
        uppers = means + np.sqrt(squares)  # before any observation a width counts theta_bound = 1 times
        *_, evidence = core.decide(rows, True, -1, 0.0, 0.0, np.inf, native.FREE)
        assert (evidence.action, evidence.optimism) == (int(np.argmax(uppers)), uppers.max())


def test_little_noise_and_a_tiny_ridge_still_play_the_argmax() -> None:
    policy = surefoot.LUCB(dim=2, delta=0.01, noise=1e-6, ridge=1e-8, theta_bound=1.5, feature_bound=1.0)
    for _ in range(300):
        uppers = [policy.confidence_set.upper(row) for row in np.eye(2)]
        decision = policy.decide(np.eye(2))
        assert uppers[decision.action] == pytest.approx(max(uppers), rel=1e-9)
        policy.observe(decision, 1.0)


@pytest.mark.parametrize("policy", ["LUCB", "CLUCB", "CLUCB2"])
def test_the_engine_refuses_long_features_for_every_policy(policy: str) -> None:
    world = FunctionWorld(
        dim=2, actions=2, baseline=Baseline(action=0), theta=(0.3, 0.3), feature_bound=1.0,
        function=lambda rng: np.array([[0.5, 0.5], [1.0, 3.0 * rng.random()]]),
    )  # fmt: skip
    spec = Spec(policy, alpha=None if policy == "LUCB" else 0.1)
    with pytest.raises(ConfigError, match=r"no longer than the world's feature_bound=1"):
        simulate(world, [spec], runs=2, horizon=50)


@pytest.mark.parametrize("policy", ["CLUCB", "CLUCB2"])
def test_the_engine_refuses_a_negative_baseline_where_a_floor_is_kept(policy: str) -> None:
    world = FunctionWorld(
        dim=2, actions=2, baseline=Baseline(action=0), theta=(-0.3, 0.1), feature_bound=1.0,
        function=lambda rng: np.array([[0.5, 0.5 * rng.random()], [0.1, 0.9]]),
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"must never be negative where a floor is kept"):
        simulate(world, [Spec(policy, alpha=0.1)], runs=2, horizon=50)
    simulate(world, [Spec("LUCB")], runs=2, horizon=50)


def damaged(policy: Any, **changes: Any) -> dict[str, Any]:
    return {**policy.state(), **changes}


def test_a_damaged_state_never_reaches_compiled_code() -> None:
    policy = surefoot.LUCB(**TOLD)
    policy.observe(policy.decide(surefoot.Catalogue(ROWS)), 0.5)
    policy.decide(surefoot.Catalogue(ROWS))
    waiting = policy.state()["ridge"]
    waiting[WAITING] = 1e4
    for changes in (
        {"pending_features": np.ones((1, 3000))},
        {"pending_rounds": np.array([2, 3])},
        {"catalogue_scores": np.zeros((1, 1))},
        {"catalogue": np.zeros((2, 5))},
        {"ridge": waiting},
        {"settings": {**policy.settings, "ridge": 2.0}},
    ):
        with pytest.raises(StateError):
            surefoot.Policy.from_state(damaged(policy, **changes))
    surefoot.Policy.from_state(policy.state())


def test_a_failure_while_learning_leaves_the_exact_policy_as_it_was() -> None:
    policy = surefoot.CLUCB2(alpha=0.1, **TOLD)
    decision = policy.decide(ROWS, baseline=0)
    with patch.object(Nested, "add", side_effect=MemoryError), pytest.raises(MemoryError):
        policy.observe(decision, 0.5)
    assert policy.ridge.count == 0
    assert policy.pending == (1,)
    policy.observe(decision, 0.5)
    assert policy.ridge.count == 1


def test_looking_at_the_exact_set_does_not_change_the_policy() -> None:
    policy = surefoot.CLUCB2(alpha=0.1, **TOLD)
    for _ in range(6):
        policy.observe(policy.decide(ROWS, baseline=0), 0.4)
    before = policy.state()
    policy.confidence_set.lower(np.array([0.3, -0.4]))
    after = policy.state()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_a_decision_and_its_features_cannot_be_changed() -> None:
    decision = surefoot.LUCB(**TOLD).decide(ROWS)
    features = decision.features
    with pytest.raises(ValueError, match="read-only"):
        features *= 0
    with pytest.raises(AttributeError, match="immutable"):
        decision.round = 7  # type: ignore[misc]


@pytest.mark.parametrize("reward", [1e305, -1e200, 10**400])
def test_a_reward_beyond_all_bounds_is_refused(reward: float) -> None:
    policy = surefoot.LUCB(**TOLD)
    decision = policy.decide(ROWS)
    with pytest.raises(InputError, match="`reward` must"):
        policy.observe(decision, reward)
    policy.observe(decision, 1e6)


def test_arm_means_are_exact_whatever_the_order_of_rewards() -> None:
    policy = surefoot.ConservativeUCB(arms=2, alpha=0.5, delta=0.1)
    for reward in [1e16, *[1.0] * 198, -1e16]:
        policy.observe(policy.decide(baseline=0), reward)
    total = policy.state()["arms"][2] + policy.state()["arms"][3]
    assert total.sum() == 198.0


@pytest.mark.parametrize("dim", [3, 4])
def test_what_a_policy_gives_out_of_its_ridge_changes_no_decision_that_was_made(dim: int) -> None:
    policy = surefoot.SafeLUCB(dim=dim, alpha=0.1, delta=0.01, noise=0.1, theta_bound=1.0, feature_bound=2.0)
    rows = np.eye(dim)
    for _ in range(5):
        policy.observe(policy.decide(rows, baseline=0), 0.5)
    given = policy.ridge
    decision = policy.decide(rows, baseline=0)
    said, state = pickle.dumps(decision.certificate.proof), policy.state()
    given.observe(rows[1], 5.0)
    policy.ridge.observe(rows[1], 5.0)
    assert pickle.dumps(decision.certificate.proof) == said
    assert np.array_equal(policy.state()["ridge"], state["ridge"])
