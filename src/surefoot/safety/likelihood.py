"""The likelihood set of bounded rewards: what `core/likelihood.hpp` keeps of it, and its tangents as facts.

Over the set loss(theta) <= allowed, and the loss is convex: so wherever it is touched, its tangent is a linear fact.
"""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.safety.facts import Linear
from surefoot.values import Value

LIKELIHOOD = "likelihood of the rewards"
EDGE = Decimal.from_float(1e-6)  # the core's float; below it -ln x is continued by its parabola
DIGITS = 60
FAR = Decimal(10**9)  # in lengths of theta: no honest point lies there, and digits would run out


class Tangent(Linear, frozen=True):
    """The fact <theta, normal> >= level that the likelihood set gives where it is touched at a point.

    Parameters
    ----------
    normal : ndarray of shape (dim,)
        Minus the gradient of the loss at the point.
    level : float
        loss(point) + <normal, point> - allowed, rounded down.
    name : str
        What a reader calls it.
    point : ndarray of shape (dim,)
        Where it is touched.
    """

    point: Vector


class Likelihood(Value, frozen=True):
    """The likelihood-ratio set {theta: loss(theta) <= allowed} of rewards in [low, low + 1/scale].

    `SafeLUCB.likelihood` gives the policy's own; `surefoot.check` grants its tangents, in arithmetic of 60 digits.

    Parameters
    ----------
    rows : ndarray of shape (rows, dim)
        Distinct rows whose rewards were learned.
    successes, failures : ndarray of shape (rows,)
        Their rewards in units of the bounds, and what these fell short of 1.
    allowed : float
        Loss of the forecasts, and ln(1/delta).
    low, scale : float
        A mean in units of the bounds is scale (<theta, x> - low).
    constant, linear, square : float and arrays
        Parabolas below the losses of rows for which there was no room.
    square_error : float
        By how much `square` may be wrong for rounding, as a norm.
    theta_bound : float
        Bound on the length of theta, for rounding alone.
    """

    rows: Matrix
    successes: Vector
    failures: Vector
    allowed: float
    low: float
    scale: float
    constant: float
    linear: Vector
    square: Matrix
    square_error: float
    theta_bound: float
    name = LIKELIHOOD

    def lower(self, q: Any, /) -> float:
        """Nothing by itself: it speaks through its tangents.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The vector asked about.

        Returns
        -------
        float
            0 for the zero vector, otherwise -inf.
        """
        return 0.0 if not np.any(q) else -np.inf

    def grants(self, claim: Tangent) -> bool:
        """Whether a tangent is this set's, or says less: computed anew to 60 digits.

        Parameters
        ----------
        claim : Tangent
            The fact that somebody relies on.

        Returns
        -------
        bool
            True if <theta, claim.normal> >= claim.level follows for every theta of the set.
        """
        shape = (self.linear.size,)
        if np.shape(claim.point) != shape or np.shape(claim.normal) != shape:
            return False
        if not (np.isfinite(claim.point).all() and np.isfinite(claim.normal).all() and np.isfinite(claim.level)):
            return False
        with localcontext() as context:
            context.prec = DIGITS
            point, bound = [Decimal(float(one)) for one in claim.point], Decimal(self.theta_bound)
            if (length := sum((one * one for one in point), Decimal(0)).sqrt()) > FAR * bound:
                return False
            normal, level = self._touched(point)
            missed = sum(((a - Decimal(float(b))) ** 2 for a, b in zip(normal, claim.normal, strict=True)), Decimal(0))
            # Along a direction that the parabolas hardly bend in, rounding bends them the other way.
            bent = Decimal(self.square_error) * length * (length + bound)
            return Decimal(claim.level) <= level - bound * missed.sqrt() - bent

    def _touched(self, point: list[Decimal]) -> tuple[list[Decimal], Decimal]:
        low, scale = Decimal(self.low), Decimal(self.scale)
        square = [[Decimal(float(one)) for one in row] for row in self.square]
        along = [sum((a * b for a, b in zip(row, point, strict=True)), Decimal(0)) for row in square]
        normal = [-Decimal(float(one)) - 2 * two for one, two in zip(self.linear, along, strict=True)]
        # At its point a parabola lies that far below its constant, once its slope is taken off.
        level = Decimal(self.constant) - sum((a * b for a, b in zip(along, point, strict=True)), Decimal(0))
        for row, successes, failures in zip(self.rows, self.successes, self.failures, strict=True):
            x = [Decimal(float(one)) for one in row]
            mean = scale * (sum((a * b for a, b in zip(x, point, strict=True)), Decimal(0)) - low)
            (hit, hit_slope), (miss, miss_slope) = _minus_log(mean), _minus_log(1 - mean)
            won, lost = Decimal(float(successes)), Decimal(float(failures))
            slope = won * hit_slope - lost * miss_slope
            level += won * hit + lost * miss - slope * (mean + scale * low)
            normal = [n - slope * scale * one for n, one in zip(normal, x, strict=True)]
        return normal, level - Decimal(self.allowed)


def _minus_log(x: Decimal) -> tuple[Decimal, Decimal]:
    """-ln x and its slope, below EDGE those of its second-order polynomial there: never above -ln x."""
    if x >= EDGE:
        return -x.ln(), -1 / x
    beyond = (x - EDGE) / EDGE
    return -EDGE.ln() - beyond + beyond * beyond / 2, (beyond - 1) / EDGE
