"""Facts: what is known of theta. Each bounds <theta, x> from below for the vectors x that it speaks of.

Balls and ellipsoids (`surefoot.linear`) are facts, and so are linear inequalities. A fact needs a `name` for the reader
and `lower(x)` for the proof; any object with both can join.
"""

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Vector
from surefoot.core import native
from surefoot.values import Value

ALIGNMENT = 1e-12  # how far a piece may point away from a linear fact's direction, relative to its length
ROUNDING: float = native.GIVEN_AWAY  # relative rounding error of a weight times a level


class Fact(Protocol):
    """Something known of theta: the protocol of everything that a proof may rest on.

    A fact of your own needs these two members. `surefoot.check` computes the bounds of balls, ellipsoids, boxes and
    linear facts by itself, and trusts `lower` of any other fact.

    `surefoot.prove` uses a fact for the question as a whole. If it also has `separate(theta)`, it is used for parts of
    the question as well: asked about a theta that it rules out, it returns a direction g with <theta, g> < lower(g),
    and None for any other. The search then knows <theta, g> >= lower(g), and asks again. Of several directions return
    the one that is broken by most for its length: at one that is broken by rounding alone the search ends.

    Examples
    --------
    >>> class Positive:
    ...     name = "sign of theta"
    ...
    ...     def lower(self, q):
    ...         return 0.0 if min(q) >= 0 else -math.inf
    ...
    ...     def separate(self, theta):
    ...         return np.eye(len(theta))[theta.argmin()] if theta.min() < 0 else None
    >>> fact: Fact = Positive()
    >>> fact.lower([1.0, 0.5])
    0.0
    >>> import surefoot
    >>> from surefoot.linear import Ball
    >>> proof = surefoot.prove([1.0, -0.5], [Ball(1.0), fact])
    >>> round(proof.value, 6), proof.reason()
    (-0.5, 'the sign of theta and the ball')
    >>> surefoot.check(proof, facts=[Ball(1.0), fact])
    """

    @property
    def name(self) -> str:
        """What a reader calls it."""
        ...

    def lower(self, q: ArrayLike, /) -> float:
        """A lower bound of <theta, q>.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The vector asked about.

        Returns
        -------
        float
            The bound, reduced by its rounding error; -inf if this fact says nothing of q.
        """
        ...


class Linear(Value, frozen=True):
    """The fact <theta, normal> >= level; it bounds every nonnegative multiple of its normal.

    Known baseline rewards, floors and declared reward ranges are of this kind, and so are their sums over rounds.

    Parameters
    ----------
    normal : ndarray of shape (dim,)
        The direction.
    level : float
        What <theta, normal> is at least.
    name : str
        What a reader calls it.

    Examples
    --------
    >>> floor = Linear(normal=np.array([1.0, 2.0]), level=0.5, name="floor")
    >>> round(floor.lower([3.0, 6.0]), 9), floor.lower([3.0, 0.0])
    (1.5, -inf)
    """

    normal: Vector
    level: float
    name: str

    def lower(self, q: ArrayLike, /) -> float:
        """A lower bound of <theta, q>.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The vector asked about.

        Returns
        -------
        float
            mu * level for q = mu * normal with mu >= 0, rounded down; otherwise -inf.
        """
        piece = np.asarray(q, dtype=np.float64)
        square = float(self.normal @ self.normal)
        # Of a normal of zeros only the zero vector is a multiple.
        if square == 0.0:
            return 0.0 if not piece.any() else -math.inf
        weight = float(piece @ self.normal) / square
        beside = piece - weight * self.normal
        if weight < 0 or beside @ beside > ALIGNMENT**2 * (piece @ piece):
            return -math.inf
        return self.times(weight)

    def times(self, weight: float) -> float:
        """The bound for a multiple of the normal.

        Parameters
        ----------
        weight : float
            The multiple, at least 0.

        Returns
        -------
        float
            weight * level, rounded down.
        """
        return float(native.multiple_below(self.level, weight))


class Box(Value, frozen=True):
    """Every entry of theta lies in [low, high]: what a declared range of means says of plain arms.

    Parameters
    ----------
    low : float
        Least entry.
    high : float
        Largest entry.

    Examples
    --------
    >>> round(Box(0.0, 1.0).lower([0.5, -2.0]), 9)
    -2.0
    """

    low: float
    high: float
    name = "declared range of every arm"

    def lower(self, q: ArrayLike, /) -> float:
        """The least <theta, q> over the box.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The vector asked about.

        Returns
        -------
        float
            The least value, rounded down.
        """
        piece = np.asarray(q, dtype=np.float64)
        terms = np.where(piece < 0, self.high * piece, self.low * piece)
        return math.fsum((terms - ROUNDING * np.abs(terms)).tolist())

    def separate(self, theta: Vector, /) -> Vector | None:
        """The axis along which theta lies furthest outside.

        Parameters
        ----------
        theta : ndarray of shape (dim,)
            The vector asked about.

        Returns
        -------
        ndarray or None
            An axis g with <theta, g> < lower(g); None if theta lies in the box.
        """
        beyond = np.maximum(self.low - theta, theta - self.high)
        worst = int(beyond.argmax())
        if beyond[worst] <= 0:
            return None
        axis = np.zeros(theta.size)
        axis[worst] = 1.0 if theta[worst] < self.low else -1.0
        return axis

    def reach(self, dim: int) -> float:
        """The largest ||theta||.

        Parameters
        ----------
        dim : int
            Length of theta.

        Returns
        -------
        float
            max(|low|, |high|) sqrt(dim).
        """
        return max(abs(self.low), abs(self.high)) * math.sqrt(dim)
