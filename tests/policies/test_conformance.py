"""What every policy promises: a new one passes by being listed in `POLICIES`."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import surefoot
from tests.worlds import World

KNOWN = {"CLUCB"}
POLICIES: dict[str, Callable[[World], Any]] = {
    "LUCB": lambda w: surefoot.LUCB(**w.settings(ridge=0.3, delta=0.05)),
    "CLUCB": lambda w: surefoot.CLUCB(alpha=0.3, **w.settings(ridge=0.3, delta=0.05)),
    "CLUCB2-latest": lambda w: surefoot.CLUCB2(alpha=0.3, nesting="latest", **w.settings(ridge=0.3, delta=0.05)),
    "CLUCB2-exact": lambda w: surefoot.CLUCB2(alpha=0.3, **w.settings(ridge=0.3, delta=0.05)),
    "UCB": lambda w: surefoot.UCB(arms=w.actions),
    "ConservativeUCB": lambda w: surefoot.ConservativeUCB(arms=w.actions, alpha=0.5, delta=0.1, noise=0.05),
}
ROUNDS = {"CLUCB2-exact": 12}


def new_world(seed: int, *, changing: bool = True) -> World:
    return World(np.random.default_rng(seed), 3, 5, 0.05, changing=changing, moving=False)


def decide(name: str, policy: Any, world: World) -> tuple[Any, float]:
    rows, baseline, means = world.round()
    given = surefoot.Catalogue(rows) if not world.changing and world.dim == 3 else rows
    decision = policy.decide(
        given, baseline=baseline, baseline_reward=float(means[baseline]) if name in KNOWN else None
    )
    return decision, float(means[decision.action])


def trace(decision: Any) -> tuple[Any, ...]:
    c = decision.certificate
    return decision.round, decision.action, decision.source, c.guaranteed, c.required, c.proposal, c.optimism


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("changing", [True, False])
@pytest.mark.parametrize("how", ["state", "pickle", "deepcopy"])
def test_a_restored_policy_goes_on_as_if_it_had_never_stopped(name: str, changing: bool, how: str) -> None:
    """To the bit, mid-run, with decisions pending."""
    rounds = ROUNDS.get(name, 60)
    world = new_world(5, changing=changing)
    policy = POLICIES[name](world)
    waiting = []
    for index in range(rounds):
        decision, mean = decide(name, policy, world)
        waiting.append((decision, world.reward(mean)))
        if index % 3 == 2:
            policy.observe(*waiting.pop(0))
    assert policy.pending
    if how == "state":
        restored = surefoot.Policy.from_state(policy.state())
    else:
        restored = pickle.loads(pickle.dumps(policy)) if how == "pickle" else copy.deepcopy(policy)
    assert type(restored) is type(policy)
    assert same(policy.state(), restored.state())
    twin = copy.deepcopy(world)
    for _ in range(rounds):
        ours, mean = decide(name, policy, world)
        theirs, _ = decide(name, restored, twin)
        assert trace(ours) == trace(theirs)
        waiting.append((ours, world.reward(mean)))
        twin.reward(mean)
        made, reward = waiting.pop(0)
        policy.observe(made, reward)
        restored.observe(made.round, reward)
    assert same(policy.state(), restored.state())


@pytest.mark.parametrize("name", POLICIES)
def test_a_state_is_a_copy_that_later_rounds_do_not_change(name: str) -> None:
    world = new_world(6)
    policy = POLICIES[name](world)
    before = policy.state()
    kept = copy.deepcopy(before)
    for _ in range(5):
        decision, mean = decide(name, policy, world)
        policy.observe(decision, world.reward(mean))
    assert same(before, kept)
    assert all(isinstance(value, (int, str, dict, np.ndarray)) for value in before.values())


@pytest.mark.parametrize("name", POLICIES)
def test_every_certificate_carries_a_proof_that_holds(name: str) -> None:
    world = new_world(7)
    policy = POLICIES[name](world)
    learner = 0
    for _ in range(ROUNDS.get(name, 120)):
        decision, mean = decide(name, policy, world)
        certificate = decision.certificate
        assert (certificate.margin >= 0) == (decision.source == "learner") == certificate.is_safe
        proof = certificate.proof
        surefoot.check(proof)
        if np.isfinite(certificate.required) and np.isfinite(certificate.guaranteed):
            scale = 1 + abs(certificate.guaranteed) + abs(certificate.required)
            assert proof.value == pytest.approx(certificate.margin, abs=1e-6 * scale)
        assert certificate.explain().startswith(f"Played the {decision.source}")
        learner += decision.source == "learner"
        policy.observe(decision, world.reward(mean))
    assert learner > 0


@pytest.mark.parametrize("name", POLICIES)
def test_a_certificate_stays_what_it_was_while_the_policy_learns(name: str) -> None:
    world = new_world(8)
    policy = POLICIES[name](world)
    for _ in range(6):
        decision, mean = decide(name, policy, world)
        policy.observe(decision, world.reward(mean))
    decision, mean = decide(name, policy, world)
    before, value = trace(decision), decision.certificate.proof.value
    features = decision.features.copy()
    policy.observe(decision, world.reward(mean))
    for _ in range(6):
        later, mean = decide(name, policy, world)
        policy.observe(later, world.reward(mean))
    assert trace(decision) == before
    assert decision.certificate.proof.value == value
    assert np.array_equal(decision.features, features)
    assert trace(pickle.loads(pickle.dumps(decision))) == before


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("UCB", "ConservativeUCB")])
def test_pending_rounds_are_in_the_ledger_and_not_in_the_set(name: str) -> None:
    world = new_world(9)
    policy = POLICIES[name](world)
    made = [decide(name, policy, world) for _ in range(6)]
    ledger = policy.ledger
    assert ledger.learner_rounds + ledger.baseline_rounds == policy.rounds == 6
    assert policy.ridge.count == 0
    assert policy.pending == (1, 2, 3, 4, 5, 6)
    for decision, mean in reversed(made):
        policy.observe(decision, world.reward(mean))
    learned = 6 if name != "CLUCB" else sum(decision.source == "learner" for decision, _ in made)
    assert policy.ridge.count == learned
    assert policy.pending == ()


@pytest.mark.parametrize("name", ["LUCB", "CLUCB", "CLUCB2-latest"])
def test_the_order_of_late_rewards_does_not_matter_beyond_rounding(name: str) -> None:
    worlds = new_world(10), new_world(10)
    policies = POLICIES[name](worlds[0]), POLICIES[name](worlds[1])
    made = [
        [(decision, mean + 0.01) for decision, mean in (decide(name, p, w) for _ in range(20))]
        for p, w in zip(policies, worlds, strict=True)
    ]
    for decision, reward in made[0]:
        policies[0].observe(decision, reward)
    for decision, reward in reversed(made[1]):
        policies[1].observe(decision, reward)
    assert policies[0].ridge.theta == pytest.approx(policies[1].ridge.theta, abs=1e-12)


@pytest.mark.parametrize("name", ["LUCB", "CLUCB", "CLUCB2-latest"])
def test_a_policy_plays_over_a_ball_and_over_polytopes(name: str) -> None:
    rng = np.random.default_rng(11)
    theta = np.array([0.5, 0.2])
    corners = np.array([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9]])
    sets: list[Any] = [
        surefoot.EuclideanBall(center=[0.5, 0.5], radius=0.3),
        surefoot.Vertices(corners),
        surefoot.Polytope(matrix=[[-1, 0], [0, -1], [1, 1]], limits=[-0.1, -0.1, 1.0]),
    ]
    settings = {"dim": 2, "delta": 0.1, "noise": 0.01, "ridge": 0.3, "theta_bound": 0.6, "feature_bound": 1.4}
    for actions in sets:
        baseline = np.array([0.4, 0.4])
        extra: Any = {
            "LUCB": {},
            "CLUCB": {"alpha": 0.3},
            "CLUCB2-latest": {"alpha": 0.3, "nesting": "latest"},
        }[name]
        policy: Any = getattr(surefoot, name.split("-")[0])(**settings, **extra)
        sources = set()
        earned = owed = 0.0
        for _ in range(80):
            known = float(theta @ baseline) if name == "CLUCB" else None
            decision = policy.decide(actions, baseline=baseline, baseline_reward=known)
            with pytest.raises(surefoot.errors.InputError, match=r"Read `decision.features`"):
                _ = decision.action
            assert actions.contains(decision.features)
            surefoot.check(decision.certificate.proof)
            earned, owed = earned + float(theta @ decision.features), owed + float(theta @ baseline)
            assert name == "LUCB" or earned >= 0.7 * owed - 1e-9
            sources.add(decision.source)
            policy.observe(decision, float(theta @ decision.features + 0.01 * rng.normal()))
        assert "learner" in sources
        best = (
            corners
            if not isinstance(actions, surefoot.EuclideanBall)
            else np.array([0.5, 0.5]) + 0.3 * theta / np.linalg.norm(theta)
        )
        assert float(theta @ decision.features) == pytest.approx(float(np.max(best @ theta)), rel=0.1)


def test_a_catalogue_decides_as_plain_rows_do() -> None:
    for name in ("LUCB", "CLUCB", "CLUCB2-latest"):
        world = new_world(12, changing=False)
        rows, baseline, means = world.round()
        plain, cached = POLICIES[name](world), POLICIES[name](world)
        known = float(means[baseline]) if name in KNOWN else None
        for _ in range(1500):  # past a fresh factorisation
            a = plain.decide(rows, baseline=baseline, baseline_reward=known)
            b = cached.decide(surefoot.Catalogue(rows), baseline=baseline, baseline_reward=known)
            assert (a.action, a.source) == (b.action, b.source)
            reward = world.reward(means[a.action])
            plain.observe(a, reward)
            cached.observe(b, reward)


def test_features_may_be_lists_read_only_or_in_fortran_order() -> None:
    world = new_world(13, changing=False)
    rows, _, _ = world.round()
    frozen = rows.copy()
    frozen.flags.writeable = False
    expected = POLICIES["LUCB"](world).decide(rows).action
    for given in (rows.tolist(), frozen, np.asfortranarray(rows), rows.astype(np.float32).astype(object)):
        assert POLICIES["LUCB"](world).decide(given).action == expected


def test_the_callers_arrays_are_neither_kept_nor_changed() -> None:
    world = new_world(14, changing=False)
    rows, baseline, _ = world.round()
    policy = POLICIES["CLUCB2-latest"](world)
    before = rows.copy()
    decision = policy.decide(rows, baseline=baseline)
    assert np.array_equal(rows, before)
    rows[:] = 0.0
    assert np.array_equal(decision.features, before[decision.action])
    catalogue = surefoot.Catalogue(before)
    before[:] = 7.0
    assert not (catalogue.rows == 7.0).any()
