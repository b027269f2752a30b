"""The theorems against the inequalities that they are solved from, and against runs that beat them as printed."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings

from surefoot import theory
from surefoot.arrays import Matrix, Vector
from tests.theory.problems import PLAIN, beta, greedy_rows, problems, rounds_bound, setting, surprises


def inequality_5_6(M: Vector, p: dict[str, float]) -> Vector:
    """Right side of (thm5eq6), which the paper claims to be above alpha r_l (n_T - 1)."""
    c = p["gap"] + p["alpha"] * p["floor"]
    scale = p["B"] * math.sqrt(p["lam"]) + p["sigma"]
    right: Vector = -c * M + 8 * p["d"] * scale * np.log(2 * M * p["D"] ** 2 / (p["lam"] * p["delta"])) * np.sqrt(M)
    return right


def repaired_inequality(M: Vector, p: dict[str, float]) -> Vector:
    """What (thm5eq6) should have been simplified from: regret clipped, the gate's pessimism not."""
    c, radius = p["gap"] + p["alpha"] * p["floor"], beta(M, p)
    potential = 2 * p["d"] * np.log1p(M * p["D"] ** 2 / (p["lam"] * p["d"]))
    pessimism = 2 * radius * (np.sqrt(M - 1) + p["D"] / math.sqrt(p["lam"]))
    right: Vector = -c * M + np.maximum(1, 2 * radius) * np.sqrt(M * potential) + pessimism
    return right


LEARNER_ROUNDS = np.unique(np.round(np.geomspace(1, 1e17, 8_000)))


@pytest.mark.parametrize("inequality", [inequality_5_6, repaired_inequality])
@given(p=problems())
@settings(max_examples=200, deadline=None)
def test_theorem_2_dominates_its_inequality_over_every_m(
    inequality: Callable[[Vector, dict[str, float]], Vector], p: dict[str, float]
) -> None:
    most = 1 + inequality(LEARNER_ROUNDS, p).max() / (p["alpha"] * p["floor"])
    assert most <= rounds_bound(p, known=True) * (1 + 1e-12)


def theorem_2(p: dict[str, float], *, divided: bool) -> float:
    """The theorem as printed, and divided as docs/errata.md says."""
    c, scale = p["gap"] + p["alpha"] * p["floor"], p["B"] * math.sqrt(p["lam"]) + p["sigma"]
    log = math.log(64 * p["d"] * scale * p["D"] / (math.sqrt(p["lam"] * p["delta"]) * c))
    return 1 + 114 * (p["d"] * scale * log) ** 2 / c / (p["alpha"] * p["floor"] if divided else 1)


def test_theorem_2_as_printed_fails_for_want_of_the_division() -> None:
    p = setting(d=50, alpha=0.01, delta=0.02, sigma=0.7, lam=0.3, B=1.3, D=2.5, floor=0.4, gap=0.1)
    most = 1 + inequality_5_6(LEARNER_ROUNDS, p).max() / (p["alpha"] * p["floor"])
    assert theorem_2(p, divided=False) < most <= theorem_2(p, divided=True)


@pytest.mark.parametrize("ridge", [0.25, 0.6, 1.0])
def test_our_theorem_2_is_the_divided_one_where_ridge_is_at_least_a_quarter(ridge: float) -> None:
    p = setting(d=4, alpha=0.1, delta=0.001, sigma=1.0, lam=ridge, B=1.0, D=1.0, floor=0.5, gap=0.2)
    assert rounds_bound(p, known=True) == pytest.approx(theorem_2(p, divided=True), rel=1e-9)


