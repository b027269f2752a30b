"""The five radii against slow references, and how often each of them covers the truth."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from surefoot.arrays import Matrix, Vector
from surefoot.core import native
from surefoot.linear.radius import RADII
from surefoot.linear.ridge import Ridge
from tests.linear.scoring import settings_with
from tests.safe_reference import Data, dual_lower, dual_root, radius

KINDS = ("paper", "logdet", "amm", "residual")
FALSE_ALARM = 1e-6
SHARES = native.SHARES


def settings_of(kind: str, data: Data) -> Any:
    return settings_with(
        noise=data.noise, delta=data.delta, ridge=data.ridge, theta_bound=data.theta_bound,
        feature_bound=data.feature_bound, radius=RADII[kind], misfit=data.misfit,
    )  # fmt: skip


def some_data(rng: np.random.Generator, dim: int, count: int, *, misfit: float = 0.0) -> Data:
    rows = rng.normal(size=(count, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * rng.uniform(1, 3, size=(count, 1))
    theta = rng.normal(size=dim)
    theta /= np.linalg.norm(theta)
    noise, ridge = float(rng.choice([0.1, 1.0])), float(rng.choice([0.3, 1.0, 2.5]))
    rewards = rows @ theta + noise * rng.normal(size=count)
    return Data(rows, rewards, noise, float(rng.choice([0.01, 0.2])), ridge, 1.3, 1.0, misfit)


def state_of(data: Data) -> Ridge:
    state = Ridge(dim=data.rows.shape[1], ridge=data.ridge)
    for row, reward in zip(data.rows, data.rewards.tolist(), strict=True):
        state.observe(row, reward)
    return state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [1, 2, 4, 20])
def test_a_radius_is_what_its_formula_says(kind: str, dim: int) -> None:
    rng = np.random.default_rng([dim, RADII[kind]])
    for number, count in enumerate([0, 1, 3, 30, 70] * 3):
        data = some_data(rng, dim, count, misfit=(0.0, 0.05)[number % 2])
        found, exact = state_of(data).core.radius(settings_of(kind, data)), radius(kind, data)
        # Rounding that each surprise may hide is in the residual radius for good, so that one lies a little above.
        assert exact * (1 - 1e-9) <= found <= exact * (1 + (1e-7 if kind == "residual" else 1e-9))


def test_amm_is_never_larger_than_logdet() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        data = some_data(rng, int(rng.integers(1, 8)), int(rng.integers(0, 40)))
        state = state_of(data).core
        amm, logdet = (state.radius(settings_of(kind, data)) for kind in ("amm", "logdet"))
        assert amm <= logdet * (1 + 1e-15)


# ---------------------------------------------------------------------------------- dual


def is_refuted(data: Data, q: Vector) -> bool:
    return state_of(data).core.choose_dual(settings_of("dual", data), q) is None


def chosen(data: Data, q: Vector) -> tuple[float, Vector, Matrix]:
    """Radius, center and whitener of the set that is chosen for q."""
    beta, center, whitener = state_of(data).core.choose_dual(settings_of("dual", data), q)
    return beta, center, whitener


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_dual_bounds_a_question_by_the_best_ridge_of_its_grid(dim: int) -> None:
    rng = np.random.default_rng(dim)
    used = set()
    for count in [1, 5, 40, 90] * 4:
        data = some_data(rng, dim, count)
        for q in (rng.normal(size=dim), data.rows[0], data.rows.sum(axis=0)):
            beta, center, whitener = chosen(data, q)
            values = [dual_lower(q, share * data.ridge, data) for share in SHARES]
            lower = float(center @ q) - beta * float(np.linalg.norm(whitener @ q))
            best = max(values)
            assert best - 1e-6 * (1 + abs(best)) <= lower <= best + 1e-12 * (1 + abs(best))
            used.add(SHARES[int(np.argmax(values))])
    assert len(used) > 1, "several ridges must have been best for something"


def test_dual_at_the_policys_own_ridge_is_amm() -> None:
    rng = np.random.default_rng(5)
    assert SHARES[0] == 1.0
    for _ in range(100):
        data = some_data(rng, int(rng.integers(1, 6)), int(rng.integers(1, 60)))
        assert dual_root(data.ridge, data) == pytest.approx(radius("amm", data) ** 2, rel=1e-9)
        q = rng.normal(size=(data.rows.shape[1],))
        beta, center, whitener = chosen(data, q)
        lower = float(center @ q) - beta * float(np.linalg.norm(whitener @ q))
        spread = radius("amm", data) * math.sqrt(q @ np.linalg.solve(data.gram(), q))
        amm = float(data.theta() @ q) - spread
        assert lower >= amm - 1e-9 * (1 + abs(amm))


def test_a_negative_root_is_an_alarm_and_honest_data_give_none() -> None:
    rng = np.random.default_rng(6)
    rung = 0
    for _ in range(200):
        data, q = some_data(rng, 2, 30), rng.normal(size=2)
        assert not is_refuted(data, q)
        far = Data(data.rows, data.rewards + 40 * data.rows[:, 0], data.noise, data.delta, data.ridge, 1.3)
        least = min(dual_root(share * far.ridge, far) for share in SHARES)
        size = float(far.rewards @ far.rewards)
        if least < -1e-4 * size:
            assert is_refuted(far, q)
            rung += 1
        elif least > 0:
            assert not is_refuted(far, q)
    assert rung > 50


# ---------------------------------------------------------------------------------- coverage


def one_arm(rng: np.random.Generator, state: Ridge, theta: Vector) -> Vector:
    row = np.zeros(theta.size)
    row[0] = 1.0
    return row


def overestimated(rng: np.random.Generator, state: Ridge, theta: Vector) -> Vector:
    """The row of a random few of which the estimate thinks too well, by the most."""
    rows = rng.normal(size=(8, theta.size))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    row: Vector = rows[np.argmax(rows @ (state.theta - theta))]
    return row


def spread_out(rng: np.random.Generator, state: Ridge, theta: Vector) -> Vector:
    row = rng.normal(size=theta.size)
    return np.asarray(row / np.linalg.norm(row))


def misses(
    kind: str,
    pick: Callable[[np.random.Generator, Ridge, Vector], Vector],
    *,
    runs: int,
    rounds: int,
    dim: int,
    delta: float = 0.1,
    mean: float | None = None,
    misfit: float = 0.0,
    late: bool = False,
) -> tuple[int, int]:
    """In how many runs theta ever leaves the set, and a set 30 percent too small; coins where a `mean` is given."""
    rng = np.random.default_rng([RADII[kind], dim, rounds, late, round(100 * misfit)])
    missed = np.zeros(2, dtype=int)
    for _ in range(runs):
        theta = rng.normal(size=dim)
        theta *= 0.005 / np.linalg.norm(theta)
        if mean is not None:
            theta = np.full(dim, mean)
        data = Data(
            np.zeros((0, dim)), np.zeros(0), 1.0 if mean is None else 0.5, delta, 1.0, float(np.linalg.norm(theta)),
            1.0, misfit,
        )  # fmt: skip
        settings, state, waiting, failed = settings_of(kind, data), Ridge(dim=dim, ridge=1.0), [], 0.0
        gram = np.eye(dim)
        take_in, beta_of = state.core.absorb, state.core.radius
        for _ in range(rounds):
            row = pick(rng, state, theta)
            truth = float(row @ theta)
            bias = misfit * math.copysign(1.0, float(row @ (state.theta - theta)))
            reward = truth + bias + rng.normal() if mean is None else float(rng.random() < truth)
            waiting.append((row, reward))
            if late and len(waiting) < 8:
                continue
            newest = waiting.pop(int(rng.integers(len(waiting)))) if late else waiting.pop()
            take_in(*newest)
            gram += np.outer(newest[0], newest[0])
            gap = state.theta - theta
            failed = max(failed, float(gap @ gram @ gap) / beta_of(settings) ** 2)
        missed += failed > 1 + 1e-9, failed > 0.7**2
    return int(missed[0]), int(missed[1])


def most_allowed(runs: int, delta: float = 0.1) -> int:
    return int(binom.isf(FALSE_ALARM, runs, delta))


@pytest.mark.parametrize("kind", KINDS)
def test_theta_stays_in_the_set_under_heavy_use_of_one_arm_and_leaves_it_if_shrunk(kind: str) -> None:
    """The same runs with a radius 30 percent too small exceed the limit: the test can fail."""
    runs, dim = (1500, 2) if kind == "paper" else (500, 1)
    missed, missed_if_shrunk = misses(kind, one_arm, runs=runs, rounds=60, dim=dim)
    assert missed <= most_allowed(runs) < missed_if_shrunk


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dim", "rounds", "runs"), [(2, 40, 200), (50, 60, 80)])
def test_theta_stays_in_the_set_where_features_are_chosen_against_it(
    kind: str, dim: int, rounds: int, runs: int
) -> None:
    assert misses(kind, overestimated, runs=runs, rounds=rounds, dim=dim)[0] <= most_allowed(runs)


@pytest.mark.parametrize("kind", KINDS)
def test_theta_stays_in_the_set_of_rare_coins(kind: str) -> None:
    dim = 2 if kind == "paper" else 1
    assert misses(kind, one_arm, runs=200, rounds=80, dim=dim, mean=0.02)[0] <= most_allowed(200)


@pytest.mark.parametrize("kind", KINDS)
def test_theta_stays_in_the_set_of_late_rewards_in_any_order(kind: str) -> None:
    assert misses(kind, overestimated, runs=200, rounds=40, dim=2, late=True)[0] <= most_allowed(200)


@pytest.mark.parametrize("kind", ["paper", "logdet", "amm"])
def test_theta_stays_in_the_set_of_a_misspecified_world(kind: str) -> None:
    """Every reward is off by epsilon, always in the direction in which the estimate errs already."""
    assert misses(kind, spread_out, runs=150, rounds=80, dim=2, misfit=0.5)[0] <= most_allowed(150)


def test_rounding_only_ever_widens_the_radius() -> None:
    data = some_data(np.random.default_rng(3), 3, 50)
    state = state_of(data).core
    for kind in KINDS:
        beta = state.radius(settings_of(kind, data))
        assert beta <= state.guarded_radius(beta) <= beta * (1 + 1e-6)


def test_radii_that_were_computed_ahead_are_those_of_the_settings_as_they_are() -> None:
    settings = settings_with(
        noise=0.7, delta=0.02, ridge=0.3, theta_bound=1.3, feature_bound=2.5, radius=RADII["paper"]
    )
    core = native.CLUCB4(4, settings)
    x = np.array([0.5, -1.0, 0.25, 2.0]).tobytes()
    for count in range(40):
        assert core.radius == native.paper_radius(count, 4, core.settings)
        if count == 21:  # in the midst of a group of eight
            for name in ("noise", "delta", "ridge", "theta_bound", "feature_bound"):
                setattr(core.settings, name, 1.5 * getattr(core.settings, name))
                assert core.radius == native.paper_radius(count, 4, core.settings)
        core.learn(x, 0.5, True)
