"""Nested sets: the ball intersected with every ellipsoid so far, as in the paper's CLUCB2.

The least <theta, q> over the intersection is a second-order cone program. Its dual is a split of q into pieces, one
per set. Any split gives a valid bound, so the value reported is computed from the pieces, however accurate the solver
was. Most ellipsoids play no part: a working set is solved, and the sets that its minimiser violates join until none is
left. All ellipsoids are kept, so memory grows with the observations. If no theta is left at all, the data refute the
assumptions, and `is_empty` says so.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.linear.convex import minimise
from surefoot.linear.ellipsoid import Ball, Ellipsoid

EMPTY = 1e-6  # by how much, relative to the ball, a bound must be contradicted before the sets count as disjoint
VIOLATION = 1e-9  # how far outside a set, relative to its radius, the minimiser may lie
ROUNDS = 100  # a bound on how often the working set grows; stopping early stays valid
REMEMBERED = 8  # sets that were active lately start the next working set


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A lower bound of <theta, q> and the pieces of q that give it.

    Attributes
    ----------
    value : float
        The bound.
    pieces : tuple of (set, ndarray)
        Each piece with the set that bounds it; the pieces add up to q.

    Examples
    --------
    >>> Nested(Ball(1.0), dim=2).split(np.array([3.0, 4.0])).value
    -5.0...
    """

    value: float
    pieces: tuple[tuple[Ball | Ellipsoid, Vector], ...]