def clucb_baseline_rounds(p: dict[str, float], features: Matrix, baseline: int, theta: Vector, rounds: int) -> int:
    """Algorithm 1, slowly, with fixed features; returns n_T."""
    rng, means = np.random.default_rng(11), features @ theta
    gram, b, played = p["lam"] * np.eye(2), np.zeros(2), np.zeros(2)
    learner = 0
    for t in range(1, rounds + 1):
        inverse, radius = np.linalg.inv(gram), beta(learner + 1, p) if learner else math.sqrt(p["lam"]) * p["B"]
        center = inverse @ b
        upper = features @ center + radius * np.sqrt(np.einsum("ij,jk,ik->i", features, inverse, features))
        x = features[np.argmax(upper)]
        q = played + x
        guaranteed = center @ q - radius * math.sqrt(q @ inverse @ q) + (t - 1 - learner) * means[baseline]
        if guaranteed >= (1 - p["alpha"]) * t * means[baseline]:
            played, learner = q, learner + 1
            gram, b = gram + np.outer(x, x), b + x * (x @ theta + p["sigma"] * rng.normal())
    return rounds - learner


def test_theorem_2_with_only_the_division_is_beaten_by_a_run_of_clucb() -> None:
    # beta < 1 and D^2 >> lambda: the ball alone keeps the gate shut for BD / (alpha r_b) rounds
    p = setting(d=2, alpha=0.02, delta=0.001, sigma=0.001, lam=1e-6, B=1.0, D=1.0, floor=0.5, gap=0.5)
    features = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 0.9]])
    played = clucb_baseline_rounds(p, features, baseline=1, theta=np.array([1.0, 0.0]), rounds=1_000)
    assert 2 * theorem_2(p, divided=True) < played <= rounds_bound(p, known=True)


def test_theorem_2_needs_the_unclipped_widths_even_where_beta_is_large() -> None:
    # before its first exploration CLUCB asks for alpha n r_b >= B D + (1 - alpha) r_b
    p = setting(d=2, alpha=0.5, delta=0.001, sigma=1e-9, lam=1e-14, B=5e6, D=1.0, floor=0.5, gap=0.5)
    needed = (p["B"] * p["D"] + (1 - p["alpha"]) * p["floor"]) / (p["alpha"] * p["floor"])
    assert beta(1, p) >= 0.5
    assert 10 * theorem_2(p, divided=True) < needed <= rounds_bound(p, known=True)


@pytest.mark.parametrize("ridge", [1e-6, 0.3, 6.25])
def test_the_gates_pessimism_is_at_most_sqrt_m_plus_reach(ridge: float) -> None:
    D = 2.5
    for rows in (greedy_rows(60, 4, ridge, D), np.tile([D, 0.0, 0.0, 0.0], (60, 1))):
        for m in (0, 1, 4, 59):
            q, gram = rows[: m + 1].sum(axis=0), ridge * np.eye(4) + rows[:m].T @ rows[:m]
            assert math.sqrt(q @ np.linalg.solve(gram, q)) <= (math.sqrt(m) + D / math.sqrt(ridge)) * (1 + 1e-9)


def theorem_4(p: dict[str, float]) -> float:
    """n_T as printed."""
    g = p["d"] * (p["B"] * math.sqrt(p["lam"]) + p["sigma"]) / (p["alpha"] * p["floor"])
    return 256 * g**2 * math.log(10 * g * math.sqrt(p["D"]) / (p["lam"] * p["delta"]) ** 0.25) ** 2 + 1


@given(p=problems())
@example(p=setting(d=2, alpha=0.99, delta=0.9, sigma=1e-6, lam=1.0, B=0.001, D=1.0, floor=1.0, gap=0.0))
@settings(max_examples=100, deadline=None)
def test_theorem_4_dominates_every_n_that_its_inequality_allows(p: dict[str, float]) -> None:
    earned = p["alpha"] * p["floor"]
    n = np.concatenate([np.arange(1.0, 20), np.geomspace(20, 1e18, 300)])[:, None]
    M = np.concatenate([np.arange(1.0, 20), np.geomspace(20, 1e18, 300)])[None, :]
    potential = 2 * p["d"] * np.log1p(M * p["D"] ** 2 / (p["lam"] * p["d"]))
    widths = 2 * np.maximum(beta(n + M, p), p["B"] * p["D"]) * np.sqrt(M * potential)
    allowed = (widths - earned * M >= earned * n).any(axis=1)
    most = n[allowed, 0].max() if allowed.any() else 0.0
    assert 1 + most <= rounds_bound(p, known=False) * (1 + 1e-12)


