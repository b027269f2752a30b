"""How long theta may be: ridge regression over all rows, whose regulariser the log itself chooses, and its safe end.

Least squares has no bound to offer where features hardly vary: an error there costs no prediction, so that
cross-validation does not see it, while ||theta|| grows without end. So theta is taken as centre + N(0, tau^2 I), the
centre what predicts the mean reward everywhere, and tau, in units of range / length of features, by the likelihood of
what was seen: theta in a direction that the log hardly covers is then as long as in those that it covers.

The bound is the end of ||theta|| at the largest tau that the likelihood does not rule out. By the concentration of a
Lipschitz function of normal numbers, ||theta|| <= sqrt(E ||theta||^2) + s sqrt(2 ln(1/tail)) with s the largest
standard deviation of any direction.  (Boucheron, Lugosi and Massart 2013, Theorem 5.6)
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.replay.chi_square import chi_square_quantile
from surefoot.replay.intervals import Estimate

COVERED = 1e-9  # share of the largest eigenvalue below which a direction counts as never tried
FIRM = 1e-6  # the same for directions in which the centre is fitted: no noise there, but rounding
TAIL = 0.005  # of tau and of ||theta|| given tau, each
SCALES = np.geomspace(1e-5, 1e3, 161)  # tau, in units of range / length of features


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


class RidgeSums:
    """What a fit needs of the rows: sums over those that were played, and where offered ones can lie at all."""

    def __init__(self, dim: int) -> None:
        self.rows = 0
        self._gram, self.moment = GramSum(dim), np.zeros(dim)
        self._sum, self._reward, self._squares = np.zeros(dim), 0.0, 0.0
        self._offered: Matrix | None = None

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
        both._offered = self._offered if self._offered is not None else other._offered
        return both

    def offer(self, features: Matrix) -> None:
        """Rows of all actions, played or not; those of the first batch say which directions there are."""
        if self._offered is None:
            self._offered = features.T @ features

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

    def theta_norm(self, *, bounds: tuple[float, float], length: float) -> Estimate:
        """||theta|| with its interval, from rewards in `bounds` and features of length at most `length`."""
        width, mean = bounds[1] - bounds[0], self._reward / max(1, self.rows)
        model = self._directions(width)
        scales = max(width, abs(mean), 1e-12) / max(length, 1e-12) * SCALES
        losses = np.array([model.loss(scale) for scale in scales])
        best = int(losses.argmin())
        widest = int(np.flatnonzero(losses - losses.min() <= chi_square_quantile(1, TAIL))[-1])
        # Means that keep their range vary by about their distance from its nearer end, unless the log shows more.
        nearer = max(min(mean - bounds[0], bounds[1] - mean), self._unseen(width))
        plausible = nearer / math.sqrt(max(float(np.trace(self.gram)) / max(1, self.rows), 1e-300))
        widest = min(widest, max(best, int(np.searchsorted(scales, plausible))))
        low, value, _ = model.lengths(scales[best])
        return Estimate(value, low, model.lengths(scales[widest])[2], 1 - 2 * TAIL, "ridge", self.rows)

    def _unseen(self, width: float) -> float:
        """How much a mean may lie above the end of its range, where no row shows it."""
        return width * math.log(1 / TAIL) / max(1, self.rows)

    def _directions(self, width: float) -> "_Directions":
        offered = self.gram if self._offered is None else self.gram + self._offered
        values, axes = np.linalg.eigh(offered)
        # What no row can have a part in, as the sum of all levels minus the constant, is no part of theta.
        axes = axes[:, values > COVERED * values[-1]]
        values, turned = np.linalg.eigh(axes.T @ self.gram @ axes)
        axes, values = axes @ turned, np.maximum(values, 0.0)
        moment, mean = axes.T @ self.moment, self._reward / max(1, self.rows)
        firm = values > FIRM * values[-1]
        centre = np.where(firm, mean * (axes.T @ self._sum) / np.where(firm, values, 1.0), 0.0)
        return _Directions(values, centre, moment - values * centre, self._noise(values, moment, width))

    def _noise(self, values: Vector, moment: Vector, width: float) -> float:
        """Variance of a reward around its mean; of all rewards, which is more, where rows are few."""
        covered = values > COVERED * values[-1]
        rank, mean = int(covered.sum()), self._reward / max(1, self.rows)
        missed = self._squares - float((moment[covered] ** 2 / values[covered]).sum())
        if self.rows < 2 * rank:
            missed, rank = self._squares - self.rows * mean**2, 1
        # Rewards in a range vary by half of it at most.  (Popoviciu)
        variance = max(missed / max(1, self.rows - rank), width * self._unseen(width))
        return max(min(variance, width**2 / 4) if width > 0 else variance, 1e-18 * mean**2, 1e-300)


@dataclass(frozen=True, slots=True, eq=False)
class _Directions:
    """Theta along the eigenvectors of the gram: eigenvalues, the centre, moments of what it misses, and the noise."""

    values: Vector
    centre: Vector
    moment: Vector
    noise: float

    def loss(self, scale: float) -> float:
        """-2 ln of the likelihood of the rewards, up to a constant, where theta ~ centre + N(0, scale^2 I)."""
        spread = 1 + self.values * scale**2 / self.noise
        explained = self.moment**2 * scale**2 / (self.noise * (self.noise + self.values * scale**2))
        return float(np.log(spread).sum() - explained.sum())

    def lengths(self, scale: float) -> tuple[float, float, float]:
        """||theta||: its low end, the length of the ridge estimate, and its high end."""
        ridge = self.noise / scale**2
        theta = self.centre + self.moment / (self.values + ridge)
        spread = self.noise / (self.values + ridge)
        middle = math.sqrt(float(theta @ theta + spread.sum()))
        reach = math.sqrt(2 * math.log(1 / TAIL) * float(spread.max()))
        length = float(np.linalg.norm(theta))
        return max(0.0, min(length, middle - reach)), length, middle + reach
