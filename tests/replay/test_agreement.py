"""The compiled replay decides as the policy objects do, and as a library does that we did not write."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from surefoot.linear.features import Disjoint
from surefoot.policies import Policy
from surefoot.replay import replayed_policy
from surefoot.replay.log import Batch, ContextLog, RowMaker
from surefoot.replay.replayed_policy import PLAYABLE, Declared, ReplayedPolicy, problem_of
from surefoot.simulation.policy_specs import Problem, Spec
from tests.replay.logs import linear_log, sharp

SPECS = [Spec(name, alpha=None if name == "LUCB" else 0.3) for name in PLAYABLE]


def by_objects(spec: Spec, mode: int, batch: Batch, declared: Declared, problem: Problem) -> NDArray[np.int64]:
    """The same replay with policy objects: a rejected round is undone by going back to the saved state."""
    policy: Policy = spec.new_policy(problem)
    tells = bool(getattr(policy, "needs_baseline_reward", False))
    fates = np.zeros(len(batch), dtype=np.int64)
    for t in range(len(batch)):
        saved = policy.state() if mode == replayed_policy.REJECTION else None
        known = declared.baseline_reward if tells else None
        decision = policy.decide(batch.features[t], baseline=int(batch.baselines[t]), baseline_reward=known)
        if saved is not None and decision.action != batch.actions[t]:
            policy = Policy.from_state(saved)
            continue
        fates[t] = replayed_policy.LEARNER if decision.source == "learner" else replayed_policy.BASELINE
        if mode == replayed_policy.IMPORTANCE:
            _learn_logged(policy, batch, t)
        else:
            column = decision.action if mode == replayed_policy.FULL else 0
            policy.observe(decision, float(batch.rewards[t, column]))
    return fates


def _learn_logged(policy: Any, batch: Batch, t: int) -> None:
    policy.core.enter(batch.features[t, batch.actions[t]][None], batch.rewards[t, :1])


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.policy)
@pytest.mark.parametrize(
    "mode",
    [replayed_policy.REJECTION, replayed_policy.IMPORTANCE, replayed_policy.FULL],
    ids=["rejection", "importance", "full"],
)
def test_the_compiled_replay_does_what_the_policy_object_does(spec: Spec, mode: int) -> None:
    truth = linear_log(600, seed=3, full=mode == replayed_policy.FULL, noise=0.05)
    batch, problem = truth.log.batch, problem_of(truth.declared, truth.log)
    player = ReplayedPolicy(spec, problem, mode=mode)
    usable = np.ones(len(batch), dtype=np.bool_)
    # In two parts: what a policy knows must pass from one batch to the next.
    halves = [player.play(batch.part(a, b), batch.rewards[a:b], usable[a:b]) for a, b in ((0, 250), (250, 600))]
    fates = np.concatenate([half.fates for half in halves])
    expected = by_objects(spec, mode, batch, truth.declared, problem)
    np.testing.assert_array_equal(fates, expected)
    assert (fates == replayed_policy.LEARNER).sum() > 20
    assert spec.alpha is None or (fates == replayed_policy.BASELINE).sum() >= 1


def test_rows_of_a_block_are_the_feature_maps_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-0.5, 0.5, size=(40, 3))
    for phi in (
        Disjoint(actions=3, context_dim=3, context_bound=1.0),
        Disjoint(actions=2, context_dim=3, context_bound=1.5, intercept=False),
    ):
        maker = RowMaker(phi, 3)
        assert maker.is_affine
        np.testing.assert_array_equal(maker(contexts), np.stack([phi(x) for x in contexts]))


def peer_choices(contexts: Any, actions: Any, rewards: Any, *, arms: int, alpha: float, ridge: float) -> list[int]:
    """MABWiser's LinUCB, which learns every logged row and is asked before each but the first of every arm."""
    mabwiser = pytest.importorskip("mabwiser.mab", reason="needs the package mabwiser")
    policy = mabwiser.LearningPolicy.LinUCB(alpha=alpha, l2_lambda=ridge)
    peer = mabwiser.MAB(list(range(arms)), policy)
    peer.fit(actions[:arms], rewards[:arms], contexts[:arms])
    chosen = []
    for t in range(arms, len(actions)):
        chosen.append(int(peer.predict(contexts[t : t + 1])))
        peer.partial_fit(actions[t : t + 1], rewards[t : t + 1], contexts[t : t + 1])
    return chosen


@pytest.mark.parametrize(("ridge", "theta_bound"), [(1.0, 0.7), (2.5, 0.3)])
def test_lucb_chooses_as_the_linucb_of_mabwiser(ridge: float, theta_bound: float) -> None:
    # beta = noise sqrt(d ln ...) + sqrt(ridge) B: with next to no noise it is a constant, which MABWiser calls alpha.
    rng = np.random.default_rng(1)
    rounds, arms = 500, 4
    contexts = rng.uniform(0, 0.5, size=(rounds, 3))
    # Every arm is played once first: before that MABWiser takes ridge I where the inverse I / ridge is meant.
    actions = np.concatenate([np.arange(arms), rng.integers(0, arms, size=rounds - arms)])
    rewards = (contexts * rng.random((arms, 3))[actions]).sum(axis=1) + 0.3 * rng.normal(size=rounds)
    phi = Disjoint(actions=arms, context_dim=3, context_bound=1.0, intercept=False)
    log = ContextLog(contexts=contexts, phi=phi, rewards=rewards, actions=actions, baselines=0)
    batch = next(log.batches())
    declared = Declared(noise=1e-13, theta_bound=theta_bound, baseline_reward=0.1)
    player = ReplayedPolicy(Spec("LUCB", ridge=ridge), problem_of(declared, log), mode=replayed_policy.IMPORTANCE)
    ours = player.play(batch, batch.rewards, np.ones(rounds, dtype=np.bool_)).chosen
    # The same by its name, whatever noise and theta_bound are declared.
    constant = Spec("LUCB", ridge=ridge, exploration=ridge**0.5 * theta_bound)
    louder = problem_of(Declared(noise=7.0, theta_bound=9.0, baseline_reward=0.1), log)
    named = ReplayedPolicy(constant, louder, mode=replayed_policy.IMPORTANCE)
    np.testing.assert_array_equal(named.play(batch, batch.rewards, np.ones(rounds, dtype=np.bool_)).chosen, ours)
    theirs = peer_choices(contexts, actions, rewards, arms=arms, alpha=ridge**0.5 * theta_bound, ridge=ridge)
    assert ours[arms:].tolist() == theirs
    assert len(set(theirs)) > 1


def test_unequal_chances_are_drawn_as_they_are_logged() -> None:
    """A check of the tests' own logs, on which the others rest."""
    truth = linear_log(40_000, seed=5, chances=sharp)
    batch = truth.log.batch
    weight = (batch.actions == 2) / batch.propensities
    assert abs(weight.mean() - 1) < 4 * weight.std() / np.sqrt(weight.size)
