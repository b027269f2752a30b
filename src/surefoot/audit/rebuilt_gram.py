"""V = ridge I + sum x x^T, solved afresh: in plain floats by its eigenvalues, and without rounding where that decides.

The policies keep a triangular factor up to date row by row. Nothing of that is here: a factor that drifted, or an
update that was wrong, shows as a difference.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from surefoot.audit.compensated_sums import ExactNumbers, Matrix, Vector, whole

EPS = 2.0**-53
REFINEMENTS = 3

Solve = Callable[[Vector], Vector]


class GramFactor:
    """V = S Q diag(e) Q^T S, with powers of two on the diagonal of S, so that Q diag(e) Q^T has about ones there.

    So rounding does the same to a feature whether it is measured in metres or in miles.
    """

    def __init__(self, scale: Vector, values: Vector, axes: Matrix, moment: Vector, ridge: float) -> None:
        self.scale, self.axes, self.ridge, self.dim = scale, axes, ridge, scale.size
        # V is at least ridge I, whatever rounding did to its eigenvalues.
        floor = ridge / scale.max() ** 2
        self.values: Vector = np.maximum(values, floor)
        error = 8.0 * self.dim * EPS * self.values[-1]  # of any of them: Weyl, and some EPS ||V|| by LAPACK
        self.least: Vector = np.maximum(self.values - error, floor)
        self.most: Vector = self.values + error
        self.moment: Vector = self.turn(moment)
        self.conditioning = float(self.values[-1] / self.least[0])
        # How far rounding may move a width or the center: as far as the conditioning of V amplifies it.
        self.blur = 64.0 * self.dim * EPS * self.conditioning
        self.energy = float(self.moment @ (self.moment / self.values))  # b^T V^-1 b

    def turn(self, x: Any) -> Any:
        """Q^T S^-1 x, row by row."""
        return (x / self.scale) @ self.axes

    def solve(self, q: Vector) -> Vector:
        """V^-1 q."""
        solution: Vector = (self.axes @ (self.turn(q) / self.values)) / self.scale
        return solution

    def growth(self, values: Vector) -> float:
        """ln(det V / ridge^d), by these eigenvalues."""
        return float(np.log(values).sum() + np.log(self.scale * (self.scale / self.ridge)).sum())


def factors(gram: Matrix, moment: Vector, ridges: Vector) -> list[GramFactor]:
    """V = gram + ridge I in factors, for each of these ridges."""
    shifted = gram + ridges[:, None, None] * np.eye(moment.size)
    # Powers of two: scaling by them rounds nothing.
    scales = np.exp2(np.round(0.5 * np.log2(np.diagonal(shifted, axis1=1, axis2=2))))
    values, axes = np.linalg.eigh(shifted / (scales[:, :, None] * scales[:, None, :]))
    parts = zip(scales, values, axes, ridges.tolist(), strict=True)
    return [GramFactor(scale, own, turned, moment, ridge) for scale, own, turned, ridge in parts]


class ExactGram:
    """V and b = sum x y to twice the digits, for where rounding would decide.

    squares: of the rewards, summed up; b^T V^-1 b is at most that
    """

    def __init__(
        self, gram: tuple[Matrix, Matrix], moment: tuple[Vector, Vector], ridge: float, squares: float
    ) -> None:
        self._gram, self._moment, self.ridge, self._squares = gram, moment, ridge, squares

    @cached_property
    def _v(self) -> ExactNumbers:
        high, low = self._gram
        return whole(high.ravel()) + whole(low.ravel()) + whole(self.ridge * np.eye(len(high)).ravel())

    @cached_property
    def _b(self) -> ExactNumbers:
        return whole(self._moment[0]) + whole(self._moment[1])

    def mean_and_width(self, q: Vector, solve: Solve) -> tuple[float, float, float]:
        """<V^-1 b, q> and an upper bound of ||q||_{V^-1}; then how far the first may be off.

        With y and r = q - V y, <V^-1 b, q> differs from <b, y> by <V^-1 b, r> <= ||b||_{V^-1} |r| / sqrt(ridge).
        """
        y, rest = self._solved(whole(q), solve)
        width = self._square(whole(q), y, rest)[1] ** 0.5
        return self._b @ y, width, (self._squares * (rest @ rest) / self.ridge) ** 0.5

    def energy(self, solve: Solve) -> tuple[float, float]:
        """What b^T V^-1 b is at least and at most."""
        return self._square(self._b, *self._solved(self._b, solve))

    def _square(self, x: ExactNumbers, y: ExactNumbers, rest: ExactNumbers) -> tuple[float, float]:
        """Bounds of ||x||^2_{V^-1} = <x, y> + <y, r> + ||r||^2_{V^-1}, where r = x - V y and V^-1 <= I / ridge."""
        least = x @ y + y @ rest
        return max(0.0, least), max(0.0, least + (rest @ rest) / self.ridge)

    def _solved(self, x: ExactNumbers, solve: Solve) -> tuple[ExactNumbers, ExactNumbers]:
        """Some y with V y close to x, and what is left of x, exactly."""
        y, rest = whole(np.zeros(len(x.parts))), x
        for _ in range(REFINEMENTS):
            y = y + whole(solve(rest.floats()))
            rest = x + y.turned(self._v)
        return y, rest
