"""What the data leave possible for theta: the ball of radius B, and the ellipsoid ||theta - center||_V <= radius.

Each gives `lower(q)` and `upper(q)`, the least and the largest <theta, q> over itself, widened by the rounding error of
the computation: the true value is never below `lower` nor above `upper`.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_sum
from surefoot.linear.radius import THETA_BOUND, radius_of
from surefoot.linear.ridge import DRIFT_USABLE
from surefoot.linear.ridge_layout import COUNT, DIM, DRIFT, ENERGY, EPS, SHORT, theta_of, whitener_of
from surefoot.values import Value

UNKNOWN = 1e300  # the radius of a set that says nothing: beyond all bounds, and still a number


@compiled
def ball_spread(bound: float, q: Vector, at: int, d: int) -> float:
    """B ||q||: how far <theta, q> reaches to both sides of 0 over the ball."""
    total = 0.0
    for i in range(d):
        total += q[at + i] * q[at + i]
    # Rounded up: d terms, a root and two products cost less than d + 4 roundings.
    return bound * math.sqrt(total) * (1.0 + (d + 4.0) * EPS)


def _ellipsoid_support(flat: Vector, start: int, radius: float, q: Vector, at: int, d: int) -> tuple[float, float]:
    """<center, q> and how far <theta, q> reaches to both sides of it: radius ||q||_{V^-1}.  (paper, eq. 5)

    The center stands in the flat array from `start` on, and the whitener behind it; q in its own array, from `at` on.
    """
    mean, size, total = 0.0, 0.0, 0.0
    row = start + d
    for i in range(d):
        mean += flat[start + i] * q[at + i]
        size += abs(flat[start + i] * q[at + i])
        entry = 0.0
        for j in range(i + 1):
            entry += flat[row + j] * q[at + j]
        total += entry * entry
        row += d
    return mean, radius * math.sqrt(total) + (d + 4.0) * EPS * size


_support_short, _support_long = compiled(_ellipsoid_support), compiled_sum(_ellipsoid_support)


@compiled
def ellipsoid_support(flat: Vector, start: int, radius: float, q: Vector, at: int, d: int) -> tuple[float, float]:
    """<center, q>, and how far <theta, q> reaches to both sides of it over an ellipsoid."""
    if d < SHORT:
        return _support_short(flat, start, radius, q, at, d)
    return _support_long(flat, start, radius, q, at, d)


@compiled
def careful_support(flat: Vector, radius: float, q: Vector, d: int) -> tuple[float, float]:
    """The same over the ellipsoid exactly as it is written down; the spread includes all rounding of this sum."""
    mean, size, total, sizes = 0.0, 0.0, 0.0, 0.0
    row = d
    for i in range(d):
        mean += flat[i] * q[i]
        size += abs(flat[i] * q[i])
        entry, large = 0.0, 0.0
        for j in range(i + 1):
            entry += flat[row + j] * q[j]
            large += abs(flat[row + j] * q[j])
        total += entry * entry
        sizes += large * large
        row += d
    off = (d + 8.0) * EPS
    spread = radius * (math.sqrt(total) * (1.0 + off) + off * math.sqrt(sizes))
    return mean, spread + off * (size + spread)


@compiled
def guarded_radius(state: Vector, beta: float) -> float:
    """The radius beta, widened by what rounding may have done to the center and to the whitener.

    If rounding may have done more than can be bounded, the ellipsoid says nothing: its radius is beyond all bounds.
    """
    # Written so that a drift of NaN says nothing, too.
    if not state[DRIFT] <= DRIFT_USABLE:
        return UNKNOWN
    return widened(beta, state[DRIFT], state[ENERGY], state[DIM])


@compiled
def widened(radius: float, drift: float, energy: float, d: float) -> float:
    """A radius with room for a center that is off by 2 drift sqrt(energy), and for widths that are off by drift."""
    return float((radius + 2.0 * drift * math.sqrt(energy)) * (1.0 + drift + 4.0 * (d + 4.0) * EPS))


class Ball(Value, frozen=True):
    """Every theta with ||theta|| <= radius: what is assumed before any data, C_1 in the paper.

    Parameters
    ----------
    radius : float
        B, the declared bound on ||theta||.

    Examples
    --------
    >>> Ball(radius=2.0).lower([3.0, 4.0])
    -10.0...
    """

    radius: float
    name = "ball"

    def support(self, q: ArrayLike) -> tuple[float, float]:
        """Mean and spread of <theta, q> over the ball.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        tuple of float
            0 and radius ||q||, rounded up.
        """
        vector = np.asarray(q, dtype=np.float64)
        return 0.0, ball_spread(self.radius, vector, 0, vector.size)

    def reach(self, dim: int) -> float:
        """The largest ||theta||.

        Parameters
        ----------
        dim : int
            Length of theta.

        Returns
        -------
        float
            The radius.
        """
        return self.radius

    def lower(self, q: ArrayLike) -> float:
        """The least <theta, q> over the ball.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        float
            Never above the true least value.
        """
        return -self.support(q)[1]

    def upper(self, q: ArrayLike) -> float:
        """The largest <theta, q> over the ball.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        float
            Never below the true largest value.
        """
        return self.support(q)[1]


class Ellipsoid(Value, frozen=True):
    """Every theta with ||theta - center||_V <= radius, where whitener^T whitener = V^-1.  (paper, eq. 5)

    Parameters
    ----------
    center : ndarray of shape (dim,)
        The ridge estimate of theta.
    whitener : ndarray of shape (dim, dim)
        Lower triangular; the inverse of the Cholesky factor of V.
    radius : float
        beta, the size of the ellipsoid in the norm of V.
    observations : int
        After how many observations it was formed, so that an auditor can form it again.

    Examples
    --------
    >>> e = Ellipsoid(center=np.array([1.0, 0.0]), whitener=np.eye(2), radius=0.5, observations=7)
    >>> round(e.lower([1.0, 0.0]), 9), round(e.upper([0.0, 2.0]), 9)
    (0.5, 1.0)
    """

    center: Vector
    whitener: Matrix
    radius: float
    observations: int
    name = "ellipsoid"

    def support(self, q: ArrayLike) -> tuple[float, float]:
        """Mean and spread of <theta, q> over the ellipsoid.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        tuple of float
            <center, q> and radius ||q||_{V^-1}, rounded up.
        """
        flat = np.concatenate([self.center, self.whitener.ravel()])
        return careful_support(flat, self.radius, np.asarray(q, dtype=np.float64), self.center.size)

    def reach(self, dim: int) -> float:
        """A bound on ||theta||.

        Parameters
        ----------
        dim : int
            Length of theta.

        Returns
        -------
        float
            ||center|| + radius ||whitener||, rounded up.
        """
        # The Frobenius norm, which is never below the spectral one.
        length = float(np.linalg.norm(self.center) + self.radius * np.linalg.norm(self.whitener))
        return length * (1.0 + 16.0 * dim * EPS)

    def lower(self, q: ArrayLike) -> float:
        """The least <theta, q> over the ellipsoid.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        float
            Never above the true least value.
        """
        mean, spread = self.support(q)
        return mean - spread

    def upper(self, q: ArrayLike) -> float:
        """The largest <theta, q> over the ellipsoid.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        float
            Never below the true largest value.
        """
        mean, spread = self.support(q)
        return mean + spread


def snapshot(settings: Vector, state: Vector) -> Ball | Ellipsoid:
    """The confidence set of a ridge state, as an object that later observations do not change."""
    # Without data every radius is at least sqrt(ridge) B, so that its ellipsoid would contain the ball.
    if state[COUNT] == 0.0:
        return Ball(float(settings[THETA_BOUND]))
    return Ellipsoid(
        center=theta_of.function(state).copy(),
        whitener=whitener_of.function(state).copy(),
        radius=guarded_radius(state, radius_of(settings, state)),
        observations=int(state[COUNT]),
    )
