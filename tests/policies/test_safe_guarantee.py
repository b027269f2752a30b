"""SafeLUCB's promise, measured where it hurts: every radius, gate, fact and constraint against the truth.

A run fails where a certified bound lies above the truth, or where the constraint is broken by the true means. Over
seeded runs neither may happen more often than delta allows.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import surefoot
from surefoot.simulation.engine import simulate
from surefoot.simulation.environments import ArmsWorld, Baseline, ContextualWorld
from surefoot.simulation.rewards import Bernoulli, Gaussian
from surefoot.simulation.specs import Spec
from tests.worlds import Array

FALSE_ALARM = 1e-6  # chance that a test fails although the guarantee holds exactly at delta
DELTA = 0.1
RADII = ("paper", "logdet", "amm", "dual", "residual")
GATES = ("facts", "joint", "ledger")
FACTS = ("none", "range", "known", "interval", "floor", "all")
CONSTRAINTS: dict[str, Any] = {
    "cumulative": "cumulative",
    "checkpoints": {"name": "checkpoints", "every": 7},
    "stagewise": "stagewise",
    "reserve": {"name": "reserve", "granted": 0.8},
    "realised_path": {"name": "realised_path", "lowest_reward": 0.0},
}


@dataclass
class Place:
    """A world that looks at the policy before it shows its rows; mean rewards in [0, 1]."""

    rng: np.random.Generator
    dim: int = 3
    actions: int = 5
    noise: float = 0.1
    kind: str = "plain"
    misfit: float = 0.0
    scale: float = 1.0  # the best mean reward
    rows: Array = field(init=False)

    def __post_init__(self) -> None:
        theta = np.abs(self.rng.normal(size=self.dim)) + 0.05
        self.theta = self.scale * theta / np.linalg.norm(theta)
        if self.kind == "arms":
            self.actions, self.theta = self.dim, self.scale * self.rng.uniform(0.1, 1.0, size=self.dim)
        self.theta_bound = 1.05 * float(np.linalg.norm(self.theta))
        self.rows = np.eye(self.dim) if self.kind == "arms" else self._draw(self.actions)

    def _draw(self, count: int) -> Array:
        rows = np.abs(self.rng.normal(size=(count, self.dim)))
        lengths = self.rng.uniform(0.2, 1.0, size=(count, 1))
        drawn: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths
        return drawn

    def show(self, policy: Any) -> tuple[Array, int, Array]:
        """Features, the baseline's row, and the true means."""
        rows = self.rows
        if self.kind in ("changing", "moving"):
            rows = self._draw(self.actions)
        elif self.kind == "adversarial":  # the rows of which the policy thinks too well, beside a good baseline
            pool = self._draw(40)
            order = np.argsort(-(pool @ (policy.ridge.theta - self.theta)))
            rows = np.vstack([pool[order[: self.actions - 1]], pool[np.argmax(pool @ self.theta)]])
        means = rows @ self.theta
        if self.misfit:
            means = np.clip(means + self.misfit * np.sign(np.sin(1e4 * rows[:, 0])), 0.0, self.scale)
        rank = int(self.rng.integers(self.actions)) if self.kind == "moving" else min(1, self.actions - 1)
        order = np.argsort(-means)
        baseline = int(order[rank])
        return rows, baseline if means[baseline] >= self.floor else int(order[0]), means

    @property
    def floor(self) -> float:
        """What the baseline never falls below: the best row of many, drawn or fixed, pays as much."""
        return 0.5 * float((self.rows @ self.theta).max()) if self.kind in ("plain", "arms") else 0.0

    def reward(self, mean: float, *, bounded: bool) -> float:
        """One reward: a coin, or one around its mean; `bounded` ones are never negative."""
        if self.kind == "clicks":
            return float(self.rng.random() < mean)
        if bounded:
            return float(mean + min(self.noise, mean) * self.rng.uniform(-1, 1))
        return float(mean + self.noise * self.rng.normal())


