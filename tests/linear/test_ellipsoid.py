"""Ball and ellipsoid against Clarabel, brute force on the boundary, and fifty-digit arithmetic from the raw data."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import clarabel
import mpmath
import numpy as np
import pytest
from scipy import sparse

from surefoot.arrays import Matrix, Vector
from surefoot.linear.ellipsoid import Ball, Ellipsoid, snapshot
from surefoot.linear.ridge import Ridge
from tests.linear.scoring import policy_of, settings_with

DIGITS = 50


def some_ellipsoid(dim: int, *, seed: int) -> Ellipsoid:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim + 2))
    whitener = np.linalg.cholesky(root @ root.T + 0.1 * np.eye(dim)) / 2
    return Ellipsoid(center=rng.normal(size=dim), whitener=whitener, radius=0.7, observations=3)


def solved(q: Vector, known: Ball | Ellipsoid) -> float:
    """min <theta, q> by Clarabel, over u with theta = center + radius M^T u and ||u|| <= 1."""
    dim = q.size
    center, axes = np.zeros(dim), known.radius * np.eye(dim)
    if isinstance(known, Ellipsoid):
        center, axes = known.center, known.radius * known.whitener.T
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    rows = sparse.csc_matrix(np.vstack([np.zeros(dim), -np.eye(dim)]))
    limits = np.append(1.0, np.zeros(dim))
    cones = [clarabel.SecondOrderConeT(dim + 1)]
    problem = clarabel.DefaultSolver(sparse.csc_matrix((dim, dim)), axes.T @ q, rows, limits, cones, settings)
    return float(center @ q + (axes.T @ q) @ np.array(problem.solve().x))


def boundary(known: Ball | Ellipsoid, dim: int, count: int, *, seed: int) -> Matrix:
    units = np.random.default_rng(seed).normal(size=(count, dim))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    if isinstance(known, Ball):
        return np.asarray(known.radius * units)
    return np.asarray(known.center + known.radius * units @ known.whitener)


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_lower_and_upper_of_both_sets_are_what_clarabel_finds(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for known in (Ball(0.3), Ball(2.5), some_ellipsoid(dim, seed=dim)):
        for q in rng.normal(size=(5, dim)):
            assert known.lower(q) == pytest.approx(solved(q, known), rel=1e-9, abs=1e-9)
            assert known.upper(q) == pytest.approx(-solved(-q, known), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_no_point_of_the_boundary_lies_outside_the_bounds(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for known in (Ball(0.3), some_ellipsoid(dim, seed=10 + dim)):
        points = boundary(known, dim, 20_000, seed=dim)
        for q in rng.normal(size=(5, dim)):
            values = points @ q
            assert known.lower(q) <= values.min() + 1e-14
            assert known.upper(q) >= values.max() - 1e-14
            if dim <= 2:  # in the plane so many points come close to both ends
                assert values.min() - known.lower(q) < 1e-6 * (known.upper(q) - known.lower(q))
                assert known.upper(q) - values.max() < 1e-6 * (known.upper(q) - known.lower(q))


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_the_bounds_are_attained_by_a_point_of_the_set(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for known in (Ball(0.3), some_ellipsoid(dim, seed=20 + dim)):
        for q in rng.normal(size=(5, dim)):
            center, root = (np.zeros(dim), np.eye(dim)) if isinstance(known, Ball) else (known.center, known.whitener)
            u = root @ q / np.linalg.norm(root @ q)
            assert known.lower(q) == pytest.approx(q @ (center - known.radius * root.T @ u), rel=1e-9, abs=1e-12)
            assert known.upper(q) == pytest.approx(q @ (center + known.radius * root.T @ u), rel=1e-9, abs=1e-12)


def test_bounds_of_the_zero_vector_are_zero() -> None:
    for known in (Ball(0.3), some_ellipsoid(3, seed=1)):
        assert known.lower(np.zeros(3)) == 0.0
        assert known.upper(np.zeros(3)) == 0.0


# ---------------------------------------------------------------------------------- sets of a ridge state, exactly


class ExactSet:
    """The paper's ellipsoid of the raw floats, in fifty digits."""

    def __init__(self, settings: Any, rows: Matrix, rewards: Vector) -> None:
        noise, delta, ridge = (mpmath.mpf(s) for s in (settings.noise, settings.delta, settings.ridge))
        theta_bound, feature_bound = mpmath.mpf(settings.theta_bound), mpmath.mpf(settings.feature_bound)
        count, dim = rows.shape
        with mpmath.workdps(DIGITS):
            columns = [[mpmath.mpf(entry) for entry in column] for column in rows.T.tolist()]
            ys = [mpmath.mpf(y) for y in rewards.tolist()]
            gram = mpmath.matrix(dim)
            for i in range(dim):
                for j in range(i + 1):
                    gram[i, j] = gram[j, i] = mpmath.fdot(columns[i], columns[j])
                gram[i, i] += ridge
            self.inverse: Any = mpmath.inverse(gram)
            self.center: Any = self.inverse * mpmath.matrix([mpmath.fdot(column, ys) for column in columns])
            log_ratio = mpmath.log((1 + (count + 1) * feature_bound**2 / ridge) / delta)
            self.radius: Any = noise * mpmath.sqrt(dim * log_ratio) + mpmath.sqrt(ridge) * theta_bound

    def support(self, q: Vector) -> tuple[Any, Any]:
        with mpmath.workdps(DIGITS):
            x = mpmath.matrix(q.tolist())
            return (self.center.T * x)[0], self.radius * mpmath.sqrt((x.T * self.inverse * x)[0])