class Nested:
    """The intersection of the ball and every ellipsoid that was added.

    Parameters
    ----------
    ball : Ball
        What is assumed before any data.
    dim : int
        Length of theta.

    Examples
    --------
    >>> nested = Nested(Ball(1.0), dim=2)
    >>> nested.add(Ellipsoid(center=np.array([1.5, 0.0]), whitener=np.eye(2), radius=1.0, observations=1))
    >>> round(nested.lower([1.0, 0.0]), 6), round(nested.upper([1.0, 0.0]), 6)
    (0.5, 1.0)
    """

    def __init__(self, ball: Ball, *, dim: int) -> None:
        self.ball = ball
        self.dim = dim
        self.sets: list[Ball | Ellipsoid] = [ball]
        self._centers = np.zeros((1, dim))
        self._factors = np.eye(dim)[None] / ball.radius  # rows of L^T / radius: inside where ||factor (x - c)|| <= 1
        self._active: list[int] = []
        self.is_empty = False  # once no theta satisfies every set, none ever will

    def add(self, ellipsoid: Ellipsoid) -> None:
        """Intersect with one more ellipsoid.

        Parameters
        ----------
        ellipsoid : Ellipsoid
            The newest confidence set.
        """
        size = len(self.sets)
        # Room doubles, so that adding costs the same on average however many sets there are.
        if size == len(self._centers):
            self._centers = np.concatenate([self._centers, np.zeros_like(self._centers)])
            self._factors = np.concatenate([self._factors, np.zeros_like(self._factors)])
        inverse = _invert(ellipsoid.whitener)
        self._centers[size] = ellipsoid.center
        self._factors[size] = inverse.T / ellipsoid.radius
        self.sets.append(ellipsoid)

    def lower(self, q: Vector) -> float:
        """The least <theta, q> over the intersection.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        float
            A valid lower bound, whatever the solver's accuracy.
        """
        return self.split(q).value

    def upper(self, q: Vector) -> float:
        """The largest <theta, q> over the intersection.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        float
            A valid upper bound, whatever the solver's accuracy.
        """
        return -self.split(-np.asarray(q, dtype=np.float64)).value

    def split(self, q: Vector) -> Split:
        """The best split of q over the sets, and the lower bound of <theta, q> that it gives.

        Parameters
        ----------
        q : array_like of shape (dim,)
            The direction.

        Returns
        -------
        Split
            The bound and its pieces.
        """
        q = np.asarray(q, dtype=np.float64)
        length = float(np.linalg.norm(q))
        # Each set alone is a valid split: what remains if the solver fails.
        best = max((self._whole(q, index) for index in self._start()), key=lambda split: split.value)
        if length == 0.0 or len(self.sets) == 1:
            return best
        working = self._start()
        for _ in range(ROUNDS):
            theta, pieces = self._solve(q / length, working)
            best = max(best, self._certify(q, [(i, length * piece) for i, piece in pieces]), key=lambda s: s.value)
            if self.is_empty or best.value > self.ball.upper(q) + EMPTY * self.ball.radius * length:
                self.is_empty = True  # a lower bound above the ball's upper one refutes the sets all by itself
                return best
            excess = np.linalg.norm(
                np.einsum("kij,kj->ki", self._factors[: len(self.sets)], theta - self._centers[: len(self.sets)]),
                axis=1,
            )
            # The solver satisfies these up to its tolerance; to let one join again would go round in circles.
            excess[working] = 0.0
            worst = int(np.argmax(excess))
            if not excess[worst] > 1 + VIOLATION:
                self._remember(pieces)
                break
            working.append(worst)
        return best

    def optimistic(self, rows: Matrix) -> tuple[int, float]:
        """The row with the largest upper bound over the intersection, the first one on a tie.

        Rows are tried in the order of a cheap bound, the best over single sets, until no other can win.

        Parameters
        ----------
        rows : ndarray of shape (actions, dim)
            One feature row per action.

        Returns
        -------
        tuple of int and float
            The row and its upper bound.
        """
        cheap = np.min([_uppers(self.sets[i], rows) for i in self._start()], axis=0)
        best, highest = int(np.argmax(cheap)), -math.inf
        for row in np.argsort(-cheap, kind="stable"):
            # Within the solver's tolerance two rows are tied, and the first one wins.
            slack = 1e-9 * abs(highest) if highest > -math.inf else 0.0
            if cheap[row] < highest - slack:
                break
            exact = min(float(cheap[row]), self.upper(rows[row]))
            if exact > highest + slack or (exact >= highest - slack and row < best):
                best, highest = int(row), max(exact, highest)
        return best, highest

    def _start(self) -> list[int]:
        newest = len(self.sets) - 1
        return list(dict.fromkeys([0, newest, *self._active]))

    def _remember(self, pieces: list[tuple[int, Vector]]) -> None:
        used = [i for i, piece in pieces if np.linalg.norm(piece) > 1e-9]
        self._active = list(dict.fromkeys(used + self._active))[:REMEMBERED]

    def _whole(self, q: Vector, index: int) -> Split:
        return Split(self.sets[index].lower(q), ((self.sets[index], q),))

    def _certify(self, q: Vector, pieces: list[tuple[int, Vector]]) -> Split:
        """The bound that a split gives; what the solver's pieces miss of q goes to the ball."""
        # Of a program without a solution the solver may return multipliers of any size, or NaN.
        parts = {i: piece for i, piece in pieces if i > 0 and piece.any() and np.abs(piece).max() <= 1e300}
        # Rounded once: pieces that nearly cancel would leave rounding that no bound covers.
        columns = zip(q, *(-piece for piece in parts.values()), strict=True)
        parts[0] = np.array([math.fsum(column) for column in columns])
        split = tuple((self.sets[i], piece) for i, piece in sorted(parts.items()))
        return Split(math.fsum(known.lower(piece) for known, piece in split), split)

    def _solve(self, q: Vector, working: list[int]) -> tuple[Vector, list[tuple[int, Vector]]]:
        """Minimise <theta, q> over the working sets: the minimiser, and the dual's pieces of q."""
        minimum = minimise(q, list(self._factors[working]), list(self._centers[working]))
        pieces = list(zip(working, minimum.pieces, strict=True))
        if minimum.is_empty:  # an ill-conditioned set may mislead the solver: its own split of 0 must prove it
            self.is_empty |= self._certify(np.zeros(self.dim), pieces).value > 0.0
        # It only says which set joins next, so that a theta of NaN may be replaced by anything.
        return np.nan_to_num(minimum.theta), pieces

    def ellipsoids(self) -> Iterator[Ellipsoid]:
        """Every ellipsoid, oldest first."""
        return (known for known in self.sets if isinstance(known, Ellipsoid))

    def state(self) -> dict[str, Any]:
        """Plain arrays from which `restore` builds the same sets."""
        sets = list(self.ellipsoids())
        return {
            "nested_centers": np.array([e.center for e in sets]).reshape(-1, self.dim),
            "nested_whiteners": np.array([e.whitener for e in sets]).reshape(-1, self.dim, self.dim),
            "nested_radii": np.array([e.radius for e in sets]),
            "nested_observations": np.array([e.observations for e in sets], dtype=np.int64),
            "nested_active": np.array(self._active, dtype=np.int64),
            "nested_is_empty": np.array(self.is_empty),
        }

    def restore(self, arrays: Any) -> None:
        """Add every ellipsoid of a saved state, and start from the same working set.

        Parameters
        ----------
        arrays : mapping
            What `state` returned.
        """
        saved = zip(
            arrays["nested_centers"],
            arrays["nested_whiteners"],
            arrays["nested_radii"],
            arrays["nested_observations"],
            strict=True,
        )
        for center, whitener, radius, observations in saved:
            self.add(Ellipsoid(np.array(center), np.array(whitener), float(radius), int(observations)))
        self._active = [int(i) for i in arrays["nested_active"]]
        self.is_empty = bool(arrays["nested_is_empty"])


def _invert(lower: Matrix) -> Matrix:
    """The inverse of a lower triangular matrix, row by row."""
    inverse = np.eye(len(lower))
    for i, row in enumerate(lower):
        inverse[i] = (inverse[i] - row[:i] @ inverse[:i]) / row[i]
    return inverse


def _uppers(known: Ball | Ellipsoid, rows: Matrix) -> Vector:
    """The upper bound of every row over one set, without the guard against rounding: only the order matters here."""
    if isinstance(known, Ball):
        uppers: Vector = known.radius * np.linalg.norm(rows, axis=1)
        return uppers
    widths = np.linalg.norm(rows @ known.whitener.T, axis=1)
    return np.asarray(rows @ known.center + known.radius * widths, dtype=np.float64)
