"""Facts: what is known of theta, each of which bounds <theta, x> from below for the pieces x it speaks of.

A ball and an ellipsoid (`surefoot.linear`) are facts; so is a linear inequality. A fact needs a `name` for the
reader and `lower(x)` for the proof; anything that has both can join.
"""

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Vector
from surefoot.values import Value

ALIGNMENT = 1e-12  # how far a piece may point away from a linear fact's direction, relative to its length
ROUNDING = 16.0 * 2.0**-53  # of a weight times a level, given away


class Fact(Protocol):
    """Something known of theta."""

    @property
    def name(self) -> str:
        """What a reader calls it."""
        ...

    def lower(self, q: ArrayLike, /) -> float:
        """A lower bound of <theta, q>, or -inf where this fact says nothing of q."""
        ...


class Linear(Value, frozen=True):
    """The fact <theta, normal> >= level; it bounds every nonnegative multiple of its normal.

    Known baseline rewards, floors and declared reward ranges are of this kind, and so are their sums over rounds.

    >>> floor = Linear(normal=np.array([1.0, 2.0]), level=0.5, name="floor")
    >>> round(floor.lower([3.0, 6.0]), 9), floor.lower([3.0, 0.0])
    (1.5, -inf)
    """

    normal: Vector
    level: float
    name: str

    def lower(self, q: ArrayLike, /) -> float:
        """level * mu for q = mu * normal with mu >= 0, its rounding given away; otherwise -inf."""
        piece = np.asarray(q, dtype=np.float64)
        square = float(self.normal @ self.normal)
        if square == 0.0:
            return 0.0 if not piece.any() else -math.inf
        weight = float(piece @ self.normal) / square
        beside = piece - weight * self.normal
        if weight < 0 or beside @ beside > ALIGNMENT**2 * (piece @ piece):
            return -math.inf
        return self.times(weight)

    def times(self, weight: float) -> float:
        """The bound for the normal so many times, its rounding given away."""
        bound = weight * self.level
        return bound - ROUNDING * abs(bound)


class Box(Value, frozen=True):
    """Every entry of theta lies in [low, high]: what a declared range of means says of plain arms.

    >>> round(Box(0.0, 1.0).lower([0.5, -2.0]), 9)
    -2.0
    """

    low: float
    high: float
    name = "declared range of every arm"

    def lower(self, q: ArrayLike, /) -> float:
        """The least <theta, q> over the box."""
        piece = np.asarray(q, dtype=np.float64)
        terms = np.where(piece < 0, self.high * piece, self.low * piece)
        return math.fsum((terms - ROUNDING * np.abs(terms)).tolist())

    def reach(self, dim: int) -> float:
        """How long theta can be."""
        return max(abs(self.low), abs(self.high)) * math.sqrt(dim)
