"""The ridge state against fresh solves, exact sums and fifty-digit arithmetic, none of which share code with it."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surefoot.arrays import Matrix, Vector
from surefoot.core import native
from surefoot.linear.ridge import REFRESH_EVERY, Ridge
from tests.linear.scoring import settings_with

DIGITS = 50
finite_floats = st.floats(min_value=-1e300, max_value=1e300)
moderate_floats = st.floats(min_value=1e-100, max_value=1e100) | st.floats(min_value=-1e100, max_value=-1e-100)


def fed(rows: Matrix, rewards: Vector, *, ridge: float) -> Ridge:
    state = Ridge(dim=rows.shape[1], ridge=ridge)
    take_in = state.core.absorb
    for row, reward in zip(rows, rewards.tolist(), strict=True):
        take_in(row, reward)
    return state


class Exact:
    """V, V^-1, b and theta of the raw floats, in fifty digits."""

    def __init__(self, rows: Matrix, rewards: Vector, *, ridge: float) -> None:
        dim = rows.shape[1]
        with mpmath.workdps(DIGITS):
            columns = [[mpmath.mpf(entry) for entry in column] for column in rows.T.tolist()]
            ys = [mpmath.mpf(y) for y in rewards.tolist()]
            self.gram: Any = mpmath.matrix(dim)
            for i in range(dim):
                for j in range(i + 1):
                    self.gram[i, j] = self.gram[j, i] = mpmath.fdot(columns[i], columns[j])
                self.gram[i, i] += mpmath.mpf(ridge)
            self.moment: Any = mpmath.matrix([mpmath.fdot(column, ys) for column in columns])
            self.inverse: Any = mpmath.inverse(self.gram)
            self.theta: Any = self.inverse * self.moment

    def width(self, q: Vector) -> Any:
        with mpmath.workdps(DIGITS):
            x = mpmath.matrix(q.tolist())
            return mpmath.sqrt((x.T * self.inverse * x)[0])

    def width_error(self, state: Ridge, q: Vector) -> float:
        with mpmath.workdps(DIGITS):
            return float(abs(state.width(q) / self.width(q) - 1))

    def center_error(self, state: Ridge) -> float:
        """||theta - theta_exact||_V."""
        with mpmath.workdps(DIGITS):
            off = mpmath.matrix(state.theta.tolist()) - self.theta
            return float(mpmath.sqrt((off.T * self.gram * off)[0]))


def radius_and_room(state: Ridge, *, noise: float, ridge: float) -> tuple[float, float]:
    """The radius of the noise alone, and the same with room for rounding."""
    beta = state.core.radius(settings_with(noise=noise, ridge=ridge, theta_bound=0.0, feature_bound=1.0))
    return beta, state.core.guarded_radius(beta)


def scaled(dim: int, count: int, *, seed: int) -> Matrix:
    """Columns whose units differ by twelve orders of magnitude."""
    rng = np.random.default_rng(seed)
    rows: Matrix = rng.normal(size=(count, dim)) * 10.0 ** np.linspace(-6, 6, dim)
    return rows


def collinear(dim: int, count: int, *, tilt: float, seed: int) -> Matrix:
    """Rows that differ from one direction by `tilt` only."""
    rng = np.random.default_rng(seed)
    rows: Matrix = rng.normal(size=dim) + tilt * rng.normal(size=(count, dim))
    return rows


def growing(dim: int, count: int, *, tilt: float, seed: int) -> Matrix:
    """Nearly collinear rows, each longer than the one before: no single observation looks like much."""
    rows: Matrix = collinear(dim, count, tilt=tilt, seed=seed) * np.geomspace(1e-4, 1.0, count)[:, None]
    return rows


def directions(rows: Matrix, *, seed: int) -> Matrix:
    """Directions to measure in: axes, rows, random ones, and those the rows reach most and least."""
    rng = np.random.default_rng(seed)
    dim = rows.shape[1]
    principal = np.linalg.svd(rows)[2]
    return np.vstack([np.eye(dim)[:5], rows[:2], rng.normal(size=(3, dim)), principal[0], principal[-1]])


@pytest.mark.parametrize("ridge", [0.3, 1.0, 2.5])  # 1.0 alone would hide a missing inverse
@pytest.mark.parametrize("dim", [1, 2, 4, 5, 50])
def test_the_state_equals_a_fresh_solve(dim: int, ridge: float) -> None:
    rng = np.random.default_rng(dim)
    rows, rewards = rng.normal(size=(300, dim)), rng.normal(size=300)
    state = fed(rows, rewards, ridge=ridge)
    gram = ridge * np.eye(dim) + rows.T @ rows
    inverse = np.linalg.inv(gram)
    np.testing.assert_allclose(state.gram, gram, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state.moment, rows.T @ rewards, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state.theta, np.linalg.solve(gram, rows.T @ rewards), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.whitener.T @ state.whitener, inverse, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(state.whitener, np.tril(state.whitener))
    assert state.log_det == pytest.approx(np.linalg.slogdet(gram)[1] - dim * math.log(ridge), rel=1e-11)
    assert state.count == 300
    for q in rng.normal(size=(5, dim)):
        assert state.width(q) == pytest.approx(math.sqrt(q @ inverse @ q), rel=1e-10)


@pytest.mark.parametrize("ridge", [0.3, 2.5])
def test_an_empty_state_has_the_widths_of_the_ridge_alone(ridge: float) -> None:
    state = Ridge(dim=2, ridge=ridge)
    assert state.width(np.array([3.0, 4.0])) == pytest.approx(5.0 / math.sqrt(ridge), rel=1e-15)
    assert state.log_det == 0.0
    assert state.count == 0
    assert not state.theta.any()


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_state_equals_a_fresh_solve_after_every_single_observation(dim: int) -> None:
    rng = np.random.default_rng(7 + dim)
    state, gram, moment = Ridge(dim=dim, ridge=0.3), 0.3 * np.eye(dim), np.zeros(dim)
    for _ in range(3 * dim):
        x, y = rng.normal(size=dim), rng.normal()
        state.observe(x, y)
        gram += np.outer(x, x)
        moment += y * x
        np.testing.assert_allclose(state.theta, np.linalg.solve(gram, moment), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(state.whitener.T @ state.whitener, np.linalg.inv(gram), rtol=1e-11, atol=1e-13)
        assert state.log_det == pytest.approx(np.linalg.slogdet(gram)[1] - dim * math.log(0.3), rel=1e-12)


def test_what_absorb_returns_moves_means_and_squares_of_any_fixed_direction() -> None:
    rng = np.random.default_rng(3)
    state = Ridge(dim=5, ridge=0.3)
    q = rng.normal(size=5)
    for _ in range(200):
        mean, square = state.theta @ q, state.width(q) ** 2
        gram_before, x = state.gram, rng.normal(size=5)
        gain, error = state.core.absorb(x, rng.normal())
        step = np.linalg.solve(gram_before, x)
        assert gain > 0
        assert state.theta @ q == pytest.approx(mean + error * (step @ q), rel=1e-9, abs=1e-12)
        assert state.width(q) ** 2 == pytest.approx(square - gain * (step @ q) ** 2, rel=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_a_fresh_factorisation_comes_at_least_at_its_interval(dim: int) -> None:
    rng = np.random.default_rng(4)
    state, ages = Ridge(dim=dim, ridge=0.3), []
    for _ in range(2 * REFRESH_EVERY + 10):
        state.observe(rng.normal(size=dim), rng.normal())
        ages.append(int(state.core.age))
        assert state.drift < 1e-7
    assert max(ages) < REFRESH_EVERY
    assert ages.count(0) >= 2


def test_a_million_observations_leave_no_rounding_behind() -> None:
    count, dim, ridge = 1_000_000, 4, 0.3
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(count, dim)) + 1.0
    rewards = rows @ np.array([0.1, -0.2, 0.3, 0.4]) + rng.normal(size=count)
    state = fed(rows, rewards, ridge=ridge)

    # math.fsum is exact, so these are the sums of all products, rounded once.
    gram = ridge * np.eye(dim)
    for i, j in itertools.combinations_with_replacement(range(dim), 2):
        gram[i, j] = gram[j, i] = gram[i, j] + math.fsum((rows[:, i] * rows[:, j]).tolist())
    moment = np.array([math.fsum((rows[:, i] * rewards).tolist()) for i in range(dim)])
    np.testing.assert_allclose(state.gram, gram, rtol=4e-16)  # two roundings; a plain sum is off by 1e-13
    np.testing.assert_allclose(state.moment, moment, rtol=4e-16)

    with mpmath.workdps(DIGITS):
        exact = mpmath.matrix(gram.tolist())
        theta = mpmath.lu_solve(exact, mpmath.matrix(moment.tolist()))
        log_det = float(mpmath.log(mpmath.det(exact)) - dim * mpmath.log(ridge))
        inverse = mpmath.inverse(exact)
        squares = [float(inverse[i, i]) for i in range(dim)]
    np.testing.assert_allclose(state.theta, [float(entry) for entry in theta], rtol=1e-12)
    assert state.log_det == pytest.approx(log_det, rel=1e-13)
    for axis, square in zip(np.eye(dim), squares, strict=True):
        assert state.width(axis) == pytest.approx(math.sqrt(square), rel=1e-12)
    assert state.drift < 1e-11
    assert state.count == count


HARD_ROWS: dict[str, tuple[Callable[[int], Matrix], float]] = {
    "plain": (lambda dim: np.random.default_rng(dim).normal(size=(120, dim)), 0.3),
    "columns from 1e-6 to 1e6": (lambda dim: scaled(dim, 120, seed=dim), 0.3),
    "columns from 1e-6 to 1e6, tiny ridge": (lambda dim: scaled(dim, 120, seed=dim), 1e-9),
    "nearly collinear": (lambda dim: collinear(dim, 120, tilt=1e-5, seed=dim), 0.3),
    "nearly collinear, small ridge": (lambda dim: collinear(dim, 120, tilt=1e-6, seed=dim), 1e-3),
    "nearly collinear, tiny ridge": (lambda dim: collinear(dim, 120, tilt=1e-6, seed=dim), 1e-9),
    "nearly collinear and growing": (lambda dim: growing(dim, 250, tilt=1e-5, seed=dim), 4e-9),
    "one direction, tiny ridge": (lambda dim: collinear(dim, 120, tilt=0.0, seed=dim), 1e-12),
}


@pytest.mark.parametrize("refreshed", [False, True], ids=["updated", "refreshed"])
@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("kind", HARD_ROWS)
def test_the_error_of_a_width_stays_below_the_drift(kind: str, dim: int, refreshed: bool) -> None:
    make, ridge = HARD_ROWS[kind]
    rows = make(dim)
    rewards = np.random.default_rng(99).normal(size=len(rows))
    state, exact = fed(rows, rewards, ridge=ridge), Exact(rows, rewards, ridge=ridge)
    if refreshed:
        state.core.refresh()
    for q in directions(rows, seed=dim):
        assert exact.width_error(state, q) <= state.drift


@pytest.mark.parametrize("kind", ["plain", "columns from 1e-6 to 1e6", "nearly collinear, small ridge"])
def test_the_error_of_a_width_stays_below_the_drift_in_fifty_dimensions(kind: str) -> None:
    make, ridge = HARD_ROWS[kind]
    rows = make(50)
    rewards = np.zeros(len(rows))
    state, exact = fed(rows, rewards, ridge=ridge), Exact(rows, rewards, ridge=ridge)
    for q in directions(rows, seed=50)[:4]:
        assert exact.width_error(state, q) <= state.drift


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("kind", HARD_ROWS)
def test_the_estimate_is_off_by_no_more_than_the_radius_allows_for(kind: str, dim: int) -> None:
    make, ridge = HARD_ROWS[kind]
    rows = make(dim)
    for seed in range(4):
        rewards = np.random.default_rng(seed).normal(size=len(rows))
        state = Ridge(dim=dim, ridge=ridge)
        for place, (row, reward) in enumerate(zip(rows, rewards, strict=True), start=1):
            state.observe(row, reward)
            if place in (1, 2, 5, 30, len(rows)):
                error = Exact(rows[:place], rewards[:place], ridge=ridge).center_error(state)
                assert error <= radius_and_room(state, noise=0.0, ridge=ridge)[1]


def test_a_factorisation_that_is_all_rounding_error_is_not_trusted() -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):  # V is singular in float64, and yet some of these factor: their last pivot is rounding error
        rows, ridge = rng.normal(size=2) + 1e-9 * rng.normal(size=(3, 2)), 10.0 ** rng.uniform(-24, -18)
        state, exact = fed(rows, np.zeros(3), ridge=ridge), Exact(rows, np.zeros(3), ridge=ridge)
        state.core.refresh()
        beta, room = radius_and_room(state, noise=1.0, ridge=ridge)
        for q in directions(rows, seed=0):
            assert exact.width(q) <= state.width(q) * (room / beta)


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_a_refresh_keeps_the_values(dim: int) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(400, dim))
    state = fed(rows, rng.normal(size=400), ridge=0.3)
    qs = rng.normal(size=(5, dim))
    gram, moment, log_det = state.gram, state.moment, state.log_det
    widths = [state.width(q) for q in qs]
    whitener = state.whitener.copy()
    assert state.core.refresh()
    assert state.core.age == 0
    np.testing.assert_allclose(state.gram, gram, rtol=1e-15, atol=1e-13)
    np.testing.assert_array_equal(state.moment, moment)
    np.testing.assert_allclose(state.whitener, whitener, rtol=1e-9, atol=1e-12)
    assert state.log_det == pytest.approx(log_det, rel=1e-12)
    assert [state.width(q) for q in qs] == pytest.approx(widths, rel=1e-12)


def test_a_state_that_cannot_be_factored_keeps_its_whitener() -> None:
    rows = np.full((30, 2), 0.7)
    state = fed(rows, np.ones(30), ridge=1e-20)
    assert np.linalg.matrix_rank(state.gram) == 1  # in float64 nothing of the ridge is left
    whitener, drift = state.whitener.copy(), state.drift
    assert not state.core.refresh()
    np.testing.assert_array_equal(state.whitener, whitener)
    assert state.drift == drift
    exact = Exact(rows, np.ones(30), ridge=1e-20)
    for q in (np.array([1.0, 0.0]), np.array([1.0, -1.0]), np.array([0.7, 0.7])):
        assert exact.width_error(state, q) <= state.drift


@pytest.mark.parametrize(("ridge", "size"), [(1e-300, 1.0), (1e-300, 1e-150), (1e-20, 1e5), (0.3, 1e70), (1e-300, 1e5)])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_no_scale_turns_the_state_into_nan(dim: int, ridge: float, size: float) -> None:
    rng = np.random.default_rng(dim)
    rows = size * rng.normal(size=(60, dim))
    state = fed(rows, rng.normal(size=60), ridge=ridge)
    state.core.refresh()
    state.core.absorb(rows[0], 1.0)
    assert not np.isnan(state.theta).any()
    assert not np.isnan(state.whitener).any()
    assert not math.isnan(state.drift)
    assert not math.isnan(state.width(rows[0]))


@settings(deadline=None)
@given(finite_floats, finite_floats)
@example(1.0, 2.0**-60)
@example(2.0**-60, 1.0)
@example(0.1, 0.2)
def test_two_sum_loses_nothing(total: float, term: float) -> None:
    rounded, lost = native.two_sum(total, term)
    assert rounded == total + term
    assert Fraction(rounded) + Fraction(lost) == Fraction(total) + Fraction(term)


@settings(deadline=None)
@given(moderate_floats, moderate_floats)
@example(0.1, 3.0)
@example(1.0 + 2.0**-52, 1.0 - 2.0**-53)
def test_two_product_loses_nothing(x: float, y: float) -> None:
    rounded, lost = native.two_product(x, y)
    assert rounded == x * y
    assert Fraction(rounded) + Fraction(lost) == Fraction(x) * Fraction(y)
