"""Sums and products together with what their rounding lost, so that a million terms leave no error behind."""

from surefoot.arrays import Vector
from surefoot.compiled import compiled


@compiled
def two_sum(total: float, term: float) -> tuple[float, float]:
    """total + term as a float, and what that rounding lost.  (Knuth)"""
    both = total + term
    # Holds in this order only, so never compile it with reordered sums.
    kept = both - total
    return both, (total - (both - kept)) + (term - kept)


@compiled
def two_product(x: float, y: float) -> tuple[float, float]:
    """x y as a float, and what that rounding lost.  (Dekker, with Veltkamp's splitting)"""
    product = x * y
    # 2^27 + 1 cuts 53 bits into two halves, whose products are exact.
    shifted = 134217729.0 * x
    x_high = shifted - (shifted - x)
    shifted = 134217729.0 * y
    y_high = shifted - (shifted - y)
    x_low, y_low = x - x_high, y - y_high
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


@compiled
def add(sums: Vector, at: int, term: float, gap: int) -> None:
    """Add to a sum whose carry stands `gap` further on."""
    sums[at], lost = two_sum(sums[at], term)
    sums[at + gap] += lost
