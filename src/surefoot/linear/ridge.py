"""The ridge state: everything the observations say of theta. Its mathematics stand in `core/ridge.hpp`."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector
from surefoot.core import native

DRIFT_USABLE = 1e-3  # beyond this relative rounding error a width is not worth its name
REFRESH_EVERY = 1024  # observations between two fresh factorisations


def sized(name: str, dim: int) -> Any:
    """The core's class of that name for a dimension."""
    # For the paper's dimension every loop is unrolled, but in a build that had to be quick.
    return getattr(native, f"{name}{dim}", None) or getattr(native, f"{name}N")


class Ridge:
    """The ridge state with names.

    >>> ridge = Ridge(dim=2, ridge=0.5)
    >>> ridge.observe([1.0, 0.0], 3.0)
    >>> ridge.theta
    array([2., 0.])
    >>> round(ridge.width([1.0, 0.0]), 6)     # 1 / sqrt(0.5 + 1)
    0.816497
    """

    def __init__(self, *, dim: int, ridge: float, core: Any = None) -> None:
        self.core = sized("Ridge", dim)(dim, ridge) if core is None else core

    @property
    def count(self) -> int:
        """Observations taken in."""
        return int(self.core.count)

    @property
    def log_det(self) -> float:
        """ln(det V / ridge^d)."""
        return float(self.core.log_det)

    @property
    def drift(self) -> float:
        """Bound on the relative rounding error of a width."""
        return float(self.core.drift)

    @property
    def theta(self) -> Vector:
        """The ridge estimate V^-1 b."""
        theta: Vector = self.core.theta
        return theta

    @property
    def whitener(self) -> Matrix:
        """M, with M^T M = V^-1."""
        whitener: Matrix = self.core.whitener
        return whitener

    @property
    def gram(self) -> Matrix:
        """V = ridge I + sum x x^T."""
        gram: Matrix = self.core.gram
        return gram

    @property
    def moment(self) -> Vector:
        """b = sum x y."""
        moment: Vector = self.core.moment
        return moment

    def observe(self, x: ArrayLike, reward: float) -> None:
        """Take in one observation."""
        self.core.absorb(np.ascontiguousarray(x, dtype=np.float64), float(reward))

    def width(self, q: ArrayLike) -> float:
        """||q||_{V^-1}."""
        return float(self.core.width(np.ascontiguousarray(q, dtype=np.float64)))