@dataclass
class Ledger:
    """An account of its own, in true means: what the questions are, and whether the constraint holds."""

    alpha: float
    constraint: str
    theta: Array
    learner: Array = field(init=False)
    displaced: Array = field(init=False)
    conserved: Array = field(init=False)
    earned: float = 0.0  # true means, baseline rounds included
    received: float = 0.0  # realised rewards of the learner, baseline rounds by their means
    owed: float = 0.0
    rounds: int = 0

    def __post_init__(self) -> None:
        self.learner, self.displaced, self.conserved = np.zeros((3, self.theta.size))

    def truth(self, proposal: Array, baseline: Array) -> float:
        """<theta, q> for the question that the proposal raises."""
        if self.constraint == "stagewise":
            return float(self.theta @ (proposal - (1 - self.alpha) * baseline))
        kept = self.alpha * self.conserved - (1 - self.alpha) * (self.displaced + baseline)
        played = 0.0 if self.constraint == "realised_path" else self.learner + proposal
        return float(self.theta @ (kept + played))

    def book(self, row: Array, baseline: Array, mean: float, owed: float, reward: float, is_learner: bool) -> bool:
        """Count the round, and say whether it breaks the constraint."""
        self.rounds += 1
        self.owed += owed
        self.earned += mean
        self.received += reward if is_learner else owed
        if is_learner:
            self.learner, self.displaced = self.learner + row, self.displaced + baseline
        else:
            self.conserved = self.conserved + baseline
        required = (1 - self.alpha) * self.owed - 1e-9
        if self.constraint == "stagewise":
            return mean < (1 - self.alpha) * owed - 1e-9
        if self.constraint == "checkpoints":
            return self.rounds % 7 == 0 and self.earned < required
        if self.constraint == "reserve":
            return self.earned < required - 0.8
        return (self.received if self.constraint == "realised_path" else self.earned) < required


@dataclass
class Outcome:
    """What happened over one run, against the truth."""

    overclaimed: bool = False
    violated: bool = False
    refuted: bool = False
    learner_rounds: int = 0


def told(facts: str, mean: float, rng: np.random.Generator) -> Any:
    if facts in ("known", "all"):
        return mean
    low, high = rng.uniform(0.5, 1.0), rng.uniform(1.0, 1.5)
    return (low * mean, high * mean) if facts == "interval" else None


def new_policy(place: Place, *, radius: str, gate: str, facts: str, constraint: str, **extra: Any) -> Any:
    settings: dict[str, Any] = {
        "dim": place.dim, "alpha": 0.1, "delta": DELTA, "noise": 0.5 if place.kind == "clicks" else place.noise,
        "theta_bound": place.theta_bound, "feature_bound": 1.0, "ridge": 0.5, "radius": radius, "gate": gate,
        "constraint": CONSTRAINTS[constraint], "misspecification": place.misfit,
    }  # fmt: skip
    if facts in ("range", "all"):
        settings["reward_range"] = (0.0, place.scale)
    if facts in ("floor", "all"):
        settings["reward_floor"] = place.floor
    return surefoot.SafeLUCB(**{**settings, **extra})


def play(
    policy: Any,
    place: Place,
    *,
    facts: str = "none",
    rounds: int = 40,
    order: Callable[[list[Any]], int] | None = None,
) -> Outcome:
    """One run; with `order`, rewards come late, and it says which of those waiting is learned next."""
    constraint = policy.settings["constraint"]["name"]
    account, outcome = Ledger(policy.settings["alpha"], constraint, place.theta), Outcome()
    waiting: list[Any] = []
    for _ in range(rounds):
        rows, baseline, means = place.show(policy)
        decision = policy.decide(
            rows, baseline=baseline, baseline_reward=told(facts, float(means[baseline]), place.rng)
        )
        certificate, is_learner = decision.certificate, decision.source == "learner"
        truth = account.truth(rows[certificate.proposal], rows[baseline])
        outcome.overclaimed |= certificate.guaranteed > truth + 1e-9
        mean = float(means[decision.action])
        reward = place.reward(mean, bounded=constraint == "realised_path")
        outcome.violated |= account.book(
            rows[decision.action], rows[baseline], mean, float(means[baseline]), reward, is_learner
        )
        outcome.learner_rounds += is_learner
        waiting.append((decision, reward))
        if order is None:
            policy.observe(*waiting.pop())
        elif len(waiting) > 6:
            policy.observe(*waiting.pop(order(waiting)))
    outcome.refuted = policy.is_refuted
    return outcome


def most_allowed(runs: int, delta: float = DELTA) -> int:
    """The number of failures that chance alone exceeds with probability FALSE_ALARM at most."""
    return int(binom.isf(FALSE_ALARM, runs, delta))


def assert_within_delta(groups: dict[str, list[Outcome]]) -> None:
    for name, found in groups.items():
        limit = most_allowed(len(found))
        assert sum(o.overclaimed for o in found) <= limit, name
        assert sum(o.violated for o in found) <= limit, name
        assert sum(o.refuted for o in found) <= limit, name


