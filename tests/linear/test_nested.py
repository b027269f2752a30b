"""Nested sets against one cone program over every set at once, against sampling, and against exact arithmetic."""

import math
from dataclasses import dataclass
from typing import Any

import clarabel
import mpmath
import numpy as np
import pytest
from scipy import sparse

from surefoot.arrays import Matrix, Vector
from surefoot.linear.ellipsoid import Ball, Ellipsoid, snapshot
from surefoot.linear.nested import Nested
from surefoot.linear.ridge import Ridge
from tests.linear.scoring import settings_with

THETA = 1.2  # theta_bound
DIGITS = 50


@dataclass
class Run:
    """A nest, and beside it the raw V, theta_hat and radius of every ellipsoid, by numpy."""

    dim: int
    seed: int
    noise: float = 0.1
    ridge: float = 0.3
    scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.scale = np.array(self.scales or (1.0,) * self.dim)
        self.theta = self.rng.normal(size=self.dim)
        self.theta *= 0.9 * THETA / np.linalg.norm(self.theta)
        self.settings = settings_with(noise=self.noise, ridge=self.ridge, theta_bound=THETA, feature_bound=3.0)
        self.state = Ridge(dim=self.dim, ridge=self.ridge)
        self.nested = Nested(Ball(THETA), dim=self.dim)
        self.rows: list[Vector] = []
        self.rewards: list[float] = []
        self.raw: list[tuple[Matrix, Vector, float]] = [(np.eye(self.dim), np.zeros(self.dim), THETA)]

    def row(self) -> Vector:
        row: Vector = self.rng.normal(size=self.dim) * self.scale
        return row / max(1.0, float(np.linalg.norm(row)) / 3.0)

    def learn(self, count: int = 1) -> "Run":
        for _ in range(count):
            row = self.row()
            reward = float(row @ self.theta + self.noise * self.rng.normal())
            self.rows.append(row)
            self.rewards.append(reward)
            self.state.observe(row, reward)
            known = snapshot(self.settings, self.state.core)
            assert isinstance(known, Ellipsoid)
            self.nested.add(known)
            rows = np.array(self.rows)
            gram = self.ridge * np.eye(self.dim) + rows.T @ rows
            self.raw.append((gram, np.linalg.solve(gram, rows.T @ np.array(self.rewards)), known.radius))
        return self


