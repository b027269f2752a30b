"""What the data leave possible for theta: the ball of radius B, and the ellipsoid ||theta - center||_V <= radius.

Each gives `lower(q)` and `upper(q)`, the least and the largest <theta, q> over itself, widened by the rounding error of
the computation: the true value is never below `lower` nor above `upper`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector
from surefoot.core import native
from surefoot.linear.radius import RADII
from surefoot.values import Value

EPS = 2.0**-53  # unit roundoff of float64


class ConfidenceSet(Value, frozen=True):
    """What the data leave possible for theta: its least and largest <theta, q> in any direction q."""

    def support(self, q: ArrayLike) -> tuple[float, float]:
        """The middle of the range of <theta, q> over the set, and half of its width, rounded up."""
        raise NotImplementedError

    def reach(self, dim: int) -> float:
        """A bound on ||theta||, which has `dim` entries."""
        raise NotImplementedError

    def lower(self, q: ArrayLike) -> float:
        """The least <theta, q> over the set; never above the true least value."""
        mean, spread = self.support(q)
        return mean - spread

    def upper(self, q: ArrayLike) -> float:
        """The largest <theta, q> over the set; never below the true largest value."""
        mean, spread = self.support(q)
        return mean + spread


class Ball(ConfidenceSet, frozen=True):
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
        """0 and radius ||q||, rounded up."""
        return 0.0, float(native.ball_spread(self.radius, np.ascontiguousarray(q, dtype=np.float64)))

    def reach(self, dim: int) -> float:
        """The radius."""
        return self.radius


class Ellipsoid(ConfidenceSet, frozen=True):
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
        """<center, q> and radius ||q||_{V^-1}, rounded up."""
        center, whitener = np.ascontiguousarray(self.center), np.ascontiguousarray(self.whitener)
        mean, spread = native.careful_range(center, whitener, self.radius, np.ascontiguousarray(q, dtype=np.float64))
        return float(mean), float(spread)

    def reach(self, dim: int) -> float:
        """||center|| + radius ||whitener||, rounded up."""
        # The Frobenius norm, which is never below the spectral one.
        length = float(np.linalg.norm(self.center) + self.radius * np.linalg.norm(self.whitener))
        return length * (1.0 + 16.0 * dim * EPS)


def snapshot(settings: Any, ridge: Any) -> Ball | Ellipsoid:
    """The confidence set of a ridge state, as an object that later observations do not change."""
    # Without data every radius is at least sqrt(ridge) B, so that its ellipsoid would contain the ball.
    if ridge.count == 0:
        return Ball(float(settings.theta_bound))
    return Ellipsoid(ridge.theta, ridge.whitener, ridge.guarded_radius(ridge.radius(settings)), ridge.count)


def newest_set(core: Any) -> Ball | Ellipsoid:
    """The confidence set of a policy's state in the core.

    With the radius `likelihood` that is the ball: what the rewards say is a set of another shape, and no ellipsoid.
    """
    if core.settings.radius == RADII["likelihood"]:
        return Ball(float(core.settings.theta_bound))
    return snapshot(core.settings, core.ridge)
