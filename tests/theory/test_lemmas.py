"""The lemmas against brute force and bisection."""

import math
import re

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surefoot import theory
from surefoot.arrays import Vector
from surefoot.errors import ConfigError
from tests.theory.problems import greedy_rows, log_uniform, surprises


@pytest.mark.parametrize("ridge", [1e-7, 0.3, 1.0, 6.25, 1e9])
@pytest.mark.parametrize("kind", ["random", "greedy", "same", "growing"])
def test_no_sequence_surprises_more_than_lemma_1_allows(kind: str, ridge: float) -> None:
    rng, D, dim = np.random.default_rng(7), 2.5, 3
    random = rng.normal(size=(200, dim))
    rows = {
        "random": D * random / np.linalg.norm(random, axis=1, keepdims=True),
        "greedy": greedy_rows(200, dim, ridge, D),
        "same": np.tile([0.0, D, 0.0], (200, 1)),
        "growing": D * np.geomspace(1e-6, 1, 200)[:, None] * np.tile(np.eye(dim), (67, 1))[:200],
    }[kind]
    total = np.cumsum(np.minimum(1, surprises(rows, ridge) ** 2))
    for k in (0, 1, 2, 3, 10, 200):
        bound = theory.elliptical_potential(k, dim=dim, ridge=ridge, feature_bound=D)
        assert (total[k - 1] if k else 0.0) <= bound * (1 + 1e-12)


def test_lemma_1_would_fail_without_its_factor_2() -> None:
    total = np.sum(np.minimum(1, surprises(greedy_rows(5, 5, 4.0, 2.0), 4.0) ** 2))
    bound = theory.elliptical_potential(5, dim=5, ridge=4.0, feature_bound=2.0)
    assert bound / 2 < total <= bound


def lemma2_left(m: Vector, c1: float, c2: float, c3: float) -> Vector:
    left: Vector = -c3 * m + c1 * np.sqrt(m) * np.log(c2 * m)
    return left


@given(log_uniform(1e-4, 1e6), log_uniform(1e-6, 1e9), log_uniform(1e-6, 1e4))
@example(1.0, 1.0, 1.0)
@example(1.0, 0.25, 0.5 / math.e)
@settings(max_examples=150, deadline=None)
def test_lemma_2_dominates_its_left_side_for_all_positive_constants(c1: float, c2: float, c3: float) -> None:
    m = np.geomspace(1e-10, 1e30, 20_000)  # far beyond the paper's m >= 2 and c2 > 1, which are not needed
    left = lemma2_left(m, c1, c2, c3)
    near = m[np.argmax(left)] * np.geomspace(0.98, 1.02, 401)
    peak = max(left.max(), lemma2_left(near, c1, c2, c3).max())
    assert peak <= theory.lemma2_bound(c1, c2, c3) * (1 + 1e-12)


@pytest.mark.parametrize(("c1", "c2", "c3"), [(3.0, 5.0, 0.5), (800.0, 2000.0, 0.004), (1.5, 0.04, 0.1)])
def test_lemma_2_is_the_printed_formula_where_the_left_side_can_be_positive(c1: float, c2: float, c3: float) -> None:
    a, b, c = (mpmath.mpf(x) for x in (c1, c2, c3))
    printed = 16 * a**2 / (9 * c) * mpmath.log(2 * a * mpmath.sqrt(b) * mpmath.e / c) ** 2
    assert theory.lemma2_bound(c1, c2, c3) == pytest.approx(float(printed), rel=1e-13)


def test_lemma_2_loses_no_more_than_its_proof_does() -> None:
    # x is at most 2/3 of the log where it is nearly 1/2 of it: a loss of 16/9 and little more
    c1, c2, c3 = 1e80, 1.0, 1e-20
    root = mpmath.findroot(lambda x: 4 * x - 2 * mpmath.log(x) - 2 * mpmath.log(2 * c1 * mpmath.e / c3), 120)
    peak = 4 * mpmath.mpf(c1) ** 2 / c3 * (root**2 - root)
    assert 1 < theory.lemma2_bound(c1, c2, c3) / peak < 2


@pytest.mark.parametrize("c1", [1e-9, 0.01, 0.5, 1.0])
def test_lemma_2_is_zero_where_the_left_side_is_negative_for_every_m(c1: float) -> None:
    assert lemma2_left(np.geomspace(1e-9, 1e9, 10_000), c1, 4.0, 2.0).max() < 0
    assert theory.lemma2_bound(c1, 4.0, 2.0) == 0


def test_the_printed_lemma_2_grows_again_where_its_log_turns_negative() -> None:
    log_of_zero = 1 / (2 * math.e)  # c1 sqrt(c2) / c3 at which the printed bound is zero
    printed = [(ratio * math.log(2 * math.e * ratio)) ** 2 for ratio in (log_of_zero, log_of_zero / 2)]
    assert printed[0] < 1e-30 < printed[1]


@given(log_uniform(1e-6, 1e6), st.floats(1.0, 60.0))
@settings(max_examples=150, deadline=None)
def test_lemma_3_bounds_the_largest_solution_within_a_factor_2(c1: float, log_product: float) -> None:
    c2 = math.exp(log_product + 1e-9) / c1
    low, high = c1, c1 * 1e9  # x - c1 ln(c2 x) grows beyond x = c1, from a value <= 0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle <= c1 * math.log(c2 * middle) else (low, middle)
    assert low <= theory.lemma3_bound(c1, c2) <= 2 * high * (1 + 1e-9)


@pytest.mark.parametrize("product", [0.1, 1.0, 2.7182])
def test_lemma_3_refuses_where_there_is_nothing_to_bound(product: float) -> None:
    x = np.geomspace(1e-9, 1e9, 100_000)
    assert not np.any(x <= 5.0 * np.log(product / 5.0 * x))
    with pytest.raises(ConfigError, match=re.escape("`ln(c1 * c2) >= 1` must hold") + ".*no x > 0 satisfies"):
        theory.lemma3_bound(5.0, product / 5.0)
