"""Which assumptions a log makes doubtful, and how: tests of the residuals of a linear fit.

A doubt is raised where what was seen has a chance of less than 1 in 1,000 if the assumption holds. No doubt is no
proof: a test sees what it looks for, and few rows show little. Linearity and propensities have modules of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from surefoot.arrays import Vector
from surefoot.replay.chi_square import chi_square_tail
from surefoot.replay.linearity import LinearityTest
from surefoot.replay.theta_bound import ThetaLength

SURE = 0.001
BLOCKS = 10
MATTERS = 0.05  # correlation of neighbours from which on intervals are off by more than a twentieth
LINEARITY = "Linearity: the mean reward is <theta, features>"
NO_DRIFT = "No drift: the same theta from the first row to the last"


@dataclass(frozen=True, slots=True)
class Doubt:
    """One assumption: whether it looks doubtful, and what was seen.

    `consequence` is what becomes of the estimates where it is doubtful; of an assumption that the promise of a policy
    rests on, and no estimate, there is none.
    """

    assumption: str
    is_doubtful: bool
    seen: str
    consequence: str = ""

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {"assumption": self.assumption, "is_doubtful": self.is_doubtful, "seen": self.seen}


class Residuals:
    """What the tests need of a pass over the log, whose fit is known: one residual a row, in order."""

    def __init__(self, rows: int) -> None:
        self._rows, self._seen, self._last = rows, 0, math.nan
        self._blocks, self._powers = np.zeros((2, BLOCKS)), np.zeros(5)
        self._product, self._squares = 0.0, 0.0

    def add(self, residuals: Vector) -> None:
        """Take in rows, in order."""
        at = np.minimum((self._seen + np.arange(residuals.size)) * BLOCKS // max(1, self._rows), BLOCKS - 1)
        self._blocks[0] += np.bincount(at, minlength=BLOCKS)
        self._blocks[1] += np.bincount(at, residuals, minlength=BLOCKS)
        self._powers += [float((residuals**power).sum()) for power in range(5)]
        # The first row of all has no neighbour before it, and so a NaN.
        products = np.nan_to_num(np.concatenate([[self._last], residuals[:-1]]) * residuals)
        self._product += float(products.sum())
        self._squares += float(np.square(products).sum())
        self._seen, self._last = self._seen + residuals.size, float(residuals[-1])

    @property
    def variance(self) -> float:
        """Mean squared residual."""
        return float(self._powers[2] / self._powers[0])

    @property
    def fourth(self) -> float:
        """Mean fourth power of a residual."""
        return float(self._powers[4] / self._powers[0])

    def drift(self) -> Doubt:
        """Mean residuals of the tenths of the log, against their common variance.

        (sum of residuals)^2 / (n variance) has mean 1 and variance 2 + excess kurtosis / n: rare rewards make it vary
        more than a chi-square does, and a multiple of one of fewer degrees stands in for their sum.
        """
        counts, totals = self._blocks[:, self._blocks[0] > 0]
        statistic = float((totals**2 / (counts * max(self.variance, 1e-300))).sum())
        spread = 2 * counts.size + float((max(0.0, self.kurtosis - 3) / counts).sum())
        degrees = math.ceil(2 * counts.size**2 / spread)
        p = chi_square_tail(degrees, statistic * 2 * counts.size / spread)
        means = totals / counts
        worst = int(np.argmax(np.abs(means)))
        seen = f"mean residual of tenth {worst + 1} of the log: {means[worst]:+.3g}; p = {p:.2g}"
        return Doubt(NO_DRIFT, p < SURE, seen)

    def independence(self) -> Doubt:
        """Products of neighbouring residuals: their sum by its standard deviation, about normal where none depend.

        Where rewards are rare, the squares seen say too little on one side and the variance on the other: the larger
        counts.
        """
        score = self._product / math.sqrt(max(self._squares, self._seen * self.variance**2, 1e-300))
        share, p = self._product / max(self._powers[2], 1e-300), min(1.0, 2 * math.exp(-(score**2) / 2))
        seen = f"correlation of neighbouring residuals: {share:+.3g}; p = {p:.2g}"
        consequence = (
            "neighbouring rows depend on each other, and its interval is too narrow" if share > MATTERS else ""
        )
        return Doubt("Independence: rows do not tell of their neighbours", p < SURE, seen, consequence)

    def tails(self, *, is_bounded: bool) -> Doubt:
        """Kurtosis, where no range of rewards is known: in a range any noise is sub-Gaussian.  (Hoeffding)"""
        # 24 / n is its variance for normal residuals. In a long log any excess is certain, so it must be large, too.
        z = (self.kurtosis - 3) / math.sqrt(24 / max(1, self._seen))
        is_heavy = not is_bounded and self.kurtosis > 6 and z > NormalDist().inv_cdf(1 - SURE)
        seen = f"kurtosis of the residuals: {self.kurtosis:.3g} (normal: 3)"
        return Doubt("Light tails: noise is sub-Gaussian", is_heavy, "rewards are bounded" if is_bounded else seen)

    @property
    def kurtosis(self) -> float:
        """Fourth moment by the squared variance: 3 for a normal."""
        return self.fourth / max(self.variance**2, 1e-300)


def linearity(test: LinearityTest) -> Doubt:
    """Whether what a fit misses can be guessed from other rows."""
    seen = f"what a linear fit misses follows the features, with a score of {test.score:+.2g}; p = {test.p_value:.2g}"
    return Doubt(LINEARITY, test.p_value < SURE, seen)


def theta_length(theta: ThetaLength, names: Sequence[str]) -> Doubt:
    """Whether theta may be long only along a direction in which the rows hardly vary, and along which."""
    parts = np.argsort(-np.abs(theta.direction))
    parts = parts[np.abs(theta.direction[parts]) >= np.abs(theta.direction[parts[0]]) / 3][:4]
    named = " ".join(f"{theta.direction[at]:+.2g} ({names[at]})" for at in parts)
    seen = (
        f"at most {theta.norm.high:.4g}, where rows that vary alike in all directions leave {theta.even:.4g}; they "
        f"vary least along {named}"
    )
    return Doubt("Length of theta: rows vary in every direction", theta.is_doubtful, seen)
