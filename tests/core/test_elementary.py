"""The core's own logarithms and exponentials against mpmath with 40 digits, and where they leave the numbers."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from surefoot.core import native as core

COUNT = 8_000
DIGITS = 40


def spread(low: float, high: float, count: int = COUNT) -> list[float]:
    """Numbers of every size between two bounds, both of one sign."""
    exponents = np.random.default_rng(1).uniform(math.log2(abs(low)), math.log2(abs(high)), count)
    return [math.copysign(float(2.0**exponent), low) for exponent in exponents]


def even(low: float, high: float, count: int = COUNT) -> list[float]:
    found: list[float] = np.random.default_rng(2).uniform(low, high, count).tolist()
    return found


def worst_error(own: Callable[[float], float], exact: Callable[..., mpmath.mpf], arguments: list[float]) -> float:
    """The largest error, in units of the last place of what is exact."""
    with mpmath.workdps(DIGITS):
        pairs = ((own(x), exact(mpmath.mpf(x))) for x in arguments)
        return max(float(abs(found - true) / mpmath.mpf(math.ulp(float(true)))) for found, true in pairs)


# The limits are what was measured over ten times as many arguments, rounded up.
@pytest.mark.parametrize(
    ("name", "arguments", "limit"),
    [
        ("log", spread(5e-324, 1.7e308) + even(0.5, 2.0), 1.0),
        ("log1p", spread(5e-324, 1e300) + spread(-5e-324, -0.999999) + even(-0.999, 2.0), 1.0),
        ("exp", even(-745.0, 709.7) + even(-2.0, 2.0) + spread(1e-20, 1.0) + spread(-1e-20, -1.0), 1.0),
        ("expm1", even(-60.0, 709.7) + even(-2.0, 2.0) + spread(1e-300, 1.0) + spread(-1e-300, -1.0), 1.5),
    ],
)
def test_the_error_is_that_of_the_last_place(name: str, arguments: list[float], limit: float) -> None:
    assert worst_error(getattr(core, name), getattr(mpmath, name), arguments) < limit


def test_a_logarithm_is_exact_where_it_can_be_and_a_wrong_one_is_seen() -> None:
    assert core.log(1.0) == 0.0
    assert worst_error(lambda x: core.log(x) * (1.0 + 4e-16), mpmath.log, spread(2.0, 1e300, 500)) > 1.5


@pytest.mark.parametrize("name", ["log", "log1p", "exp", "expm1"])
@pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan, 0.0, -0.0, -1.0, -2.0, 5e-324, -5e-324, 1e9, -1e9, 709.9])
def test_beyond_the_numbers_they_are_those_of_c(name: str, x: float) -> None:
    with np.errstate(all="ignore"):
        expected = float(getattr(np, name)(x))
    assert getattr(core, name)(x) == pytest.approx(expected, rel=1e-15, abs=0.0, nan_ok=True)
    if expected == 0.0:
        assert math.copysign(1.0, getattr(core, name)(x)) == math.copysign(1.0, expected)


def test_the_last_numbers_before_overflow_and_underflow_are_kept() -> None:
    assert core.exp(709.782712893384) == pytest.approx(1.797693134862273e308, rel=1e-13)
    assert core.exp(709.782712893385) == math.inf
    assert core.exp(-745.1332191019411) == 5e-324
    assert core.exp(-745.1332191019412) == 0.0


def quantile(p: float) -> mpmath.mpf:
    """By Newton's steps on the distribution function, in whose tail nothing cancels."""
    if p > 0.5:
        return -quantile(1 - mpmath.mpf(p))
    z = mpmath.mpf(core.normal_quantile(float(p)))
    for _ in range(3):
        z -= (mpmath.erfc(-z / mpmath.sqrt(2)) / 2 - p) / mpmath.npdf(z)
    return z


def test_the_normal_quantile_is_exact_to_a_part_in_a_trillion() -> None:
    chances = spread(5e-324, 0.5, 600) + even(0.0, 1.0, 600) + [1.0 - p for p in spread(2**-53, 0.4, 300)]
    with mpmath.workdps(DIGITS):
        errors = [abs(core.normal_quantile(p) / quantile(p) - 1) for p in chances]
    assert max(errors) < 2e-15


def test_the_normal_quantile_is_odd_and_ends_at_infinity() -> None:
    assert core.normal_quantile(0.5) == 0.0
    assert all(core.normal_quantile(p) == -core.normal_quantile(1.0 - p) for p in (0.25, 0.0625, 2.0**-40))
    assert (core.normal_quantile(0.0), core.normal_quantile(1.0)) == (-math.inf, math.inf)
    assert all(math.isnan(core.normal_quantile(p)) for p in (-0.1, 1.1, math.nan))