def looseness(known: Ball | Ellipsoid, exact: ExactSet, q: Vector) -> float:
    """How far inside the truth the nearer of the two bounds stays, in spreads; negative where one is not valid."""
    mean, spread = exact.support(q)
    with mpmath.workdps(DIGITS):
        below, above = mean - spread - known.lower(q), known.upper(q) - (mean + spread)
        return float(min(below, above) / spread)


def plain(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    return rng.normal(size=(count, dim))


def scaled(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    return np.asarray(rng.normal(size=(count, dim)) * 10.0 ** np.linspace(-6, 6, dim))


def collinear(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    return np.asarray(rng.normal(size=dim) + 1e-5 * rng.normal(size=(count, dim)))


def one_direction(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    return np.asarray(rng.normal(size=dim) * rng.normal(size=(count, 1)))


def growing(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    return np.asarray(collinear(rng, count, dim) * np.geomspace(1e-4, 1.0, count)[:, None])


KINDS: dict[str, tuple[Callable[[np.random.Generator, int, int], Matrix], float, float]] = {
    "plain": (plain, 0.3, 1.0),
    "plain, little noise": (plain, 0.3, 1e-4),
    "scaled": (scaled, 0.3, 1.0),
    "scaled, tiny ridge": (scaled, 1e-9, 1e-2),
    "collinear": (collinear, 0.3, 1.0),
    "collinear, small ridge": (collinear, 1e-3, 1e-2),
    "collinear, tiny ridge": (collinear, 1e-6, 1e-2),
    "one direction, small ridge": (one_direction, 1e-3, 1e-2),
    "one direction, tiny ridge": (one_direction, 1e-12, 1e-2),
    "growing, tiny ridge": (growing, 4e-9, 1e-2),
}


def sets_with_their_truth(kind: str) -> Iterator[tuple[Ball | Ellipsoid, ExactSet, Matrix]]:
    """Sets of random states, what they should be, and directions in which to compare."""
    make, ridge, noise = KINDS[kind]
    rng = np.random.default_rng(2024)
    for dim in [1, 2, 2, 5] * 30:
        count = int(rng.integers(1, 60))
        rows = make(rng, count, dim)
        longest = float(np.linalg.norm(rows, axis=1).max())
        rewards = rows @ rng.normal(size=dim) / longest + noise * rng.normal(size=count)
        settings = settings_with(noise=noise, ridge=ridge, feature_bound=longest)
        state = Ridge(dim=dim, ridge=ridge)
        for row, reward in zip(rows, rewards, strict=True):
            state.observe(row, reward)
        principal = np.linalg.svd(rows)[2]
        qs = np.vstack([rng.normal(size=dim), rows[0], rows.sum(axis=0), principal[0], principal[-1], -principal[-1]])
        yield snapshot(settings, state.core), ExactSet(settings, rows, rewards), qs


@pytest.mark.parametrize("kind", KINDS)
def test_the_set_of_a_ridge_state_is_never_smaller_than_the_exact_one(kind: str) -> None:
    for known, exact, qs in sets_with_their_truth(kind):
        for q in qs:
            assert looseness(known, exact, q) >= 0.0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "tiny ridge" not in kind])
def test_the_set_of_a_ridge_state_is_hardly_larger_than_the_exact_one(kind: str) -> None:
    for known, exact, qs in sets_with_their_truth(kind):
        for q in qs:
            assert looseness(known, exact, q) < 1e-6


def test_a_first_row_that_drowns_the_ridge_does_not_blur_the_set_for_long() -> None:
    rng = np.random.default_rng(9)
    rows = scaled(rng, 20, 5)
    settings = settings_with(noise=1.0, ridge=1e-9, feature_bound=float(np.linalg.norm(rows, axis=1).max()))
    state = Ridge(dim=5, ridge=1e-9)
    for row in rows:
        state.observe(row, rng.normal())
    beta = state.core.radius(settings)
    assert state.core.guarded_radius(beta) / beta < 1 + 1e-6


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_the_last_bits_of_a_far_center_are_given_away(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for _ in range(200):
        center, q = 1e6 * rng.normal(size=dim), rng.normal(size=dim)
        known = Ellipsoid(center=center, whitener=np.eye(dim), radius=1e-300, observations=1)
        mean = sum(Fraction(a) * Fraction(b) for a, b in zip(center.tolist(), q.tolist(), strict=True))
        assert Fraction(known.lower(q)) <= mean <= Fraction(known.upper(q))
        assert known.upper(q) - known.lower(q) <= 1e-13 * float(np.abs(center) @ np.abs(q))


def test_products_that_all_round_the_same_way_do_not_make_the_set_too_small() -> None:
    # x1 y1 + x2 y2 is 1e-16 off when each product is rounded, to the same side in every pair of rounds.
    x1, x2, y1, y2 = 0.8678441838267604, 0.699360461939843, 0.8634701075890978, -1.071489670292404
    pairs = 51_200  # a multiple of the refresh interval: there is no other rounding to hide behind
    state = Ridge(dim=2, ridge=0.3)
    take_in = state.core.absorb
    first, second = np.array([x1, 0.0]), np.array([x2, 0.0])
    for _ in range(pairs):
        take_in(first, y1)
        take_in(second, y2)
    settings = settings_with(noise=0.1, ridge=0.3, feature_bound=1.0)
    known = snapshot(settings, state.core)
    with mpmath.workdps(DIGITS):
        gram = mpmath.mpf(0.3) + pairs * (mpmath.mpf(x1) ** 2 + mpmath.mpf(x2) ** 2)
        mean = pairs * (mpmath.mpf(x1) * mpmath.mpf(y1) + mpmath.mpf(x2) * mpmath.mpf(y2)) / gram
        log_ratio = mpmath.log((1 + (2 * pairs + 1) / mpmath.mpf(0.3)) / mpmath.mpf(0.01))
        spread = (0.1 * mpmath.sqrt(2 * log_ratio) + mpmath.sqrt(mpmath.mpf(0.3)) * 1.3) / mpmath.sqrt(gram)
        assert known.lower(np.array([1.0, 0.0])) <= mean - spread
        assert known.upper(np.array([1.0, 0.0])) >= mean + spread


# ---------------------------------------------------------------------------------- snapshots


def test_before_any_observation_the_set_is_the_ball_of_theta() -> None:
    settings = settings_with(noise=1.0, ridge=0.3, feature_bound=1.0)
    state = Ridge(dim=2, ridge=0.3)
    known = snapshot(settings, state.core)
    assert isinstance(known, Ball)
    assert known.radius == 1.3
    assert known.lower(np.array([3.0, 4.0])) == pytest.approx(-6.5, rel=1e-14)


def test_a_snapshot_does_not_follow_later_observations() -> None:
    settings = settings_with(noise=1.0, ridge=0.3, feature_bound=1.0)
    state, q = Ridge(dim=2, ridge=0.3), np.array([0.6, -0.8])
    state.observe(np.array([1.0, 0.5]), 0.7)
    known = snapshot(settings, state.core)
    before = known.lower(q), known.upper(q)
    state.observe(np.array([-0.3, 0.9]), -1.0)
    assert (known.lower(q), known.upper(q)) == before
    assert isinstance(known, Ellipsoid)
    assert known.observations == 1
    assert snapshot(settings, state.core).lower(q) != before[0]


def test_compiled_support_and_snapshot_give_the_same_bounds() -> None:
    rng = np.random.default_rng(8)
    settings = settings_with(noise=0.5, ridge=0.3, feature_bound=4.0)
    state = Ridge(dim=3, ridge=0.3)
    for _ in range(20):
        q = rng.normal(size=3)
        radius = state.core.guarded_radius(state.core.radius(settings))
        mean, spread = policy_of(settings, state).range(radius, q)
        known = snapshot(settings, state.core)
        assert (known.lower(q), known.upper(q)) == pytest.approx((mean - spread, mean + spread), rel=1e-13)
        assert math.isfinite(mean)
        state.observe(rng.normal(size=3), rng.normal())
