"""Lengths of feature rows, checked against their bound. How rows are scored stands in `core/scores.hpp`."""

from surefoot.arrays import Matrix
from surefoot.core import native

LENGTH_TOLERANCE = 1e-12  # a row may be longer than D by this share, for the rounding of D itself


def first_bad_row(rows: Matrix, bound: float) -> int:
    """Index of the first row that is longer than the bound or not finite, or -1."""
    return int(native.first_bad_row(rows, bound))
