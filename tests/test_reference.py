"""The slow reference held to arithmetic done by hand and to brute force; nothing here calls the package."""

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.reference import (
    SlowCLUCB,
    SlowCLUCB2,
    SlowConservativeUCB,
    SlowLUCB,
    SlowUCB,
    radius,
)

Vector = npt.NDArray[np.float64]

# Odd on purpose: at ridge = 1 an inverse may be missing, at theta_bound = 1 or feature_bound = 1 a square may.
SETTINGS: dict[str, Any] = {
    "dim": 2,
    "delta": 0.05,
    "noise": 0.013,
    "ridge": 0.3,
    "theta_bound": 0.5,
    "feature_bound": 1.7,
}
ALPHA = 0.01

# One observation of 0.7 at x = (0.6, 0) gives V = diag(0.3 + 0.36, 0.3) and theta_hat = (0.6 * 0.7 / 0.66, 0).
CENTER = 0.42 / 0.66
BETA_ONE = 0.013 * math.sqrt(2 * math.log((1 + 2 * 1.7**2 / 0.3) / 0.05)) + math.sqrt(0.3) * 0.5


def test_radius_counts_the_next_observation_too() -> None:
    # k = 2: 0.2 sqrt(3 log((1 + 3 * 4 / 0.5) / 0.1)) + sqrt(0.5) * 3, and (1 + 24) / 0.1 = 250
    by_hand = 0.2 * math.sqrt(3 * math.log(250)) + 3 * math.sqrt(0.5)
    assert radius(2, dim=3, delta=0.1, noise=0.2, ridge=0.5, theta_bound=3, feature_bound=2) == pytest.approx(by_hand)


def test_clucb_by_hand() -> None:
    policy = SlowCLUCB(alpha=ALPHA, **SETTINGS)
    rows = [[0.6, 0.0], [0.0, 0.4]]

    # Round 1 knows the ball only: uppers 0.5 * (0.6, 0.4), L = -0.3, and the gate asks for 0.99 * 40.
    first = policy.decide(rows, 1, 40.0)
    assert first.upper == pytest.approx([0.3, 0.2])
    assert (first.round, first.action, first.source, first.proposal) == (1, 1, "baseline", 0)
    assert (first.guaranteed, first.required) == pytest.approx((-0.3, 39.6))
    policy.observe(first, 123.0)  # a baseline round teaches nothing
    assert policy.upper([0.6, 0.0]) == pytest.approx(0.3)

    # Round 2: -0.3 + 40 against 0.99 * 40.1 = 39.699, a pass by 0.001.
    second = policy.decide(rows, 1, 0.1)
    assert (second.action, second.source) == (0, "learner")
    assert (second.guaranteed, second.required) == pytest.approx((39.7, 39.699))
    policy.observe(second, 0.7)

    # Round 3 has one observation (the baseline's is not in k), the ellipsoid alone, and z = (0.6, 0).
    third = policy.decide(rows, 1, 0.25)
    along, across = BETA_ONE / math.sqrt(0.66), BETA_ONE / math.sqrt(0.3)
    assert third.upper == pytest.approx([0.6 * (CENTER + along), 0.4 * across])
    assert third.guaranteed == pytest.approx(1.2 * (CENTER - along) + 40.0)
    assert third.required == pytest.approx(0.99 * 40.35)
    assert (third.action, third.source) == (0, "learner")
    assert across > 0.5  # so the ball, were it still there, would have shown


@pytest.mark.parametrize("reward_floor", [0.0, 0.7])
@pytest.mark.parametrize("nesting", ["latest", "exact"])
def test_clucb2_by_hand(nesting: Any, reward_floor: float) -> None:
    policy = SlowCLUCB2(alpha=ALPHA, nesting=nesting, reward_floor=reward_floor, **SETTINGS)

    # Round 1: L = -0.5 * 0.8 for the longest row, R = 0.5 * 0.6 for the baseline's.
    first = policy.decide([[0.6, 0.0], [0.0, 0.8]], 0)
    assert (first.action, first.source, first.proposal) == (0, "baseline", 1)
    assert (first.guaranteed, first.required) == pytest.approx((-0.4, 0.99 * 0.3))
    policy.observe(first, 0.7)  # baseline rounds teach here

    # Round 2 looks along the first axis only, where both sets are intervals: the ellipsoid's, or that cut at 0.5.
    low, high = CENTER - BETA_ONE / math.sqrt(0.66), CENTER + BETA_ONE / math.sqrt(0.66)
    assert -0.5 < low < 0.5 < high
    high = min(high, 0.5) if nesting == "exact" else high
    second = policy.decide([[0.03, 0.0], [0.9, 0.0], [-0.2, 0.0]], 0)
    assert second.upper == pytest.approx([0.03 * high, 0.9 * high, -0.2 * low], abs=1e-8)
    w_bound = max(0.6 * low, 1 * reward_floor)
    assert second.guaranteed == pytest.approx(0.9 * low + 0.01 * w_bound, abs=1e-8)
    assert second.required == pytest.approx(0.99 * 0.03 * high, abs=1e-8)
    assert (second.action, second.source, second.proposal) == (1, "learner", 1)

    # Round 3, the reward still out: the same set, z = (0.9, 0), v = (0.03, 0), w and n as they were.
    third = policy.decide([[0.5, 0.0], [0.1, 0.0]], 1)
    assert third.guaranteed == pytest.approx((0.9 + 0.5) * low + 0.01 * w_bound, abs=1e-8)
    assert third.required == pytest.approx(0.99 * (0.03 + 0.1) * high, abs=1e-8)


