"""The chi-square distribution of any number of degrees of freedom, a whole one or not.

With a = k / 2 for k degrees and h = x / 2, P(X <= x) is h^a e^-h / Gamma(a + 1) times the sum of
h^n / ((a + 1) ... (a + n)), whose terms are positive; beyond the mean P(X > x) is the same factor times a, times a
continued fraction.  (Abramowitz and Stegun, 6.5.29 and 6.5.31; Lentz's method)
"""

import math

TINY = 1e-300


def chi_square_tail(degrees: float, x: float) -> float:
    """P(X > x).

    >>> round(chi_square_tail(2, 9.21034), 6)
    0.01
    """
    if x <= 0.0:
        return 1.0
    half, order = x / 2, degrees / 2
    if math.isinf(half):
        return 0.0
    factor = math.exp(order * math.log(half) - half - math.lgamma(order + 1))
    if half < order + 1:
        return max(0.0, 1.0 - factor * _series(order, half))
    return min(1.0, factor * order * _fraction(order, half))


def _series(order: float, half: float) -> float:
    total = term = 1.0
    place = order
    while term > 1e-17 * total:
        place += 1.0
        term *= half / place
        total += term
    return total


def _fraction(order: float, half: float) -> float:
    """1 / (half + 1 - order - 1 (1 - order) / (half + 3 - order - 2 (2 - order) / ...))."""
    below = half + 1.0 - order
    above, inverse = 1.0 / TINY, 1.0 / below
    value, step, change = inverse, 0, 0.0
    while abs(change - 1.0) > 1e-16 and step < 100_000:
        step += 1
        part = -step * (step - order)
        below += 2.0
        inverse = 1.0 / (_apart(part * inverse + below))
        above = _apart(below + part / above)
        change = inverse * above
        value *= change
    return value


def _apart(value: float) -> float:
    return value if abs(value) > TINY else TINY


def chi_square_quantile(degrees: float, tail: float) -> float:
    """The x that X exceeds with probability `tail`, by bisection.

    >>> round(chi_square_quantile(1, 0.05), 4)
    3.8415
    """
    low, high = 0.0, float(degrees)
    while chi_square_tail(degrees, high) > tail:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        if chi_square_tail(degrees, middle) > tail:
            low = middle
        else:
            high = middle
    return high