def solved(q: Vector, raw: list[tuple[Matrix, Vector, float]]) -> tuple[float, Vector]:
    """min <theta, q> over all sets at once: Clarabel's value and minimiser."""
    dim = q.size
    roots = [np.linalg.cholesky(gram).T / radius for gram, _, radius in raw]
    rows = np.vstack([np.vstack([np.zeros(dim), -root]) for root in roots])
    limits = np.concatenate([np.append(1.0, -root @ center) for root, (_, center, _) in zip(roots, raw, strict=True)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.SecondOrderConeT(dim + 1) for _ in raw]
    problem = clarabel.DefaultSolver(sparse.csc_matrix((dim, dim)), q, sparse.csc_matrix(rows), limits, cones, settings)
    theta = np.array(problem.solve().x)
    return float(theta @ q), theta


def excess(theta: Vector, raw: list[tuple[Matrix, Vector, float]]) -> float:
    """How far outside the worst set theta lies: ||theta - center||_V / radius - 1."""
    return max(math.sqrt((theta - center) @ gram @ (theta - center)) / radius for gram, center, radius in raw) - 1.0


@pytest.mark.parametrize("ridge", [0.3, 2.5])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_lower_and_upper_are_the_optimum_over_every_set_at_once(dim: int, ridge: float) -> None:
    run = Run(dim=dim, seed=dim, ridge=ridge)
    for _ in range(5):
        run.learn(6)
        for q in run.rng.normal(size=(4, dim)):
            assert run.nested.lower(q) == pytest.approx(solved(q, run.raw)[0], rel=1e-7, abs=1e-8)
            assert run.nested.upper(q) == pytest.approx(-solved(-q, run.raw)[0], rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("scales", [(1e-3, 1e3), (1e-2, 1.0, 1e2)])
def test_lower_is_the_optimum_for_badly_scaled_features_too(scales: tuple[float, ...]) -> None:
    run = Run(dim=len(scales), seed=5, scales=scales)
    for _ in range(5):
        run.learn(6)
        for q in run.rng.normal(size=(4, run.dim)):
            least, theta = solved(q, run.raw)
            assert excess(theta, run.raw) < 1e-7
            assert run.nested.lower(q) == pytest.approx(least, rel=1e-6, abs=1e-7)


def test_no_point_of_the_intersection_lies_outside_the_bounds_and_some_point_comes_close() -> None:
    angles = np.linspace(0.0, 2 * math.pi, 20_000)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    run = Run(dim=2, seed=8, noise=0.3)
    for _ in range(6):
        run.learn(3)
        borders = [
            center + radius * np.linalg.solve(np.linalg.cholesky(gram).T, circle).T for gram, center, radius in run.raw
        ]
        points = np.vstack(borders)
        for gram, center, radius in run.raw:
            off = points - center
            points = points[np.einsum("ki,ij,kj->k", off, gram, off) <= (radius * (1 + 1e-12)) ** 2]
        for q in run.rng.normal(size=(5, 2)):
            values, lower, upper = points @ q, run.nested.lower(q), run.nested.upper(q)
            assert lower <= values.min() + 1e-11
            assert upper >= values.max() - 1e-11
            step = 2 * math.pi / 20_000 * THETA * float(np.linalg.norm(q))  # how far apart sampled points may lie
            assert values.min() - lower <= step
            assert upper - values.max() <= step


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_split_adds_up_to_the_question_and_its_value_to_the_bounds_of_its_sets(dim: int) -> None:
    run = Run(dim=dim, seed=20 + dim)
    for _ in range(10):
        run.learn(3)
        q = run.rng.normal(size=dim) * 10.0 ** run.rng.uniform(-3, 3)
        split = run.nested.split(q)
        total = np.sum([piece for _, piece in split.pieces], axis=0)
        assert np.linalg.norm(total - q) <= 1e-14 * sum(float(np.linalg.norm(piece)) for _, piece in split.pieces)
        assert split.value == math.fsum(known.lower(piece) for known, piece in split.pieces)
        assert split.value == pytest.approx(run.nested.lower(q), rel=1e-9)
        assert all(known in run.nested.sets for known, _ in split.pieces)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_split_is_never_above_what_a_point_of_the_intersection_reaches(dim: int) -> None:
    run = Run(dim=dim, seed=30 + dim)
    for _ in range(8):
        run.learn(3)
        for q in run.rng.normal(size=(3, dim)):
            theta = solved(q, run.raw)[1]
            inside = run.theta + (theta - run.theta) * (1 - 1e-7)  # a little towards the truth, into every set
            assert excess(run.theta, run.raw) < 0
            assert excess(inside, run.raw) < 0
            assert run.nested.split(q).value <= inside @ q + 1e-15


class ExactSets:
    """The ball and the ellipsoids of the first k observations, all in fifty digits."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.known: dict[int, tuple[Any, Any, Any]] = {}

    def lower(self, known: Ball | Ellipsoid, piece: Vector) -> Any:
        x = mpmath.matrix([mpmath.mpf(entry) for entry in piece.tolist()])
        if isinstance(known, Ball):
            return -mpmath.mpf(known.radius) * mpmath.sqrt((x.T * x)[0])
        if known.observations not in self.known:
            self.known[known.observations] = self.form(known.observations)
        inverse, center, radius = self.known[known.observations]
        return (center.T * x)[0] - radius * mpmath.sqrt((x.T * inverse * x)[0])

    def form(self, count: int) -> tuple[Any, Any, Any]:
        dim = self.run.dim
        rows = mpmath.matrix(np.array(self.run.rows[:count]).tolist())
        gram = mpmath.eye(dim) * mpmath.mpf(self.run.ridge) + rows.T * rows
        inverse = mpmath.inverse(gram)
        center = inverse * (rows.T * mpmath.matrix(self.run.rewards[:count]))
        s = self.run.settings
        noise, delta, ridge = mpmath.mpf(s.noise), mpmath.mpf(s.delta), mpmath.mpf(s.ridge)
        theta_bound, feature_bound = mpmath.mpf(s.theta_bound), mpmath.mpf(s.feature_bound)
        log_ratio = mpmath.log((1 + (count + 1) * feature_bound**2 / ridge) / delta)
        return inverse, center, noise * mpmath.sqrt(dim * log_ratio) + mpmath.sqrt(ridge) * theta_bound


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_value_of_a_split_is_proved_by_its_pieces_to_the_last_bit(dim: int) -> None:
    run = Run(dim=dim, seed=40 + dim, noise=0.03)
    exact = ExactSets(run)
    for _ in range(8):
        run.learn(4)
        for q in run.rng.normal(size=(6, dim)):
            split = run.nested.split(q)
            with mpmath.workdps(DIGITS):
                rest = mpmath.matrix(q.tolist())
                for _, piece in split.pieces:
                    rest -= mpmath.matrix(piece.tolist())
                missing = THETA * mpmath.norm(rest)  # what the pieces leave over of q, bounded by the ball
                proved = mpmath.fsum(exact.lower(known, piece) for known, piece in split.pieces) - missing
                assert split.value <= proved


@pytest.mark.parametrize(("dim", "noise"), [(1, 0.1), (2, 0.1), (2, 0.01), (5, 0.1), (5, 0.01)])
def test_the_interval_of_a_direction_never_widens(dim: int, noise: float) -> None:
    run = Run(dim=dim, seed=50 + dim, noise=noise)
    qs = run.rng.normal(size=(3, dim))
    lower, upper = np.array([run.nested.lower(q) for q in qs]), np.array([run.nested.upper(q) for q in qs])
    for _ in range(40):
        run.learn()
        now = np.array([run.nested.lower(q) for q in qs]), np.array([run.nested.upper(q) for q in qs])
        tolerance = 1e-7 * THETA * np.linalg.norm(qs, axis=1)
        assert (now[0] >= lower - tolerance).all()
        assert (now[1] <= upper + tolerance).all()
        lower, upper = np.maximum(lower, now[0]), np.minimum(upper, now[1])
    assert (upper - lower < 1.9 * THETA * np.linalg.norm(qs, axis=1)).all()  # and something was learned


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_optimistic_row_is_the_argmax_of_the_uppers_of_all_rows(dim: int) -> None:
    run = Run(dim=dim, seed=60 + dim)
    for _ in range(10):
        rows = run.rng.normal(size=(12, dim))
        uppers = [-solved(-row, run.raw)[0] for row in rows]
        best, highest = run.nested.optimistic(rows)
        assert best == int(np.argmax(uppers))
        assert highest == pytest.approx(max(uppers), rel=1e-7)
        run.learn(3)


@pytest.mark.parametrize("dim", [2, 5])
def test_the_first_of_equal_rows_is_the_optimistic_one(dim: int) -> None:
    run = Run(dim=dim, seed=70 + dim)
    for _ in range(8):
        rows = run.rng.normal(size=(6, dim))
        best = run.nested.optimistic(rows)[0]
        for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 4, 5, 3, 1]):
            doubled = np.vstack([rows[order], rows[order], rows[order]])
            assert run.nested.optimistic(doubled)[0] == order.index(best)
        run.learn(2)


def test_rows_that_differ_by_less_than_the_solver_can_tell_tie_on_the_first() -> None:
    run = Run(dim=3, seed=75)
    for _ in range(8):
        run.learn(3)
        row = run.rng.normal(size=3)
        row *= math.copysign(1.0, row @ run.theta)  # so that its upper bound is above 0
        for shares in ([1.0, 1 + 1e-12, 1 - 1e-12], [1 - 1e-12, 1.0], [1.0, 0.5, 1 + 1e-11]):
            assert run.nested.optimistic(np.outer(shares, row))[0] == 0
        assert run.nested.optimistic(np.outer([1.0, 1 + 1e-6], row))[0] == 1


def test_the_uppers_of_zero_rows_tie_on_the_first() -> None:
    run = Run(dim=2, seed=1).learn(4)
    assert run.nested.optimistic(np.zeros((3, 2))) == (0, 0.0)


def test_a_restored_nest_gives_the_same_values_to_the_bit() -> None:
    run = Run(dim=3, seed=80).learn(25)
    for q in run.rng.normal(size=(10, 3)):
        run.nested.lower(q)  # so that there is a working set to remember
    again = Nested(Ball(THETA), dim=3)
    again.restore({name: array.copy() for name, array in run.nested.state().items()})
    for _ in range(4):
        for q in run.rng.normal(size=(5, 3)):
            assert again.lower(q) == run.nested.lower(q)
            assert again.upper(q) == run.nested.upper(q)
        rows = run.rng.normal(size=(7, 3))
        assert again.optimistic(rows) == run.nested.optimistic(rows)
        run.learn()
        newest = run.nested.sets[-1]
        assert isinstance(newest, Ellipsoid)
        again.add(newest)
    assert [e.observations for e in again.ellipsoids()] == list(range(1, 30))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_sets_with_a_common_point_are_never_called_empty(dim: int) -> None:
    for seed in range(5):
        run = Run(dim=dim, seed=seed, noise=0.01)
        for _ in range(10):
            run.learn(3)
            assert excess(run.theta, run.raw) < 0  # the truth is one
            for q in run.rng.normal(size=(2, dim)):
                run.nested.split(q)
            assert not run.nested.is_empty


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_rewards_that_no_theta_explains_empty_the_nest_for_good(dim: int) -> None:
    run = Run(dim=dim, seed=3)
    run.theta *= 50.0  # far outside the ball
    run.learn(20)
    run.nested.lower(run.rng.normal(size=dim))
    assert run.nested.is_empty
    again = Nested(Ball(THETA), dim=dim)
    again.restore(run.nested.state())
    assert again.is_empty


def test_a_nest_without_ellipsoids_is_the_ball_and_survives_a_round_trip() -> None:
    nested = Nested(Ball(THETA), dim=2)
    again = Nested(Ball(THETA), dim=2)
    again.restore(nested.state())
    for q in (np.array([3.0, 4.0]), np.zeros(2)):
        assert nested.lower(q) == again.lower(q) == Ball(THETA).lower(q)
        assert nested.upper(q) == again.upper(q) == Ball(THETA).upper(q)
