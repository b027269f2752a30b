"""The lemmas of the paper on which its theorems rest, repaired where they slip; `surefoot.theory` offers them."""

import math

from surefoot import arrays
from surefoot.errors import ConfigError
from surefoot.theory_settings import CONSTANT_HINT, DIM_HINT, FEATURE_HINT, RIDGE_HINT


def elliptical_potential(count: int, *, dim: int, ridge: float, feature_bound: float) -> float:
    """Most that k feature rows can surprise a ridge regression: sum_k min(1, w^2) <= 2 d ln(1 + k D^2 / (lambda d)).

    Lemma 1. It holds for every lambda > 0 and every sequence of rows no longer than D.

    Parameters
    ----------
    count : int
        Number of rows, k.
    dim, ridge, feature_bound
        d, lambda and D.

    Returns
    -------
    float
        The bound on the sum.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> round(elliptical_potential(1000, dim=4, ridge=1.0, feature_bound=4.0), 4)
    66.3544
    """
    k = arrays.count("count", count, least=0, hint="It counts feature rows.")
    d = arrays.count("dim", dim, hint=DIM_HINT)
    ridge = arrays.positive("ridge", ridge, hint=RIDGE_HINT)
    reach = arrays.positive("feature_bound", feature_bound, hint=FEATURE_HINT) / math.sqrt(ridge)
    return 2 * d * math.log1p(k * reach * reach / d)


def lemma2_bound(c1: float, c2: float, c3: float) -> float:
    """Bound, over every m > 0, on g(m) = -c3 m + c1 sqrt(m) ln(c2 m).  (Lemma 2)

    16 c1^2 / (9 c3) ln^2(2 e c1 sqrt(c2) / c3) where c1 sqrt(c2) > c3, and 0 elsewhere.

    The printed proof takes m >= 2 and c2 > 1, to make g concave; in truth positive constants are enough. Where
    c2 m <= 1, g < 0. Beyond, g is concave with slope c1 sqrt(c2) - c3 at m = 1/c2. If that is not positive, g < 0
    everywhere: the bound is 0, whereas the printed log can be negative there and its square grow as c1 shrinks.
    If it is, the peak is interior, at some x = c3 sqrt(m) / (2 c1) > 0 where g = 4 c1^2 (x^2 - x) / c3, which is
    below 4 c1^2 x^2 / c3, and the paper's x <= (2/3) ln(2 e c1 sqrt(c2) / c3) holds.

    Parameters
    ----------
    c1, c2, c3 : float
        Positive constants.

    Returns
    -------
    float
        The bound.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> round(lemma2_bound(3.0, 5.0, 0.5), 4)
    588.8284
    >>> lemma2_bound(1.0, 4.0, 2.0)
    0.0
    """
    c1, c2, c3 = (arrays.positive(name, c, hint=CONSTANT_HINT) for name, c in (("c1", c1), ("c2", c2), ("c3", c3)))
    log_ratio = math.log(c1) + math.log(c2) / 2 - math.log(c3)
    if log_ratio <= 0:
        return 0.0
    return 16 * c1 / c3 * c1 / 9 * (log_ratio + 1 + math.log(2)) ** 2


def lemma3_bound(c1: float, c2: float) -> float:
    """Bound on every x > 0 with x <= c1 ln(c2 x): x <= 2 c1 ln(c1 c2).  (Lemma 3)

    It asks for ln(c1 c2) >= 1. That is no loss: below it, no x satisfies the inequality.

    Parameters
    ----------
    c1, c2 : float
        Positive constants.

    Returns
    -------
    float
        The bound on x.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> round(lemma3_bound(2.0, 3.0), 4)
    7.167
    """
    c1, c2 = (arrays.positive(name, c, hint=CONSTANT_HINT) for name, c in (("c1", c1), ("c2", c2)))
    log_product = math.log(c1) + math.log(c2)
    if log_product < 1:
        raise ConfigError(
            f"`ln(c1 * c2) >= 1` must hold, but got {c1=}, {c2=} with ln(c1 * c2) = {log_product:.6g}. "
            "Below 1 no x > 0 satisfies x <= c1 ln(c2 x), so there is nothing to bound."
        )
    return 2 * c1 * log_product
