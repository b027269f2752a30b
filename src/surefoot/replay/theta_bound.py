"""How long theta may be: the longest one that a log and the range of its rewards leave possible.

Along directions in which features hardly vary, as the difference of two columns that are nearly equal, theta may be
very long and no prediction shows it. So nothing is taken for granted of such a direction: it counts by what the rewards
say of it, G / sigma^2 with the gram G of the rows that were played, and by the range [-s, s] of mean rewards. For any
shares of the rows that were offered <theta, x>^2 <= s^2 gives theta^T K theta <= s^2 with K = sum of share x x^T; the
shares are the rows' leverages, so that rare rows count as well as frequent ones.

With A = G / sigma^2 + K / s^2 and S = A^-1, the estimate S b / sigma^2 misses theta by noise of covariance
E = S G S / sigma^2, and by S K theta / s^2, at most the root of the largest eigenvalue of S K S / s^2. By the
concentration of a normal vector's squared length Q (Birge 2001, Lemma 8.1), each with a chance of at most e^-x,

    Q <= mean - 2 sqrt(x (tr E^2 + 2 L t^2))    or    Q >= mean + 2 sqrt(x (tr E^2 + 2 L t^2)) + 2 L x,

where its mean is t^2 + tr E, t the length of what it is centred at, and L the largest eigenvalue of E: solved for t.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.replay.estimates import Estimate

COVERED = 1e-9  # share of the largest eigenvalue below which a direction counts as never tried
ROUNDING = 1e-12  # the same below which a direction counts as one that no row has a part in
TAIL = 0.005  # of either end of the interval
SEVERAL = 3.0  # times what rows of even spread would leave possible, from which on a length is doubtful


class GramSum:
    """The sum of x x^T over rows, added up for many of them at once: of wide rows a batch holds but a few."""

    def __init__(self, dim: int) -> None:
        self._sum, self._waiting, self._rows = np.zeros((dim, dim)), list[Matrix](), 0

    def add(self, rows: Matrix) -> None:
        """Take in rows (rows, dim)."""
        self._waiting.append(rows)
        self._rows += len(rows)
        if self._rows >= len(self._sum):
            self._settle()

    @property
    def value(self) -> Matrix:
        """The sum (dim, dim)."""
        self._settle()
        return self._sum

    def plus(self, other: "GramSum") -> "GramSum":
        """The sum over the rows of both."""
        both = GramSum(len(self._sum))
        both._sum = self.value + other.value
        return both

    def _settle(self) -> None:
        if self._waiting:
            rows = np.concatenate(self._waiting)
            self._sum = self._sum + rows.T @ rows
            self._waiting, self._rows = [], 0


@dataclass(frozen=True, slots=True, eq=False)
class ThetaLength:
    """||theta|| with its interval, and the direction along which theta may be longest.

    `even` is how long it may be at most where rows vary as much in one direction as in another.
    """

    norm: Estimate
    direction: Vector
    even: float

    @property
    def is_doubtful(self) -> bool:
        """Whether a direction in which rows hardly vary makes the bound."""
        return self.norm.high > SEVERAL * self.even


class RidgeSums:
    """What a fit needs of the rows: sums over those that were played, and some of those that were offered."""

    def __init__(self, dim: int) -> None:
        self.rows = 0
        self._gram, self.moment = GramSum(dim), np.zeros(dim)
        self._sum, self._reward, self._squares = np.zeros(dim), 0.0, 0.0
        self._offered, self._is_offered = list[Matrix](), np.zeros(dim, dtype=np.bool_)

    def add(self, features: Matrix, rewards: Vector) -> None:
        """Take in rows (rows, dim) and their rewards."""
        self.rows += rewards.size
        self._gram.add(features)
        self.moment += features.T @ rewards
        self._sum += features.sum(axis=0)
        self._reward += float(rewards.sum())
        self._squares += float(np.square(rewards).sum())

    @property
    def gram(self) -> Matrix:
        """Sum of x x^T."""
        return self._gram.value

    def plus(self, other: "RidgeSums") -> "RidgeSums":
        """The sums over the rows of both."""
        both = RidgeSums(self.moment.size)
        both.rows = self.rows + other.rows
        both._gram = self._gram.plus(other._gram)
        both.moment, both._sum = self.moment + other.moment, self._sum + other._sum
        both._reward, both._squares = self._reward + other._reward, self._squares + other._squares
        both._offered = [*self._offered, *other._offered]
        return both

    def offer(self, features: Matrix) -> None:
        """Rows of all actions, played or not: the first batch is kept, and later the first row of each new column."""
        kept = features if not self._offered else features[_first_rows((features != 0.0)[:, ~self._is_offered])]
        if len(kept):
            self._offered.append(kept.copy())
            self._is_offered |= (kept != 0.0).any(axis=0)

    def least_squares(self) -> tuple[Vector, Matrix]:
        """Theta in the directions that the log covers, 0 in the others; and the inverse of the gram there."""
        values, axes = np.linalg.eigh(self.gram)
        # In a direction that was never tried, rounding alone would give a huge estimate.
        covered = values > COVERED * values[-1]
        inverse = (axes[:, covered] / values[covered]) @ axes[:, covered].T
        return inverse @ self.moment, inverse

    def fitted_spread(self, theta: Vector) -> tuple[float, float]:
        """Mean and standard deviation of <theta, features> over the rows."""
        mean = float(theta @ self._sum) / max(1, self.rows)
        return mean, math.sqrt(max(0.0, float(theta @ self.gram @ theta) / max(1, self.rows) - mean**2))

    def theta_length(self, bounds: tuple[float, float]) -> ThetaLength:
        """How long theta may be, where rewards lie in `bounds`."""
        reach, noise = max(map(abs, bounds)), self.reward_variance(bounds)
        offered = np.concatenate([np.zeros((0, self.moment.size)), *self._offered])
        both = self.gram + offered.T @ offered
        values, axes = np.linalg.eigh(both)
        # What no row can have a part in, as the sum of all levels minus the constant, is no part of theta.
        axes = axes[:, values > ROUNDING * values[-1]]
        design = _design(offered @ axes) / reach**2
        values, turned = np.linalg.eigh(axes.T @ self.gram @ axes / noise + design)
        axes, values = axes @ turned, np.maximum(values, ROUNDING * values[-1])
        pulled = turned.T @ design @ turned / np.outer(values, values)
        theta = axes.T @ self.moment / noise / values
        low, value, high = _lengths(theta, np.diag(1.0 / values) - pulled, pulled)
        row = math.sqrt(float(np.trace(both)) / (self.rows + len(offered)))
        norm = Estimate(value, low, high, 1 - 2 * TAIL, "normal", self.rows)
        return ThetaLength(norm, axes[:, 0], even=reach * math.sqrt(values.size) / row)

    def reward_variance(self, bounds: tuple[float, float]) -> float:
        """Variance of a reward around its mean; of all rewards, which is more, where rows are few."""
        width, mean = bounds[1] - bounds[0], self._reward / max(1, self.rows)
        theta, inverse = self.least_squares()
        rank = round(float((inverse * self.gram).sum()))
        missed = self._squares - float(theta @ self.moment)
        if self.rows < 2 * rank:
            missed, rank = self._squares - self.rows * mean**2, 1
        # Where no row shows it, a mean may lie above the end of its range by this much of it.
        unseen = math.log(1 / TAIL) / max(1, self.rows)
        # Rewards in a range vary by half of it at most.  (Popoviciu)
        variance = max(missed / max(1, self.rows - rank), width**2 * unseen)
        return max(min(variance, width**2 / 4) if width > 0 else variance, 1e-18 * mean**2, 1e-300)


def _first_rows(parts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first row that has a part in each column, where any has."""
    return np.unique(parts.argmax(axis=0)[parts.any(axis=0)])


