"""Whether mean rewards are linear in the features: one test, pooled over the fitted value and every feature.

The log is cut into blocks of rows, every other of which is set aside. In the others, what a linear fit misses is
averaged in cells along the fitted value and along each feature; these averages, added up, are a guess at what the fit
will miss. In the blocks set aside the guess is held against what a fit to them missed. Where the model is linear the
guess is worth nothing, and (sum of guess x residual) / sqrt(sum of their squares) is about standard normal, whatever
the variance of each reward: one number, so that nothing is shared among tests, and no cell needs a variance of its
own. A sum divided by the root of its squares is beyond x with a chance of about exp(-x^2 / 2) or less, also where
rewards are rare and skewed.

With least squares of the same rows the sum does not depend on theta; what is left of the guess beside the features is
what its squares are taken of (White 1980), row by row where a row has the rewards of all actions.
"""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.replay.theta_bound import GramSum, RidgeSums

BLOCK = 64  # rows: neighbours that depend on each other lie in one block for the most part
BINS = 6
LEAST_ROWS = 20  # of a cell, below which its mean is no guess


def is_set_aside(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows, by their number from 0, judge the guess."""
    return np.asarray(rows // BLOCK % 2 == 1)


class _Cells:
    """Mean residuals along some columns, each cut into equal parts between its ends."""

    def __init__(self, lows: Vector, highs: Vector) -> None:
        # What is the same in all rows is in the first cell.
        self._lows, self._widths = lows, np.where(highs - lows > 1e-300, highs - lows, np.inf)
        self._counts, self._totals = np.zeros((2, lows.size * BINS))

    def add(self, values: Matrix, residuals: Vector) -> None:
        """Take in rows (rows, columns) and what the fit missed in them."""
        places = self._places(values).ravel()
        self._counts += np.bincount(places, minlength=self._counts.size)
        self._totals += np.bincount(places, np.repeat(residuals, self._lows.size), minlength=self._counts.size)

    def guess(self, values: Matrix) -> Vector:
        """The sum of the mean residuals of the cells that a row lies in; 0 for a cell of few rows."""
        means = np.where(self._counts >= LEAST_ROWS, self._totals / np.maximum(self._counts, 1), 0.0)
        found: Vector = means[self._places(values)].sum(axis=1)
        return found

    def _places(self, values: Matrix) -> NDArray[np.int64]:
        at = np.clip((values - self._lows) / self._widths * BINS, 0, BINS - 1).astype(np.int64)
        return at + BINS * np.arange(self._lows.size)


class LinearityTest:
    """Learns the guess in one pass over the log, and judges it in the next."""

    def __init__(self, learned: RidgeSums, aside: RidgeSums, *, lows: Vector, highs: Vector) -> None:
        self._theta, (self._own, self._inverse) = learned.least_squares()[0], aside.least_squares()
        middle, reach = learned.fitted_spread(self._theta)
        self._cells = _Cells(np.append(middle - 2 * reach, lows), np.append(middle + 2 * reach, highs))
        rank = float((self._inverse * aside.gram).sum())
        self._free = max(1.0, aside.rows - rank) / max(1, aside.rows)
        dim = lows.size
        self._product, self._squares, self._along = 0.0, 0.0, np.zeros(dim)
        self._cross, self._spread = np.zeros(dim), GramSum(dim)

    def learn(self, features: Matrix, rewards: Vector) -> None:
        """Rows that are not set aside."""
        fitted = features @ self._theta
        self._cells.add(np.column_stack([fitted, features]), rewards - fitted)

    def judge(self, features: Matrix, rewards: Vector, *, together: int) -> None:
        """Rows that are set aside; each `together` that follow one another belong to one logged row."""
        guess = self._cells.guess(np.column_stack([features @ self._theta, features]))
        missed = rewards - features @ self._own
        self._along += features.T @ guess
        hits = (guess * missed).reshape(-1, together).sum(axis=1)
        moved = (features * missed[:, None]).reshape(-1, together, features.shape[1]).sum(axis=1)
        self._product += float(hits.sum())
        self._squares += float(hits @ hits)
        self._cross += moved.T @ hits
        self._spread.add(moved)

    @property
    def score(self) -> float:
        """About standard normal where the model is linear, and large where the guess was right."""
        beside = self._inverse @ self._along
        squares = self._squares - 2 * float(beside @ self._cross) + float(beside @ self._spread.value @ beside)
        # A fit makes residuals look smaller than they are.
        scale = math.sqrt(max(squares / self._free, 0.0))
        return self._product / scale if scale > 1e-12 * abs(self._product) else 0.0

    @property
    def p_value(self) -> float:
        """The chance of a guess this good where the model is linear."""
        return math.exp(-(max(0.0, self.score) ** 2) / 2)