def test_lucb_plays_the_widest_row_and_counts_it_before_its_reward() -> None:
    policy = SlowLUCB(**SETTINGS)
    first = policy.decide([[0.1, 0.0], [0.3, 0.4], [0.4, -0.3]])
    assert (first.action, first.source, first.required) == (1, "learner", -math.inf)  # a tie: the first
    second = policy.decide([[0.3, 0.4]])
    assert second.guaranteed == pytest.approx(-0.5 * 1.0)  # z counts round 1, the set is still the ball
    policy.observe(second, 0.2)
    policy.observe(first, 0.3)  # out of order: the same data, the same set
    # V = 0.3 I + 2 x x^T with ||x|| = 0.5 has the eigenvalue 0.8 along x.
    beta = radius(2, **SETTINGS)
    assert policy.upper([0.3, 0.4]) == pytest.approx(0.25 * 0.5 / 0.8 + beta * 0.5 / math.sqrt(0.8))


TRUE_THETA = np.array([0.3, 0.25])
QUESTIONS = [(1.0 + k) * np.array([math.cos(k * math.pi / 6), math.sin(k * math.pi / 6)]) for k in range(12)]


def _short_run(nesting: Any) -> tuple[SlowCLUCB2, list[list[tuple[float, float]]]]:
    """Twelve rounds whose noise swings from up to down, so that old ellipsoids keep cutting."""
    rng = np.random.default_rng(20240611)
    policy = SlowCLUCB2(alpha=0.2, nesting=nesting, **{**SETTINGS, "noise": 0.02})
    intervals = []
    for t in range(12):
        intervals.append([(policy.lower(q), policy.upper(q)) for q in QUESTIONS])
        rows = rng.uniform(-0.2, 1.0, size=(4, 2))
        decision = policy.decide(rows, int(np.argsort(rows @ TRUE_THETA)[-2]))
        policy.observe(decision, float(rows[decision.action] @ TRUE_THETA) + (0.15 if t < 6 else -0.15))
    return policy, intervals


def test_the_exact_nested_interval_never_widens() -> None:
    _, exact = _short_run("exact")
    _, latest = _short_run("latest")
    for before, after in itertools.pairwise(exact):
        for (low, high), (next_low, next_high) in zip(before, after, strict=True):
            assert low <= next_low + 1e-7
            assert next_high <= high + 1e-7
    widths = np.array([[high - low for low, high in interval] for interval in latest])
    assert np.diff(widths, axis=0).max() > 0.01  # the newest ellipsoid alone does widen here


def _boundary(policy: SlowCLUCB2, angles: int) -> Vector:
    """Points on the boundary of the nested set: from the true theta, each ray stops at the first wall it meets."""
    turn = np.linspace(0.0, 2 * math.pi, angles, endpoint=False)
    rays = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    walls = [(np.eye(2), np.zeros(2), 0.5)]
    V, xy = 0.3 * np.eye(2), np.zeros(2)
    for k, (number, y) in enumerate(policy.rewards, start=1):
        x = policy.rounds[number - 1].phi_a
        V, xy = V + np.outer(x, x), xy + x * y
        beta = 0.02 * math.sqrt(2 * math.log((1 + (k + 1) * 1.7**2 / 0.3) / 0.05)) + math.sqrt(0.3) * 0.5
        walls.append((V, np.linalg.inv(V) @ xy, beta))
    reach = np.full(angles, np.inf)
    for V, center, beta in walls:
        # ||TRUE_THETA + s ray - center||_V = beta, a quadratic in s
        offset = TRUE_THETA - center
        a, b, c = np.sum((rays @ V) * rays, axis=1), rays @ V @ offset, offset @ V @ offset - beta**2
        assert c < 0  # the true theta is inside
        reach = np.minimum(reach, (-b + np.sqrt(b * b - a * c)) / a)
    points: Vector = TRUE_THETA + reach[:, None] * rays
    return points


def test_lower_and_upper_over_the_nested_set_agree_with_brute_force() -> None:
    policy, _ = _short_run("exact")
    points = _boundary(policy, 100_000)
    gains = []
    for q in QUESTIONS:
        values, low, high = points @ q, policy.lower(q), policy.upper(q)
        assert low == pytest.approx(values.min(), abs=1e-4)  # at a corner the rays miss by their spacing
        assert high == pytest.approx(values.max(), abs=1e-4)
        assert low <= values.min() + 1e-9
        assert high >= values.max() - 1e-9
        gains.append(low - max(e.lower(q) for e in policy.nested_sets()))
    assert max(gains) > 0.01  # the intersection is tighter than its best member, or this test shows nothing