def _design(rows: Matrix) -> Matrix:
    """The mean of x x^T over rows, each counted by its leverage: by how much it stands alone."""
    if not len(rows):
        return np.zeros((rows.shape[1], rows.shape[1]))
    values, axes = np.linalg.eigh(rows.T @ rows)
    covered = values > ROUNDING * values[-1]
    leverages = np.square(rows @ axes[:, covered] / np.sqrt(values[covered])).sum(axis=1)
    weighted: Matrix = (rows * (leverages / leverages.sum())[:, None]).T @ rows
    return weighted


def _lengths(estimate: Vector, noise: Matrix, pulled: Matrix) -> tuple[float, float, float]:
    """||theta||: the low end, the value and the high end, where `noise` is the covariance of an estimate's error.

    `pulled` bounds the square of what pulls the estimate to 0.
    """
    reach, bent = math.log(1 / TAIL), math.sqrt(max(0.0, float(np.linalg.eigvalsh(pulled)[-1])))
    spread, total = max(0.0, float(np.linalg.eigvalsh(noise)[-1])), float(np.square(noise).sum())
    square = float(estimate @ estimate - np.trace(noise))

    def end(start: float, sign: float) -> float:
        middle = start + 4 * reach * spread
        return math.sqrt(max(0.0, middle + sign * math.sqrt(max(0.0, middle**2 - start**2 + 4 * reach * total))))

    low = end(square - 2 * reach * spread, -1.0) if square > 2 * reach * spread else 0.0
    return max(0.0, low - bent), math.sqrt(max(0.0, square)), end(square, 1.0) + bent
