"""What every policy promises (`surefoot.policies.conformance`): a new one passes by being listed in `POLICIES`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.policies import by_name
from surefoot.policies.conformance import CHECKS, Subject
from tests.own_policy import EpsilonGreedy
from tests.worlds import World

KNOWN = {
    "CLUCB",
    "CLUCB-watched",
    "SafeLUCB-known",
    "SafeLUCB-known-watched",
    "SafeLUCB-interval",
    "SafeLUCB-likelihood",
    "SafeLUCB-realised_path",
}
INTERVAL = {"SafeLUCB-interval"}
OWN_ROUNDS = {"CLUCB", "CLUCB-watched"}  # learn from the learner's rounds alone
WATCHED: dict[str, Any] = {"holdout": 0.2, "watch_share": 0.3, "seed": 3}
POLICIES: dict[str, Callable[[World], Any]] = {
    "LUCB": lambda w: surefoot.LUCB(**w.settings(ridge=0.3, delta=0.05)),
    "CLUCB": lambda w: surefoot.CLUCB(alpha=0.3, **w.settings(ridge=0.3, delta=0.05)),
    "CLUCB2-latest": lambda w: surefoot.CLUCB2(alpha=0.3, nesting="latest", **w.settings(ridge=0.3, delta=0.05)),
    "CLUCB2-exact": lambda w: surefoot.CLUCB2(alpha=0.3, **w.settings(ridge=0.3, delta=0.05)),
    "SafeLUCB": lambda w: safe(w),
    "SafeLUCB-known": lambda w: safe(w, reward_range=(0.0, 1.0)),
    "SafeLUCB-interval": lambda w: safe(w),
    "SafeLUCB-range": lambda w: safe(w, reward_range=(0.0, 1.0), optimism="facts"),
    "SafeLUCB-floor": lambda w: safe(w, reward_floor=1e-3, misspecification=1e-3),
    "SafeLUCB-joint": lambda w: safe(w, gate="joint", radius="paper"),
    "SafeLUCB-ledger": lambda w: safe(w, gate="ledger", radius="logdet"),
    "SafeLUCB-dual": lambda w: safe(w, radius="dual", reward_range=(0.0, 1.0)),
    "SafeLUCB-residual": lambda w: safe(w, radius="residual"),
    "SafeLUCB-likelihood": lambda w: safe(w, radius="likelihood", reward_bounds=(-0.2, 1.2), reward_range=(0.0, 1.0)),
    "SafeLUCB-best": lambda w: safe(w, reward_bounds=(-0.5, 1.5), reward_range=(0.0, 1.0)),
    "SafeLUCB-checkpoints": lambda w: safe(w, constraint={"name": "checkpoints", "every": 5}),
    "SafeLUCB-stagewise": lambda w: safe(w, constraint="stagewise"),
    "SafeLUCB-reserve": lambda w: safe(w, constraint={"name": "reserve", "granted": 0.2}),
    "SafeLUCB-realised_path": lambda w: safe(w, constraint={"name": "realised_path", "lowest_reward": -0.3}),
    "SafeLUCB-watched": lambda w: safe(w, **WATCHED),
    "SafeLUCB-known-watched": lambda w: safe(w, reward_range=(0.0, 1.0), **WATCHED),
    "CLUCB-watched": lambda w: surefoot.CLUCB(alpha=0.3, **w.settings(ridge=0.3, delta=0.05), **WATCHED),
    "CLUCB2-watched": lambda w: surefoot.CLUCB2(
        alpha=0.3, nesting="latest", **w.settings(ridge=0.3, delta=0.05), **WATCHED
    ),
    "UCB": lambda w: surefoot.UCB(arms=w.actions),
    "ConservativeUCB": lambda w: surefoot.ConservativeUCB(arms=w.actions, alpha=0.5, delta=0.1, noise=0.05),
    "ConservativeUCB-bounded": lambda w: surefoot.ConservativeUCB(
        arms=w.actions, alpha=0.7, delta=0.1, reward_bounds=(-0.1, 1.1)
    ),
}
ROUNDS = {"CLUCB2-exact": 12}


def safe(world: World, **extra: Any) -> surefoot.SafeLUCB:
    return surefoot.SafeLUCB(alpha=0.3, **world.settings(ridge=0.3, delta=0.05), **extra)


def new_world(seed: int, *, changing: bool = True) -> World:
    return World(np.random.default_rng(seed), 3, 5, 0.05, changing=changing, moving=False)


LINEAR = [name for name, new in POLICIES.items() if hasattr(new(new_world(0)), "ledger")]


def decide(name: str, policy: Any, world: World) -> tuple[Any, float]:
    rows, baseline, means = world.round()
    given = surefoot.Catalogue(rows) if not world.changing and world.dim == 3 else rows
    decision = policy.decide(given, baseline=baseline, baseline_reward=reward_told(name, float(means[baseline])))
    return decision, float(means[decision.action])


def reward_told(name: str, mean: float) -> Any:
    if name in INTERVAL:
        return 0.8 * mean, 1.2 * mean
    return mean if name in KNOWN else None


def subject(name: str) -> Subject:
    return Subject(
        POLICIES[name],
        declare=lambda mean: reward_told(name, mean),
        most_rounds=ROUNDS.get(name, 1_000),
        plays_rows=name in LINEAR,
        # SafeLUCB's proof bounds <theta, q>, which must reach a level; the paper's bounds the margin itself.
        proves="guaranteed" if name.startswith("SafeLUCB") else "margin",
        may_stay=name == "CLUCB2-exact",
    )


def test_every_policy_over_rows_or_arms_is_held_to_the_contract() -> None:
    assert {type(new(new_world(0))).__name__ for new in POLICIES.values()} == set(by_name.POLICIES) - {"Guard"}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_policy_keeps_its_contract(check: Callable[[Subject], None], name: str) -> None:
    check(subject(name))


class Unfaithful(EpsilonGreedy):
    """Breaks one promise."""

    how = ""

    def decide(self, features: Any, **asked: Any) -> surefoot.Decision:
        if self.how == "changes rows":
            features[:] *= 0.5
        return super().decide(features, **asked if self.how != "ignores hold" else asked | {"hold": False})

    def arrays(self) -> dict[str, Any]:
        if self.how == "shares its state":
            return {"gram": self.gram, "sums": self.sums}
        return super().arrays()

    def restore(self, arrays: Any) -> None:
        if self.how != "forgets":
            super().restore(arrays)

    def recall(self, features: Any, *, baseline: Any = None, **record: Any) -> surefoot.Decision:
        if self.how == "rewrites the past":
            return self.decide(features, baseline=baseline)
        return super().recall(features, baseline=baseline, **record)


@pytest.mark.parametrize(
    ("how", "broken"),
    [
        ("", None),
        ("changes rows", "the_callers_arrays_are_neither_kept_nor_changed"),
        ("ignores hold", "a_held_round_plays_the_baseline_and_says_what_would_have_been"),
        ("shares its state", "a_state_is_a_copy_that_later_rounds_do_not_change"),
        ("forgets", "a_restored_policy_goes_on_as_if_it_had_never_stopped"),
        ("rewrites the past", "a_recalled_round_is_booked_as_it_was_whatever_the_policy_would_do"),
    ],
)
def test_a_policy_that_breaks_a_promise_is_found_out(how: str, broken: str | None, monkeypatch: Any) -> None:
    monkeypatch.setattr(Unfaithful, "how", how)
    failed = set()
    for check in CHECKS:
        try:
            check(Subject(lambda world: Unfaithful(dim=world.dim)))
        except (AssertionError, ValueError):
            failed.add(check.__name__)
    assert failed == set() if broken is None else broken in failed


@pytest.mark.parametrize("name", LINEAR)
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
    learned = sum(decision.source == "learner" for decision, _ in made)
    # A baseline that has not moved and whose reward is known exactly teaches nothing: here in the first round alone.
    untaught = name.startswith("SafeLUCB") and name in KNOWN - INTERVAL and made[0][0].source == "baseline"
    assert policy.ridge.count == (learned if name in OWN_ROUNDS else 6 - untaught)
    assert policy.pending == ()


@pytest.mark.parametrize("name", ["LUCB", "CLUCB", "CLUCB2-latest", "SafeLUCB", "SafeLUCB-dual"])
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


@pytest.mark.parametrize("name", ["LUCB", "CLUCB", "CLUCB2-latest", "SafeLUCB"])
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
            "SafeLUCB": {"alpha": 0.3, "reward_range": (0.0, 1.0)},
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
    for name in ("LUCB", "CLUCB", "CLUCB2-latest", "SafeLUCB", "SafeLUCB-known", "SafeLUCB-dual"):
        world = new_world(12, changing=False)
        rows, baseline, means = world.round()
        plain, cached = POLICIES[name](world), POLICIES[name](world)
        known = reward_told(name, float(means[baseline]))
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


@pytest.mark.parametrize("name", ["CLUCB", "CLUCB2-latest", "SafeLUCB"])
def test_what_the_core_reads_as_it_stands_and_what_is_converted_first_decide_alike(name: str) -> None:
    world = new_world(15, changing=False)
    rows, baseline, means = world.round()
    raw = np.zeros(rows.nbytes + 1, dtype=np.uint8)
    crooked = np.ndarray(rows.shape, buffer=raw, offset=1)
    crooked[:] = rows
    assert not crooked.flags.aligned
    swapped, every_other = rows.astype(">f8"), np.repeat(rows, 2, axis=1)[:, ::2]
    policies = [POLICIES[name](world) for _ in range(6)]
    known = reward_told(name, float(means[baseline]))
    for _ in range(40):
        given = [rows, rows.tolist(), crooked, swapped, every_other, surefoot.Catalogue(rows)]
        numbers = [baseline, np.int64(baseline)] * 3
        made = [
            policy.decide(one, baseline=row, baseline_reward=known)
            for policy, one, row in zip(policies, given, numbers, strict=True)
        ]
        margins = [decision.certificate.margin for decision in made]
        assert len({(decision.action, decision.source) for decision in made}) == 1
        assert len(set(margins[:5])) == 1
        assert margins[5] == pytest.approx(margins[0])  # scores that follow are rounded otherwise
        for policy, decision in zip(policies, made, strict=True):
            policy.observe(decision, float(means[decision.action]))


def test_a_decision_shows_what_it_holds_and_hides_how() -> None:
    decision = surefoot.UCB(arms=2).decide()
    assert repr(decision) == "Decision(action=0, source='learner', round=1, probability=1)"
    with pytest.raises(ValueError, match="read-only"):
        decision.features[0] = 2.0


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