def test_clucb2_refuses_an_empty_nested_set() -> None:
    policy = SlowCLUCB2(alpha=ALPHA, **SETTINGS)
    policy.observe(policy.decide([[1.0, 0.0]], 0), 100.0)  # no theta in the ball pays that
    with pytest.raises(ArithmeticError, match="no minimum over 2 ellipsoids"):
        policy.lower([1.0, 0.0])


def test_ucb1_by_hand() -> None:
    policy = SlowUCB(3)
    first, second = policy.decide(), policy.decide()
    policy.observe(second, 0.9)
    third, fourth = policy.decide(), policy.decide()
    assert [d.action for d in (first, second, third, fourth)] == [0, 1, 2, 0]  # 0 and 2 unseen, both played once
    policy.observe(fourth, 0.2)
    policy.observe(third, 0.5)
    policy.observe(first, 0.4)
    fifth = policy.decide()
    bonus = math.sqrt(2 * math.log(5))
    assert fifth.upper == pytest.approx([0.3 + bonus / math.sqrt(2), 0.9 + bonus, 0.5 + bonus])
    assert (fifth.action, fifth.source) == (1, "learner")


def test_conservative_ucb_with_a_known_default_saves_up_before_it_explores() -> None:
    policy = SlowConservativeUCB(3, alpha=0.25, delta=0.1, noise=0.1, baseline_reward=0.5)
    decisions = [policy.decide(2) for _ in range(4)]
    # After three default rounds the fourth may earn nothing at all: 3 mu_0 >= 0.75 * 4 mu_0.
    assert [d.action for d in decisions] == [2, 2, 2, 0]
    assert [d.source for d in decisions] == ["baseline"] * 3 + ["learner"]
    assert (decisions[3].guaranteed, decisions[3].required) == (1.5, 1.5)
    policy.observe(decisions[3], 1.4)

    # Two other arms, one observation: psi = 2 * 0.01 * ln(2 zeta(3) / 0.1), zeta(3) = 1.2020569...
    fifth = policy.decide(2)
    width = math.sqrt(0.02 * math.log(24.041138063191886))
    assert fifth.upper == pytest.approx([1.4 + width, math.inf, 0.5])
    assert fifth.proposal == 1
    assert (fifth.guaranteed, fifth.required) == pytest.approx((1.4 - width + 3 * 0.5, 0.75 * 5 * 0.5))
    assert (fifth.action, fifth.source) == (1, "learner")
    policy.observe(fifth, 0.01)

    # Arm 1's lower bound is cut at 0. Arm 0 is J from here on, and its plays count before their rewards come.
    sixth, seventh = policy.decide(2), policy.decide(2)
    assert (sixth.action, seventh.action) == (0, 0)
    assert sixth.guaranteed == pytest.approx((1 + 1) * (1.4 - width) + 3 * 0.5)
    assert seventh.guaranteed == pytest.approx((2 + 1) * (1.4 - width) + 3 * 0.5)
    policy.observe(seventh, 1.2)
    two_seen = math.sqrt(0.02 * math.log(24.041138063191886 * 8) / 2)  # psi(2) = 2 * 0.01 * ln(c 2^3 / 0.1)
    assert policy.decide(2).upper[0] == pytest.approx(1.3 + two_seen)


def test_conservative_ucb_with_an_unknown_default_takes_its_worse_bound() -> None:
    policy = SlowConservativeUCB(2, alpha=0.5, delta=0.1, noise=0.1)
    first = policy.decide(0)
    # J = the default, c0 = 1 - 0.5 >= 0: its lower bound, 0 before any reward, passes.
    assert (first.proposal, first.source, first.guaranteed, first.required) == (0, "learner", 0.0, 0.0)
    policy.observe(first, 0.8)
    second = policy.decide(0)  # J = 1, c0 = 1 - 1 = 0
    assert (second.action, second.source) == (1, "learner")
    third = policy.decide(0)  # J = 1 again, its reward still out; c0 = 1 - 1.5 < 0: the default's upper bound
    theta_0 = 0.8 + math.sqrt(0.02 * math.log(3 * 1.2020569031595942 / 0.1))
    assert third.proposal == 1
    assert (third.guaranteed, third.required) == pytest.approx((theta_0, 1.5 * theta_0))
    assert (third.action, third.source) == (0, "baseline")


def test_conservative_ucb_fails_the_gate_while_the_default_is_unbounded() -> None:
    policy = SlowConservativeUCB(3, alpha=0.1, delta=0.1)
    first = policy.decide(1)  # J = 0, and nothing is known about arm 1
    assert (first.proposal, first.action, first.source) == (0, 1, "baseline")
    assert (first.guaranteed, first.required) == (0.0, math.inf)