def test_theorem_4_is_the_printed_one_where_the_ball_is_small() -> None:
    p = setting(d=4, alpha=0.1, delta=0.001, sigma=1.0, lam=1.0, B=1.0, D=4.0, floor=0.5, gap=0.0)
    assert rounds_bound(p, known=False) == pytest.approx(theorem_4(p), rel=1e-9)


def test_theorem_4_as_printed_is_beaten_by_a_theta_that_no_baseline_round_rules_out() -> None:
    # theta* = (0.5, 0.8); the baseline shows the first coordinate, the optimistic action is the second one.
    p = setting(d=2, alpha=0.01, delta=0.001, sigma=1e-6, lam=1e-8, B=1.0, D=1.0, floor=0.5, gap=0.3)
    witness = np.array(
        [0.5, -math.sqrt(0.75)]
    )  # in the ball, and in every ellipsoid built of noiseless baseline rounds
    for n in (1, 10, 100, 1_000):
        gram = np.diag([p["lam"] + n, p["lam"]])
        away = witness - np.linalg.solve(gram, [0.5 * n, 0.0])
        assert math.sqrt(away @ gram @ away) <= beta(n + 1, p)
    # so while alpha n r_b < (1 - alpha) r_b - <witness, phi> the gate stays shut
    needed = ((1 - p["alpha"]) * 0.5 - witness[1]) / (p["alpha"] * 0.5)
    assert 10 * theorem_4(p) < needed <= rounds_bound(p, known=False)


@pytest.mark.parametrize("theta_bound", [1e-9, 1e-3, 0.03, 0.05])
def test_theorem_4_gives_away_three_rounds_where_lemma_3_has_no_solution(theta_bound: float) -> None:
    tiny = setting(dim=2, delta=0.99, noise=0.0, ridge=1.0, theta_bound=theta_bound, feature_bound=1.0)
    scale = max(theta_bound, theta_bound / math.sqrt(2 * math.log(6 / 0.99)))
    assert 96 * (2 * scale / 0.99) ** 2 / math.sqrt(0.99) < math.e
    assert theory.clucb2_conservative_rounds_bound(alpha=0.99, reward_floor=1.0, **tiny) == 3.0


@pytest.mark.parametrize(("ridge", "noise"), [(0.3, 0.05), (1.0, 1.0), (6.25, 0.2), (1e-6, 0.01)])
def test_lucb_bound_dominates_the_worst_widths_and_is_not_far_above(ridge: float, noise: float) -> None:
    T, D = 300, 2.5
    model = setting(dim=4, delta=0.05, noise=noise, ridge=ridge, theta_bound=0.4, feature_bound=D)
    radii = np.array([theory.radius(t, **model) for t in range(T)])
    regret = np.sum(np.minimum(1, 2 * radii * surprises(greedy_rows(T, 4, ridge, D), ridge)))
    bound = theory.lucb_regret_bound(T, **model)
    assert regret <= bound
    assert min(regret, T / 2) <= bound <= 30 * regret


def test_lucb_bound_is_tight_within_a_factor_2_in_its_first_rounds() -> None:
    model = setting(dim=6, delta=0.5, noise=0.01, ridge=4.0, theta_bound=0.22, feature_bound=2.0)
    regret = np.sum(np.minimum(1, 2 * theory.radius(0, **model) * surprises(greedy_rows(6, 6, 4.0, 2.0), 4.0)))
    assert regret <= theory.lucb_regret_bound(6, **model) <= 2 * regret


def test_the_printed_lucb_proposition_can_promise_no_regret_at_all() -> None:
    lam, D, d, m = 0.5, 1.0, 2, 1
    assert math.log(lam + m * D**2 / d) == 0  # and is the root of a negative number for any smaller ridge
    assert theory.lucb_regret_bound(1, **{**PLAIN, "dim": d, "ridge": lam}) >= 1
