"""The chi-square distribution of a whole number of degrees of freedom, by sums of positive terms.

With h = x / 2 and k degrees of freedom, P(X > x) is the sum of h^p e^-h / Gamma(p + 1) over p = 0, 1, ... below k / 2
where k is even, and over p = 1/2, 3/2, ... and with erfc(sqrt(h)) where it is odd.  (Abramowitz and Stegun, 26.4.4-5)
"""

import math


def chi_square_tail(degrees: int, x: float) -> float:
    """P(X > x).

    >>> round(chi_square_tail(2, 9.21034), 6)
    0.01
    """
    if x <= 0.0:
        return 1.0
    half = x / 2
    if math.isinf(half):
        return 0.0
    odd = degrees % 2
    powers = (index + odd / 2 for index in range((degrees - odd) // 2))
    terms = (math.exp(p * math.log(half) - half - math.lgamma(p + 1)) for p in powers)
    return math.fsum([math.erfc(math.sqrt(half)) if odd else 0.0, *terms])


def chi_square_quantile(degrees: int, tail: float) -> float:
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
