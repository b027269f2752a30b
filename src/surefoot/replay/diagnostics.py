"""Which assumptions a log makes doubtful, and how: tests of the residuals of a linear fit.

Each test adds up (sum of residuals)^2 / (n variance) over cells of the log, which is at most chi-squared with as many
degrees as cells where the linear model holds, rows are independent, and cells hold many rows. A doubt is raised where
that is less likely than 1 in 1,000. No doubt is no proof: a test sees what it looks for, and few rows show little.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.replay.chi_square import chi_square_tail

SURE = 0.001
LEAST_ROWS = 20  # of a cell: the variance of fewer says too little
BLOCKS, BINS = 10, 6


@dataclass(frozen=True, slots=True)
class Doubt:
    """One assumption: whether it looks doubtful, and what was seen."""

    assumption: str
    is_doubtful: bool
    seen: str


class Cells:
    """Residuals by cell."""

    def __init__(self, cells: int) -> None:
        self._sums = np.zeros((3, cells))

    def add(self, places: NDArray[np.int64], residuals: Vector) -> None:
        """Take in some rows."""
        cells = self._sums.shape[1]
        for power in range(3):
            self._sums[power] += np.bincount(places, residuals**power, minlength=cells)

    @property
    def means(self) -> Vector:
        """Mean residual of every cell; NaN where there are too few rows."""
        counts = self._sums[0]
        return np.where(counts >= LEAST_ROWS, self._sums[1] / np.maximum(counts, 1), np.nan)

    def p_value(self) -> float:
        """The chance of mean residuals this large."""
        used = self._sums[0] >= LEAST_ROWS
        counts, total, squares = self._sums[:, used]
        variance = squares / np.maximum(counts, 1) - (total / np.maximum(counts, 1)) ** 2
        # A cell whose residuals are all alike has no spread to compare with.
        firm = variance > 1e-12 * np.maximum(squares / np.maximum(counts, 1), 1e-300)
        statistic = float((total[firm] ** 2 / (counts[firm] * variance[firm])).sum())
        return chi_square_tail(max(1, int(firm.sum())), statistic)


class Residuals:
    """Everything the tests need of a second pass over the log, whose fit is known."""

    def __init__(self, *, rows: int, fitted: tuple[float, float], lows: Vector, highs: Vector) -> None:
        self._rows, self._fitted, self._lows, self._highs = rows, fitted, lows, highs
        self._seen, self._last = 0, math.nan
        self._times, self._levels = Cells(BLOCKS), Cells(BINS)
        self._columns = [Cells(BINS) for _ in range(lows.size)]
        self._powers, self._products = np.zeros(5), 0.0

    def add(self, features: Matrix, fitted: Vector, residuals: Vector) -> None:
        """Take in rows, in order: the features that were played, what the fit says, and what it missed."""
        at = self._seen + np.arange(residuals.size)
        self._times.add(np.minimum(at * BLOCKS // max(1, self._rows), BLOCKS - 1), residuals)
        self._levels.add(_bins(fitted, *self._fitted), residuals)
        for column, cells in enumerate(self._columns):
            if self._highs[column] > self._lows[column]:
                cells.add(_bins(features[:, column], self._lows[column], self._highs[column]), residuals)
        self._powers += [float((residuals**power).sum()) for power in range(5)]
        before = np.concatenate([[self._last], residuals[:-1]])
        # The first row of all has no neighbour before it, and so a NaN.
        self._products += float(np.nansum(before * residuals))
        self._seen, self._last = self._seen + residuals.size, float(residuals[-1])

    @property
    def variance(self) -> float:
        """Mean squared residual."""
        return float(self._powers[2] / self._powers[0])

    @property
    def fourth(self) -> float:
        """Mean fourth power of a residual."""
        return float(self._powers[4] / self._powers[0])

    def doubts(self, names: list[str]) -> list[Doubt]:
        """One entry per assumption."""
        return [self._drift(), self._linearity(names), self._independence(), self._tails()]

    def _drift(self) -> Doubt:
        p, means = self._times.p_value(), self._times.means
        worst = int(np.nanargmax(np.abs(means))) if np.isfinite(means).any() else 0
        seen = f"mean residual of tenth {worst + 1} of the log: {means[worst]:+.3g}; p = {p:.2g}"
        return Doubt("No drift: the same theta from the first row to the last", p < SURE, seen)

    def _linearity(self, names: list[str]) -> Doubt:
        tests = [(self._levels.p_value(), "the fitted value", self._levels)]
        tests += [(cells.p_value(), name, cells) for cells, name in zip(self._columns, names, strict=True)]
        p, name, cells = min(tests, key=lambda test: test[0])
        p = min(1.0, p * len(tests))  # as many tests as columns: each gets its share
        means = cells.means
        spread = f"{np.nanmin(means):+.3g} to {np.nanmax(means):+.3g}" if np.isfinite(means).any() else "unknown"
        return Doubt(
            "Linearity: the mean reward is <theta, features>",
            p < SURE,
            f"mean residuals along {name}: {spread}; p = {p:.2g} over {len(tests)} tests",
        )

    def _independence(self) -> Doubt:
        share = self._products / max(self._powers[2], 1e-300)
        p = math.erfc(abs(share) * math.sqrt(max(1, self._seen) / 2))  # both tails of a normal
        seen = f"correlation of neighbouring residuals: {share:+.3g}; p = {p:.2g}"
        return Doubt("Independence: rows do not tell of their neighbours", p < SURE, seen)

    def _tails(self) -> Doubt:
        kurtosis = self.fourth / max(self.variance**2, 1e-300)
        # 24 / n is its variance for normal residuals. In a long log any excess is certain, so it must be large, too.
        z = (kurtosis - 3) / math.sqrt(24 / max(1, self._seen))
        is_heavy = kurtosis > 6 and z > NormalDist().inv_cdf(1 - SURE)
        return Doubt(
            "Light tails: noise is sub-Gaussian", is_heavy, f"kurtosis of the residuals: {kurtosis:.3g} (normal: 3)"
        )


def _bins(values: Vector, low: float, high: float) -> NDArray[np.int64]:
    scaled = (values - low) / max(high - low, 1e-300)
    return np.clip((scaled * BINS).astype(np.int64), 0, BINS - 1)
