"""Gates against the paper's formulas in numpy, and where rounding decides, against fifty-digit arithmetic."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from surefoot.arrays import Matrix, Vector
from surefoot.linear.ellipsoid import snapshot
from surefoot.linear.ridge import Ridge, sized
from surefoot.safety.check import check
from surefoot.safety.gates import known_proof, question_of, unknown_proof
from surefoot.safety.ledger import Ledger
from tests.linear.scoring import settings_with

DIGITS = 50


@dataclass
class Scene:
    """A state, a ledger and a proposal, beside the raw numbers they were made of."""

    settings: Any
    state: Ridge
    seen: Matrix  # rows of the confidence set
    rewards: Vector
    ledger: Ledger
    played: list[Vector]  # learner rounds: phi_a, phi_b, r_b
    displaced: list[Vector]
    displaced_rewards: list[float]
    conserved: list[Vector]  # baseline rounds: phi_b, r_b
    conserved_rewards: list[float]
    proposal: Vector
    baseline: Vector
    record: Any = None  # what the gate saw and said

    def conserve(self, features: Vector, reward: float) -> None:
        self.ledger.core.book_baseline(features, reward)
        self.conserved.append(features)
        self.conserved_rewards.append(reward)

    def ask_known(self, baseline_reward: float) -> bool:
        return self.ask("CLUCB", baseline_reward)

    def ask_unknown(self) -> bool:
        return self.ask("CLUCB2", 0.0)

    def policy(self, rule: str) -> Any:
        core = sized(rule, self.proposal.size)(self.proposal.size, self.settings)
        core.assign_ridge(self.state.core)
        core.ledger.assign(self.ledger.core)
        return core

    def ask(self, rule: str, baseline_reward: float) -> bool:
        self.record = self.policy(rule).judge(np.vstack([self.proposal, self.baseline]), 0, 1, baseline_reward)
        return bool(self.record.is_learner)


def rows_of(kind: str, count: int, dim: int, rng: np.random.Generator) -> Matrix:
    rows = rng.normal(size=(count, dim))
    if kind == "scaled":
        rows *= 10.0 ** np.linspace(-6, 6, dim)
    if kind == "collinear":
        rows = rng.normal(size=dim) + 1e-5 * rows
    return rows


def scene(kind: str, dim: int, rng: np.random.Generator) -> Scene:
    ridge = 1e-3 if kind == "collinear" else 0.3
    count = {"ball": 0, "informed": 30}.get(kind, int(rng.integers(1, 15)))
    rows = rows_of(kind, 3 * count + 30, dim, rng)
    longest = float(np.linalg.norm(rows, axis=1).max())
    theta = rng.normal(size=dim) / longest
    if kind == "informed":  # enough data, and every row worth something, so that lower bounds are above 0
        rows[rows @ theta < 0] *= -1.0
    noise = 10.0 ** rng.uniform(-2, 0)
    if kind == "informed":
        noise = 1e-3
    settings = settings_with(
        noise=noise, ridge=ridge, delta=0.01, theta_bound=1.1 * float(np.linalg.norm(theta)), feature_bound=longest,
        alpha=float(rng.choice([0.01, 0.05, 0.3])),
    )  # fmt: skip
    state = Ridge(dim=dim, ridge=ridge)
    seen, rewards = rows[:count], rows[:count] @ theta + noise * rng.normal(size=count)
    for row, reward in zip(seen, rewards, strict=True):
        state.observe(row, reward)
    made = Scene(settings, state, seen, rewards, Ledger(dim=dim), [], [], [], [], [], rows[-1], rows[-2])
    for _ in range(int(rng.integers(0, 6))):
        played, displaced, reward = (
            rows[int(rng.integers(len(rows)))],
            rows[int(rng.integers(len(rows)))],
            rng.uniform(),
        )
        made.ledger.core.book_learner(played, displaced, reward)
        made.played.append(played)
        made.displaced.append(displaced)
        made.displaced_rewards.append(reward)
    for _ in range(int(rng.integers(1, 6))):
        made.conserve(rows[int(rng.integers(len(rows)))], rng.uniform())
    return made


def numbers_of(settings: Any) -> tuple[float, float, float, float, float]:
    return settings.noise, settings.delta, settings.ridge, settings.theta_bound, settings.feature_bound


class Exact:
    """The sets and sums of a scene, in fifty digits from its raw numbers."""

    def __init__(self, made: Scene) -> None:
        self.dim = made.proposal.size
        noise, delta, ridge, self.theta_bound, feature_bound = map(mpmath.mpf, numbers_of(made.settings))
        self.count = len(made.seen)
        if self.count:
            columns = [[mpmath.mpf(entry) for entry in column] for column in made.seen.T.tolist()]
            gram = mpmath.matrix(self.dim)
            for i in range(self.dim):
                for j in range(i + 1):
                    gram[i, j] = gram[j, i] = mpmath.fdot(columns[i], columns[j])
                gram[i, i] += ridge
            self.inverse: Any = mpmath.inverse(gram)
            ys = [mpmath.mpf(y) for y in made.rewards.tolist()]
            self.center: Any = self.inverse * mpmath.matrix([mpmath.fdot(column, ys) for column in columns])
            log_ratio = mpmath.log((1 + (self.count + 1) * feature_bound**2 / ridge) / delta)
            self.radius: Any = noise * mpmath.sqrt(self.dim * log_ratio) + mpmath.sqrt(ridge) * self.theta_bound
        self.z = self.sum([*made.played, made.proposal])
        self.v = self.sum([*made.displaced, made.baseline])
        self.w = self.sum(made.conserved)
        self.kept = mpmath.fsum(mpmath.mpf(r) for r in made.conserved_rewards)
        self.owed = mpmath.fsum(mpmath.mpf(r) for r in made.displaced_rewards)

    def sum(self, rows: list[Vector]) -> Any:
        return mpmath.matrix([mpmath.fsum(mpmath.mpf(float(row[i])) for row in rows) for i in range(self.dim)])

    def interval(self, q: Any) -> tuple[Any, Any]:
        if not self.count:
            spread = self.theta_bound * mpmath.sqrt((q.T * q)[0])
            return -spread, spread
        mean, spread = (self.center.T * q)[0], self.radius * mpmath.sqrt((q.T * self.inverse * q)[0])
        return mean - spread, mean + spread


KINDS = ["plain", "ball", "scaled", "collinear", "informed"]
NUDGES = [
    0,
    1,
    -1,
    2,
    -2,
    5,
    -5,
    30,
    -30,
    1000,
    -1000,
    10**5,
    -(10**5),
]  # in units in the last place of the largest term


def scenes(kind: str, count: int) -> Iterator[Scene]:
    rng = np.random.default_rng(KINDS.index(kind))
    for number in range(count):
        yield scene(kind, (1, 2, 5)[number % 3], rng)


# ---------------------------------------------------------------------------------- the known baseline


def on_the_edge(made: Scene) -> tuple[Exact, Any]:
    """Give the baseline so much that its reward decides, and find the reward at which the exact margin is 0."""
    with mpmath.workdps(DIGITS):
        exact, alpha = Exact(made), mpmath.mpf(made.settings.alpha)
        lower = exact.interval(exact.z)[0]
        short = (1 - alpha) * (exact.owed + 0.5) - alpha * exact.kept - lower
        if short > 0:
            made.conserve(made.baseline, float(short / alpha))
            exact.kept += mpmath.mpf(made.conserved_rewards[-1])
        return exact, (lower + exact.kept) / (1 - alpha) - exact.kept - exact.owed


@pytest.mark.parametrize("kind", KINDS)
def test_the_gate_of_a_known_baseline_never_passes_on_rounding_error(kind: str) -> None:
    passed, refused_on_the_edge = 0, 0
    for made in scenes(kind, 300):
        with mpmath.workdps(DIGITS):
            exact, root = on_the_edge(made)
            alpha, (lower, upper) = mpmath.mpf(made.settings.alpha), exact.interval(exact.z)
            size = float(max(abs(lower), abs(upper), exact.kept + exact.owed))
            for nudge in NUDGES:
                reward = float(root) + nudge * math.ulp(size)
                if reward < 0:
                    continue
                margin = lower + exact.kept - (1 - alpha) * (exact.kept + exact.owed + mpmath.mpf(reward))
                is_safe = made.ask_known(reward)
                assert margin >= 0 or not is_safe
                passed += is_safe
                refused_on_the_edge += not is_safe
    assert passed > 0  # the edge was seen from both sides
    assert refused_on_the_edge > 0


VISIBLE = [("plain", 1e-6), ("ball", 1e-6), ("scaled", 1e-4)]  # relative; a first huge row blurs more than others


@pytest.mark.parametrize(("kind", "visible"), VISIBLE)
def test_the_gate_of_a_known_baseline_passes_where_the_margin_is_visible(kind: str, visible: float) -> None:
    for made in scenes(kind, 200):
        with mpmath.workdps(DIGITS):
            exact, root = on_the_edge(made)
            lower, upper = exact.interval(exact.z)
            reward = float(root - 2 * visible * max(abs(lower), abs(upper), exact.kept + exact.owed))
        if reward >= 0:
            assert made.ask_known(reward)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_record_of_a_known_baseline_holds_both_sides_of_algorithm_1(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for kind in ("plain", "ball") * 20:
        made = scene(kind, dim, rng)
        reward = float(rng.uniform())
        is_safe = made.ask_known(reward)
        lower = fresh_interval(made, np.sum([*made.played, made.proposal], axis=0))[0]
        guaranteed = lower + sum(made.conserved_rewards)
        required = (1 - made.settings.alpha) * (sum(made.conserved_rewards) + sum(made.displaced_rewards) + reward)
        assert made.record.guaranteed == pytest.approx(guaranteed, rel=1e-7, abs=1e-7)
        assert made.record.required == pytest.approx(required, rel=1e-12)
        assert is_safe == (made.record.guaranteed >= made.record.required)
        assert is_safe == (guaranteed >= required)


# ---------------------------------------------------------------------------------- the unknown baseline


def unknown_margin(made: Scene, exact: Exact) -> Any:
    """LCB(z + phi_a) + alpha max{LCB(w), n r_l} - (1 - alpha) UCB(v + phi_b)."""
    alpha = mpmath.mpf(made.settings.alpha)
    floor = len(made.conserved) * mpmath.mpf(made.settings.reward_floor)
    lower, kept, owed = exact.interval(exact.z)[0], exact.interval(exact.w)[0], exact.interval(exact.v)[1]
    return lower + alpha * max(kept, floor) - (1 - alpha) * owed


def unknown_size(exact: Exact) -> float:
    return float(max(abs(end) for q in (exact.z, exact.v, exact.w) for end in exact.interval(q)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_gate_of_an_unknown_baseline_never_passes_on_rounding_error_of_the_floor(kind: str) -> None:
    seen = set()
    for made in scenes(kind, 200):
        with mpmath.workdps(DIGITS):
            exact = Exact(made)
            short = -unknown_margin(made, exact)
            alpha, kept = mpmath.mpf(made.settings.alpha), exact.interval(exact.w)[0]
            root = (short / alpha + max(kept, 0)) / len(made.conserved)  # the floor at which the exact margin is 0
            if root <= 0:
                continue
            for nudge in NUDGES:
                made.settings.reward_floor = max(0.0, float(root) + nudge * math.ulp(float(root)))
                is_safe = made.ask_unknown()
                assert unknown_margin(made, exact) >= 0 or not is_safe
                seen.add(is_safe)
    assert seen == {True, False}


def test_the_gate_of_an_unknown_baseline_never_passes_on_rounding_error_without_a_floor() -> None:
    seen = set()
    for made in scenes("informed", 200):
        with mpmath.workdps(DIGITS):
            exact = Exact(made)
            lower, owed = exact.interval(exact.z)[0], exact.interval(exact.v)[1]
            kept = max(exact.interval(exact.w)[0], 0)
            root = (owed - lower) / (owed + kept) if owed + kept > 0 else mpmath.mpf(0)  # alpha with a margin of 0
            if not 0 < root < 1:
                continue
            for nudge in NUDGES:
                made.settings.alpha = float(root) + nudge * 2.0**-53
                is_safe = made.ask_unknown()
                assert unknown_margin(made, exact) >= 0 or not is_safe
                seen.add(is_safe)
    assert seen == {True, False}


@pytest.mark.parametrize(("kind", "visible"), VISIBLE)
def test_the_gate_of_an_unknown_baseline_passes_where_the_margin_is_visible(kind: str, visible: float) -> None:
    for made in scenes(kind, 150):
        with mpmath.workdps(DIGITS):
            exact = Exact(made)
            alpha, size = mpmath.mpf(made.settings.alpha), unknown_size(exact)
            short = max(0, -unknown_margin(made, exact)) + 2 * visible * size
            root = (short / alpha + max(exact.interval(exact.w)[0], 0)) / len(made.conserved)
            made.settings.reward_floor = float(root)
            assert unknown_margin(made, exact) > visible * size
        assert made.ask_unknown()


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_the_record_of_an_unknown_baseline_holds_both_sides_of_algorithm_2(dim: int, floor: float) -> None:
    rng = np.random.default_rng(10 + dim)
    for kind in ("plain", "ball") * 20:
        made = scene(kind, dim, rng)
        made.settings.reward_floor = floor
        is_safe = made.ask_unknown()
        alpha, n = made.settings.alpha, len(made.conserved)
        lower = fresh_interval(made, np.sum([*made.played, made.proposal], axis=0))[0]
        kept = fresh_interval(made, np.sum(made.conserved, axis=0))[0]
        owed = fresh_interval(made, np.sum([*made.displaced, made.baseline], axis=0))[1]
        assert made.record.guaranteed == pytest.approx(lower + alpha * max(kept, n * floor), rel=1e-7, abs=1e-7)
        assert made.record.required == pytest.approx((1 - alpha) * owed, rel=1e-7, abs=1e-7)
        assert is_safe == (made.record.guaranteed >= made.record.required)


def fresh_interval(made: Scene, q: Vector) -> tuple[float, float]:
    """LCB and UCB by a numpy solve from the raw rows, before any of them the ball."""
    noise, delta, ridge, theta_bound, feature_bound = numbers_of(made.settings)
    count, dim = made.seen.shape
    if count == 0:
        return -theta_bound * float(np.linalg.norm(q)), theta_bound * float(np.linalg.norm(q))
    gram = ridge * np.eye(dim) + made.seen.T @ made.seen
    mean = float(q @ np.linalg.solve(gram, made.seen.T @ made.rewards))
    beta = noise * math.sqrt(dim * math.log((1 + (count + 1) * feature_bound**2 / ridge) / delta))
    spread = float(beta + math.sqrt(ridge) * theta_bound) * math.sqrt(q @ np.linalg.solve(gram, q))
    return mean - spread, mean + spread


# ---------------------------------------------------------------------------------- what a gate leaves behind


@pytest.mark.parametrize("rule", ["CLUCB", "CLUCB2", "SafeLUCB"])
def test_a_gate_does_not_touch_ledger_state_or_settings(rule: str) -> None:
    for made in scenes("plain", 6):
        core = made.policy(rule)
        core.judge(np.vstack([made.proposal, made.baseline]), 0, 1, 0.5)
        assert core.ledger.save().tobytes() == made.ledger.core.save().tobytes()
        assert core.ridge.save().tobytes() == made.state.core.save().tobytes()
        assert (*numbers_of(core.settings), core.settings.alpha) == (*numbers_of(made.settings), made.settings.alpha)


def test_the_question_is_what_the_learner_earns_above_the_share_of_the_baseline() -> None:
    for made in scenes("plain", 20):
        made.ask_unknown()
        alpha, dim = made.settings.alpha, made.proposal.size
        z = sum([*made.played, made.proposal], np.zeros(dim))
        v = sum([*made.displaced, made.baseline], np.zeros(dim))
        w = sum(made.conserved, np.zeros(dim))
        found = [made.record.played, made.record.conserved, made.record.displaced]
        np.testing.assert_allclose(found, [z, w, v], rtol=1e-14, atol=1e-14)
        expected = z + alpha * w - (1 - alpha) * v
        np.testing.assert_allclose(question_of(made.settings, made.record), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", ["plain", "ball"])
def test_the_proof_behind_a_gate_holds_and_proves_its_margin(kind: str) -> None:
    for number, made in enumerate(scenes(kind, 60)):
        known = snapshot(made.settings, made.state.core)
        made.settings.reward_floor = (0.0, 0.3)[number % 2]
        made.ask_known(0.4)
        proof = known_proof(made.settings, made.record, known)
        check(proof)
        assert proof.value == pytest.approx(made.record.guaranteed - made.record.required, rel=1e-9, abs=1e-9)
        made.ask_unknown()
        proof = unknown_proof(made.settings, made.record, known)
        check(proof)
        assert proof.value == pytest.approx(made.record.guaranteed - made.record.required, rel=1e-9, abs=1e-9)
        np.testing.assert_array_equal(proof.question, question_of(made.settings, made.record))
