"""Intervals where rewards are rare: sums of few terms that matter, each with a weight.

A normal interval is too short, and too low, where a handful of clicks carries the sum. Such a sum of positive terms is
much like one of weighted Poisson counts: with total y, sum of squares v and largest weight m, its mean lies between the
quantiles of two gamma distributions (Fay and Feuer 1997),

    v / (2 y) chi2(2 y^2 / v)    and    (v + m^2) / (2 (y + m)) chi2(2 (y + m)^2 / (v + m^2)),

which for equal weights is the exact interval of a Poisson count, and covers at its level or better. For a difference
the two sums are put together by their squares, each side by the ends that matter there (Zou and Donner 2008).
"""

import math
from dataclasses import dataclass

from surefoot.replay.chi_square import chi_square_quantile

RARE = 50  # terms that matter, below which a sum counts as rare
OFTEN = 0.5  # of the rows; where more are rewarded, the number of rows is what is small, and normal intervals serve
GAMMA = (
    f"Gamma interval, where fewer than {RARE} rewarded rows carry an estimate, and most rows have no reward: rows are "
    "drawn afresh given the rows before; it covers at its level or better, as the exact interval of a count does."
)


@dataclass(slots=True)
class RareSum:
    """A sum of positive terms: total, sum of squares, what one of them may be at most, and how many rows may have one.

    With weights, rows count as many as would make as uncertain a sum if all were equal.
    """

    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    rows: float = 0.0

    @property
    def terms(self) -> float:
        """How many equal terms would make as uncertain a sum."""
        return alike(self.total, self.squares)

    @property
    def is_rare(self) -> bool:
        """Whether few terms carry it, though there could be many."""
        return self.largest > 0 and self.terms < min(RARE, OFTEN * self.rows)

    def ends(self, level: float) -> tuple[float, float]:
        """Between what its mean lies."""
        side, most = (1 - level) / 2, self.largest
        if most <= 0.0:
            return self.total, self.total
        low = 0.0
        if self.squares > 0:
            low = self.squares / (2 * self.total) * chi_square_quantile(2 * self.terms, 1 - side)
        total, squares = self.total + most, self.squares + most**2
        return low, squares / (2 * total) * chi_square_quantile(2 * total**2 / squares, side)


def alike(total: float, squares: float) -> float:
    """How many equal terms have this sum and this sum of squares."""
    return total**2 / squares if squares > 0 else 0.0


def reaches(plus: RareSum, minus: RareSum, level: float) -> tuple[float, float]:
    """How far the mean of `plus - minus` may lie below and above what was seen."""
    (low, high), (least, most) = plus.ends(level), minus.ends(level)
    return math.hypot(plus.total - low, most - minus.total), math.hypot(high - plus.total, minus.total - least)
