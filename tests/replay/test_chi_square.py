"""Chi-square and normal probabilities against mpmath, to fifty digits."""

import mpmath
import pytest

from surefoot.replay.estimates import chi_square_quantile, chi_square_tail, normal_reach

mpmath.mp.dps = 50


@pytest.mark.parametrize("degrees", [0.3, 1, 2, 2.5, 3, 6, 7, 50, 61, 99.9, 1000, 2501])
def test_the_tail_is_exact_to_rounding(degrees: float) -> None:
    for factor in (1e-6, 0.3, 0.9, 1.0, 1.2, 2.0, 5.0):
        x = factor * degrees
        expected = mpmath.gammainc(mpmath.mpf(degrees) / 2, mpmath.mpf(x) / 2, regularized=True)
        assert chi_square_tail(degrees, x) == pytest.approx(float(expected), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("degrees", [0.7, 1, 2, 5, 50, 1000])
@pytest.mark.parametrize("tail", [0.9, 0.3, 0.05, 0.001, 1e-9])
def test_the_quantile_is_where_the_tail_says(degrees: float, tail: float) -> None:
    x = mpmath.mpf(chi_square_quantile(degrees, tail))
    assert float(mpmath.gammainc(mpmath.mpf(degrees) / 2, x / 2, regularized=True)) == pytest.approx(tail, rel=1e-11)


def test_the_tail_at_the_ends_of_the_line() -> None:
    assert chi_square_tail(3, 0.0) == chi_square_tail(4, -1.0) == 1.0
    assert chi_square_tail(3, float("inf")) == chi_square_tail(4, 1e308) == 0.0


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95, 0.999, 1 - 1e-12, 1 - 2**-53])
def test_a_normal_lies_within_its_reach_with_that_probability(level: float) -> None:
    outside = mpmath.erfc(mpmath.mpf(normal_reach(level)) / mpmath.sqrt(2))
    assert float(outside) == pytest.approx(1 - level, rel=1e-12)
