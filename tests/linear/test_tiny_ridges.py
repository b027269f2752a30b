"""Ridges that are tiny beside the features: whatever rounding does, no set is too small, and no alarm is false."""

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

import surefoot
from surefoot.arrays import Matrix, Vector
from surefoot.core import native
from surefoot.linear.ellipsoid import Ellipsoid
from surefoot.linear.radius import ELLIPSOIDS, RADII
from surefoot.linear.ridge import DRIFT_USABLE, Ridge
from surefoot.policies import linear_settings as policy_settings
from surefoot.policies.linear_settings import MOST_RESOLVED, suitable_ridge
from surefoot.safety.split_search import search
from tests.linear.scoring import settings_with

DIGITS = 60


def plain(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    return rng.normal(size=(count, dim))


def collinear(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    return np.asarray(rng.normal(size=dim) + 1e-4 * rng.normal(size=(count, dim)))


def few(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    """The same rows over and over, and directions that stay open."""
    kinds = max(1, dim // 2)
    return np.asarray(rng.normal(size=(kinds, dim))[rng.integers(kinds, size=count)])


def axes(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    return np.asarray(np.eye(dim)[rng.integers(dim, size=count)] * rng.uniform(0.1, 1.0, size=(count, 1)))


def lopsided(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    """One long row, and others that are hardly there: V keeps little but its ridge."""
    rows = 1e-9 * rng.normal(size=(count, dim))
    rows[0, 0] = 1.0
    return rows


ROWS: dict[str, Callable[[np.random.Generator, int, int], Matrix]] = {
    "plain": plain, "collinear": collinear, "few": few, "axes": axes, "lopsided": lopsided,
}  # fmt: skip


class World:
    """Rows no longer than `scale`, rewards of a true theta, and everything declared as it is."""

    def __init__(
        self, rows: str, seed: int, *, dim: int, count: int, share: float, scale: float = 1.0, noise: float = 0.01,
        delta: float = 0.1,
    ) -> None:  # fmt: skip
        rng = np.random.default_rng([seed, dim, count])
        made = ROWS[rows](rng, count, dim)
        self.rows: Matrix = made * (scale / np.linalg.norm(made, axis=1).max())
        theta = rng.normal(size=dim)
        self.theta: Vector = theta / (np.linalg.norm(theta) * scale)
        self.rewards: Vector = self.rows @ self.theta + noise * rng.normal(size=count)
        self.questions = [scale * rng.normal(size=dim), self.rows[0], self.rows.sum(axis=0), -self.rows[-1]]
        self.ridge, self.bound, self.noise, self.delta, self.dim = share * scale**2, 1.0 / scale, noise, delta, dim

    def settings(self, radius: str) -> Any:
        return settings_with(
            noise=self.noise, delta=self.delta, ridge=self.ridge, theta_bound=self.bound,
            feature_bound=1.0 / self.bound, radius=RADII[radius],
        )  # fmt: skip

    def states(self) -> Iterator[tuple[int, Ridge]]:
        """The state after every observation."""
        state = Ridge(dim=self.dim, ridge=self.ridge)
        for count, (row, reward) in enumerate(zip(self.rows, self.rewards.tolist(), strict=True), start=1):
            state.observe(row, reward)
            yield count, state

    def state(self) -> Ridge:
        return list(self.states())[-1][1]


# ---------------------------------------------------------------------------------- residual


def exact_residuals(world: World) -> list[Any]:
    """The residual radius after every observation, in sixty digits."""
    inverse, moment = mpmath.eye(world.dim) / mpmath.mpf(world.ridge), mpmath.matrix(world.dim, 1)
    known = mpmath.mpf(world.ridge) * mpmath.mpf(world.bound) ** 2
    known += 2 * mpmath.mpf(world.noise) ** 2 * mpmath.log(1 / mpmath.mpf(world.delta))
    radii = []
    for row, reward in zip(world.rows.tolist(), world.rewards.tolist(), strict=True):
        x = mpmath.matrix(row)
        step = inverse * x
        leverage, error = (x.T * step)[0], mpmath.mpf(reward) - (moment.T * step)[0]
        known += error**2 * leverage / (1 + leverage)
        radii.append(mpmath.sqrt(known))
        inverse -= step * step.T / (1 + leverage)
        moment += mpmath.mpf(reward) * x
    return radii


def residual_excess(world: World) -> tuple[float, float]:
    """By how much the radius lies above the exact one at least and at most, relative to it."""
    settings, found = world.settings("residual"), []
    with mpmath.workdps(DIGITS):
        exact = exact_residuals(world)
        for count, state in world.states():
            beta = state.core.radius(settings)
            radius = beta if state.drift > DRIFT_USABLE else state.core.guarded_radius(beta)
            found.append(float(radius / exact[count - 1] - 1))
    return min(found), max(found)


@pytest.mark.parametrize("share", [1.5e-15, 1e-12, 1e-9, 1e-6, 0.3])
@pytest.mark.parametrize("rows", ROWS)
def test_the_residual_radius_covers_what_rounding_did_to_every_prediction(rows: str, share: float) -> None:
    for seed in range(4):
        for dim, count in ((1, 8), (2, 30), (5, 20)):
            assert residual_excess(World(rows, seed, dim=dim, count=count, share=share))[0] >= 0.0


@pytest.mark.parametrize(("scale", "share"), [(1e-90, 1e-12), (1e90, 1e-12), (1e-90, 0.3)])
def test_the_residual_radius_covers_at_any_scale_of_the_features(scale: float, share: float) -> None:
    for rows in ROWS:
        assert residual_excess(World(rows, 1, dim=3, count=20, share=share, scale=scale))[0] >= 0.0


@pytest.mark.parametrize("share", [1e-12, 1e-9, 0.3])
def test_the_residual_radius_covers_in_fifty_dimensions(share: float) -> None:
    assert residual_excess(World("plain", 2, dim=50, count=14, share=share))[0] >= 0.0


@pytest.mark.parametrize("rows", ROWS)
def test_the_residual_radius_is_hardly_larger_within_the_limit(rows: str) -> None:
    for seed in range(3):
        for share, most in ((1 / MOST_RESOLVED, 2e-3), (1e-6, 2e-5), (0.3, 1e-9)):
            assert residual_excess(World(rows, seed, dim=5, count=30, share=share))[1] < most


def test_surprises_are_covered_even_where_no_width_can_be_trusted() -> None:
    world = World("few", 3, dim=4, count=40, share=1e-14)
    assert world.state().drift > DRIFT_USABLE
    assert residual_excess(world)[0] >= 0.0


# ---------------------------------------------------------------------------------- dual


class ExactDual:
    """The event of `amm` and its reading at any ridge, in sixty digits."""

    def __init__(self, world: World) -> None:
        rows = mpmath.matrix(world.rows.tolist())
        self.square, self.moment = rows.T * rows, rows.T * mpmath.matrix(world.rewards.tolist())
        self.world = world
        ridge = mpmath.mpf(world.ridge)
        log_det = mpmath.log(mpmath.det((self.square + ridge * mpmath.eye(world.dim)) / ridge))
        self.event = mpmath.mpf(world.noise) ** 2 * (log_det + 2 * mpmath.log(1 / mpmath.mpf(world.delta)))
        self.energy = (self.moment.T * self.read(world.ridge)[0])[0]

    def read(self, ridge: float) -> tuple[Any, Any]:
        """Center, and inverse of V_a."""
        inverse = mpmath.inverse(self.square + mpmath.mpf(ridge) * mpmath.eye(self.world.dim))
        return inverse * self.moment, inverse

    def lower(self, ridge: float) -> Callable[[Vector], tuple[Any, Any]]:
        """Mean and spread of a question, read at this ridge."""
        center, inverse = self.read(ridge)
        root = self.event + mpmath.mpf(ridge) * mpmath.mpf(self.world.bound) ** 2
        root += (self.moment.T * center)[0] - self.energy

        def support(q: Vector) -> tuple[Any, Any]:
            x = mpmath.matrix(q.tolist())
            return (center.T * x)[0], mpmath.sqrt(root * (x.T * inverse * x)[0])

        return support


def least(radius: float, center: Vector, whitener: Matrix, q: Vector) -> Any:
    """The least <theta, q> over a set just as it is written down."""
    x = mpmath.matrix(q.tolist())
    whitened = mpmath.matrix(whitener.tolist()) * x
    return (mpmath.matrix(center.tolist()).T * x)[0] - mpmath.mpf(radius) * mpmath.norm(whitened)


CASES = [(1, 1, 0.1, 1.0), (1, 9, 0.9, 1e-60), (2, 1, 0.999, 1.0), (2, 40, 0.5, 1e60), (5, 30, 0.01, 3.0)]


def over_claims(world: World) -> list[float]:
    """By how much each reading of `dual` lies above the exact one, relative to its spread; never, where it is sound."""
    settings, state, found = world.settings("dual"), world.state().core, []
    with mpmath.workdps(DIGITS):
        exact = ExactDual(world)
        for part in native.SHARES:
            support = exact.lower(part * world.ridge)
            for q in world.questions:
                radius, center, whitener = state.choose_dual(settings, q, [part])  # one reading at a time
                mean, spread = support(q)
                found.append(float((least(radius, center, whitener, q) - (mean - spread)) / spread))
    return found


@pytest.mark.parametrize("share", [1e-12, 1e-9, 1e-3, 0.3, 30.0])
@pytest.mark.parametrize("rows", ROWS)
def test_dual_never_claims_more_than_the_exact_event_at_the_same_ridge(rows: str, share: float) -> None:
    for seed, (dim, count, delta, scale) in enumerate(CASES):
        world = World(rows, seed, dim=dim, count=count, share=share, delta=delta, scale=scale, noise=0.1)
        assert max(over_claims(world)) <= 0.0


def test_dual_reads_a_small_ridge_where_nothing_was_seen_without_drowning_it_in_the_old_one() -> None:
    rng = np.random.default_rng(7)
    for seed, share in enumerate(rng.uniform(0.1, 9.0, size=30).tolist()):
        world = World("lopsided", seed, dim=1 + seed % 3, count=3, share=share, noise=0.1)
        assert max(over_claims(world)) <= 0.0


def test_dual_says_nothing_where_rounding_has_done_too_much_at_every_ridge() -> None:
    world, q = World("few", 1, dim=5, count=20, share=1e-14), np.array([1.0, -2.0, 0.5, 0.0, 1.0])
    radius, center, whitener = world.state().core.choose_dual(world.settings("dual"), q)
    assert radius == 1e300
    assert Ellipsoid(center, whitener, radius, 20).lower(q) < -1e299


# ---------------------------------------------------------------------------------- the volume


@pytest.mark.parametrize(("dim", "scale"), [(1, 1e-99), (5, 1e99), (50, 1e-99)])
def test_the_volume_of_a_fresh_factorisation_does_not_depend_on_the_unit_of_the_features(
    dim: int, scale: float
) -> None:
    worlds = [World("plain", 4, dim=dim, count=30, share=30.0, scale=size) for size in (1.0, scale)]
    states = [world.state() for world in worlds]
    assert all(state.core.refresh() for state in states)
    assert states[1].log_det == pytest.approx(states[0].log_det, rel=1e-13, abs=1e-13)


# ---------------------------------------------------------------------------------- alarms


def test_a_set_that_says_nothing_refutes_nothing() -> None:
    for dim in (1, 2, 5):
        center = np.full(dim, 3.0)  # outside of every fact
        found = search(
            center, np.eye(dim), 1e300, 1.0, np.zeros(dim), np.zeros((0, dim)), np.zeros(0), rows=np.eye(dim), low=0.0,
            high=1.0, budget=16,
        )  # fmt: skip
        assert not found.is_refuted


def test_facts_that_are_hard_to_tell_apart_are_not_a_contradiction() -> None:
    """Two facts whose normals agree to 1e-6 once they are whitened, and which some theta satisfies all the same."""
    whitener = np.diag([1e6, 1.0])  # the first direction is open
    normals = np.array([[1.0, 0.5], [-1.0, 0.5]])
    # theta = (0, 0.4) in the first case; theta_2 >= 1.2 in the second, which ball and set both forbid.
    for level, is_refuted in ((0.2, False), (0.6, True)):
        found = search(np.zeros(2), whitener, 1.0, 1.0, np.zeros(2), normals, np.full(2, level), budget=16)
        assert found.is_refuted == is_refuted
        for fact in found.facts:
            assert np.isfinite([fact.level, fact.weight, *fact.normal]).all()


@pytest.mark.parametrize("radius", ELLIPSOIDS)
@pytest.mark.parametrize("share", [1.5e-15, 1e-12, 1e-9])
def test_no_alarm_rings_and_no_claim_is_false_where_everything_declared_is_true(
    radius: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit as well: it stands for what is useful, not for what is sound."""
    monkeypatch.setattr(policy_settings, "MOST_RESOLVED", 1e30)
    for seed in range(12):
        rng = np.random.default_rng([seed, RADII[radius]])
        dim, noise = int(rng.choice([2, 3, 5])), float(rng.choice([1e-6, 1e-3, 0.1]))
        theta = np.abs(rng.normal(size=dim))
        theta /= np.linalg.norm(theta)
        policy = surefoot.SafeLUCB(
            dim=dim, alpha=0.2, delta=0.001, noise=noise, ridge=share, theta_bound=1.0, feature_bound=1.0,
            radius=radius, reward_range=(0.0, 1.0),
        )  # fmt: skip
        fixed = np.abs(rng.normal(size=(6, dim)))
        fixed *= rng.uniform(0.3, 1.0, size=(6, 1)) / np.linalg.norm(fixed, axis=1, keepdims=True)
        for _ in range(25):
            decision = policy.decide(fixed, baseline=0)
            proof = decision.certificate.proof
            assert not policy.is_refuted
            assert proof.value <= proof.question @ theta + 1e-12 * (1 + np.abs(proof.question).sum())
            policy.observe(decision, float(fixed[decision.action] @ theta + noise * rng.choice([-1, 1])))


# ---------------------------------------------------------------------------------- the limit


@pytest.mark.parametrize("size", [1e-100, 0.3, 1.0, 7.0, 1e99])
@pytest.mark.parametrize("noise", [1e-50, 1e-9, 0.5])
def test_the_ridge_that_suits_is_within_the_limit(size: float, noise: float) -> None:
    ridge = suitable_ridge(3, noise * size, 1.0, size)
    surefoot.LUCB(dim=3, delta=0.1, noise=noise * size, ridge=ridge, theta_bound=1.0, feature_bound=size)


def test_within_the_limit_a_set_says_something_after_a_few_rows_in_twenty_dimensions() -> None:
    for share, is_useful in ((1 / MOST_RESOLVED, True), (0.01 / MOST_RESOLVED, False)):
        for seed in range(3):
            world = World("few", seed, dim=20, count=20, share=share)
            assert (world.state().drift <= DRIFT_USABLE) == is_useful