@pytest.mark.parametrize("radius", RADII)
def test_every_gate_fact_and_constraint_stays_within_delta(radius: str) -> None:
    rng = np.random.default_rng([21, RADII.index(radius)])
    groups: dict[str, list[Outcome]] = {}
    kinds = ("plain", "changing", "adversarial", "moving", "arms")
    for index in range(1080):
        chosen = {
            "gate": GATES[index % 3],
            "facts": FACTS[index // 3 % 6],
            "constraint": list(CONSTRAINTS)[index // 18 % 5],
            "world": kinds[index // 90 % 5] if index < 450 else kinds[int(rng.integers(5))],
        }
        place = Place(rng, kind=chosen["world"], dim=2 + index % 2)
        policy = new_policy(place, radius=radius, **{k: v for k, v in chosen.items() if k != "world"})
        outcome = play(policy, place, facts=chosen["facts"], rounds=30)
        for key, value in chosen.items():
            groups.setdefault(f"{key} {value}", []).append(outcome)
    assert_within_delta(groups)
    learned = Counter({name: sum(o.learner_rounds > 0 for o in found) for name, found in groups.items()})
    assert min(learned.values()) > 30, "the learner must have had its chances everywhere"


# ---------------------------------------------------------------------------------- where it hurts


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


ORDERS: dict[str, Callable[[list[Any]], int]] = {
    "newest first": lambda waiting: len(waiting) - 1,
    "oldest first": lambda waiting: 0,
    "learner's last": lambda waiting: int(np.argmin([made.source == "learner" for made, _ in waiting])),
    "most surprising row first": lambda waiting: int(np.argmax([made.features[0] for made, _ in waiting])),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_guarantee_holds_whatever_the_order_of_late_rewards(order: str) -> None:
    """Any order that does not look at the rewards themselves."""
    found = outcomes(seed=23, runs=96, rounds=50, kind="changing", order=ORDERS[order])
    assert_within_delta({order: found})
    assert sum(o.learner_rounds > 0 for o in found) > 48


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("radius", ["paper", "amm"])
def test_the_guarantee_holds_in_a_misspecified_world_once_that_is_declared(radius: str, constraint: str) -> None:
    found = outcomes(seed=24, runs=72, rounds=40, kind="changing", misfit=0.03, radius=radius, constraint=constraint)
    assert_within_delta({constraint: found})


# ---------------------------------------------------------------------------------- longer runs, compiled


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


# ---------------------------------------------------------------------------------- that these tests can fail


def failures(runs: int, *, radius: str, shrunk: float) -> int:
    """Runs in which a bound exceeds the truth or the alarm rings, if the noise is told `shrunk` times what it is."""
    rng = np.random.default_rng([25, RADII.index(radius)])
    rows, truth, failed = np.array([[1.0], [0.5]]), 0.02, 0
    for _ in range(runs):
        policy = surefoot.SafeLUCB(
            dim=1, alpha=0.5, delta=DELTA, noise=shrunk, theta_bound=0.03, feature_bound=1.0, radius=radius,
            ridge=1.0, gate="joint", realised_share=0.0,
        )  # fmt: skip
        wrong = False
        for _ in range(40):
            decision = policy.decide(rows, baseline=0, hold=True)
            certificate = decision.certificate
            question = rows[certificate.proposal, 0] + 0.5 * (decision.round - 1) - 0.5
            wrong |= certificate.guaranteed > truth * question + 1e-9
            policy.observe(decision, truth + rng.normal())
        failed += wrong or policy.is_refuted
    return failed


@pytest.mark.parametrize("radius", ["logdet", "amm", "dual"])
def test_a_radius_a_third_too_small_is_seen(radius: str) -> None:
    assert failures(400, radius=radius, shrunk=1.0) <= most_allowed(400)
    assert failures(400, radius=radius, shrunk=0.7) > most_allowed(400)


def test_a_range_declared_too_narrow_rings_the_alarm_or_breaks_the_promise() -> None:
    rng = np.random.default_rng(26)
    seen = {"refuted": 0, "overclaimed": 0, "violated": 0}
    for index in range(60):
        place = Place(rng, kind=("plain", "arms")[index % 2], noise=0.05)
        means = np.sort(place.rows @ place.theta)
        narrow = (float(means[-2]) * 0.98, float(means[-2]) * 1.02)  # every arm is said to pay what the baseline pays
        policy = new_policy(
            place, radius="amm", gate="facts", facts="none", constraint="cumulative", reward_range=narrow
        )
        outcome = play(policy, place, rounds=150)
        for key in seen:
            seen[key] += getattr(outcome, key)
        if outcome.refuted:
            decision = policy.decide(place.rows, baseline=0)
            assert decision.source == "baseline"
            assert decision.certificate.guaranteed == -np.inf
            assert "no theta satisfies all assumptions" in decision.certificate.explain()
            surefoot.check(decision.certificate.proof)
            assert surefoot.SafeLUCB.from_state(policy.state()).is_refuted
    assert seen["refuted"] > most_allowed(60)
    assert seen["violated"] + seen["overclaimed"] > 0


def test_a_misspecification_that_is_not_declared_is_seen() -> None:
    rng = np.random.default_rng(27)
    failed = 0
    for _ in range(60):
        place = Place(rng, actions=8, noise=0.01, misfit=0.3)
        policy = new_policy(
            place, radius="amm", gate="facts", facts="range", constraint="cumulative", misspecification=0.0
        )
        outcome = play(policy, place, rounds=80)
        failed += outcome.overclaimed or outcome.refuted or outcome.violated
    assert failed > most_allowed(60)


# ---------------------------------------------------------------------------------- warm start


def history(place: Place, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    rows = np.abs(rng.normal(size=(count, place.dim)))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return rows, rows @ place.theta + place.noise * rng.normal(size=count)


def test_a_warm_start_enters_the_set_and_not_the_ledger() -> None:
    rng = np.random.default_rng(28)
    place = Place(rng)
    policy = new_policy(place, radius="residual", gate="facts", facts="none", constraint="cumulative")
    rows, rewards = history(place, rng, 30)
    policy.warm_start(rows, rewards)
    gram = 0.5 * np.eye(3) + rows.T @ rows
    assert policy.ridge.count == 30
    assert policy.ridge.gram == pytest.approx(gram)
    assert policy.ridge.theta == pytest.approx(np.linalg.solve(gram, rows.T @ rewards))
    assert (policy.rounds, policy.pending) == (0, ())
    assert not policy.ledger.buffer.any()
    again = surefoot.SafeLUCB.from_state(policy.state())
    assert again.decide(place.rows, baseline=0).action == policy.decide(place.rows, baseline=0).action


def test_the_guarantee_holds_after_a_warm_start_and_the_learner_comes_in_earlier() -> None:
    rng = np.random.default_rng(29)
    cold, warm = [], []
    for index in range(300):
        place = Place(rng, kind=("plain", "changing", "adversarial")[index % 3])
        chosen = {"radius": RADII[index % 5], "gate": GATES[index // 5 % 3], "facts": "none"}
        policies = [new_policy(place, constraint="cumulative", **chosen) for _ in range(2)]
        policies[1].warm_start(*history(place, rng, 40))
        cold.append(play(policies[0], place, rounds=20))
        warm.append(play(policies[1], place, rounds=20))
    assert_within_delta({"cold": cold, "warm": warm})
    assert sum(o.learner_rounds for o in warm) > 1.5 * sum(o.learner_rounds for o in cold)


@pytest.mark.parametrize("made", ["decided", "learned"])
def test_a_warm_start_is_refused_once_there_is_anything_to_add_it_to(made: str) -> None:
    rng = np.random.default_rng(30)
    place = Place(rng)
    policy = new_policy(place, radius="amm", gate="facts", facts="none", constraint="cumulative")
    if made == "decided":
        policy.decide(place.rows, baseline=0)
    else:
        policy.warm_start(*history(place, rng, 3))
    before = policy.ridge.buffer.copy()
    with pytest.raises(surefoot.errors.InputError, match=r"`warm_start` must come before the first decision, but"):
        policy.warm_start(*history(place, rng, 3))
    assert np.array_equal(policy.ridge.buffer, before)


@pytest.mark.parametrize(
    ("rows", "rewards", "message"),
    [
        ([[0.1, 0.2, np.nan], [0.1, 0.1, 0.1]], [0.1, 0.2], r"`features` must be finite"),
        ([[0.1, 0.2, 0.3], [2.0, 0.1, 0.1]], [0.1, 0.2], r"row 1 has length 2.0"),
        ([[0.1, 0.2], [0.1, 0.1]], [0.1, 0.2], r"dim=3 columns, but got shape \(2, 2\)"),
        ([[0.1, 0.2, 0.3]], [0.1, 0.2], r"one number within .* for each of 1 rows, but got shape \(2,\)"),
        ([[0.1, 0.2, 0.3]], [np.inf], r"`rewards` must be finite"),
        ([[0.1, 0.2, 0.3]], [1e150], r"one number within"),
        (np.zeros((0, 3)), np.zeros(0), r"at least one row"),
    ],
)
def test_a_bad_history_changes_nothing(rows: Any, rewards: Any, message: str) -> None:
    place = Place(np.random.default_rng(31))
    policy = new_policy(place, radius="amm", gate="facts", facts="none", constraint="cumulative")
    before = policy.ridge.buffer.copy()
    with pytest.raises(surefoot.errors.InputError, match=message):
        policy.warm_start(rows, rewards)
    assert np.array_equal(policy.ridge.buffer, before)
    policy.warm_start([[0.1, 0.2, 0.3]], [0.1])
