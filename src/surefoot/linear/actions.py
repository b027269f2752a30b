"""Action sets: where a policy looks for its optimistic action.

Finitely many rows, a catalogue that stays the same from round to round, and three sets without rows: a Euclidean ball,
a polytope by its vertices, and a polytope by inequalities. Each finds the maximum over a and theta of <theta, phi_a>.
"""

import hashlib
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, finite_array, positive, real_array
from surefoot.errors import AssumptionError, InputError, SolverError
from surefoot.linear.convex import maximise
from surefoot.linear.ellipsoid import Ball, Ellipsoid

INSIDE = 1e-9  # how far outside a set a point may lie, relative to the set's size, and still count as inside
EMPTY_POLYTOPE = "`matrix x <= limits` must have a solution, but no point satisfies it."
MOST_BASES = 20_000  # vertex enumeration tries every choice of dim inequalities, up to this many


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The optimistic action that a set found.

    Attributes
    ----------
    features : ndarray
        Its feature vector.
    upper : float
        Its upper confidence bound.
    method : str
        How it was found.
    gap : float
        By how much another action might have a larger bound; 0 if the search was exact.

    Examples
    --------
    >>> Vertices([[1.0, 0.0], [0.0, 2.0]]).optimistic(Ball(1.0)).method
    'vertices'
    """

    features: Vector
    upper: float
    method: str
    gap: float = 0.0


class ActionSet(ABC):
    """Feature vectors that a policy may choose from; pass one to `decide` in place of rows.

    A set of your own defines `dim`, `longest`, `optimistic` and `contains`.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a feature vector."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """Length of the longest feature vector in the set."""

    @abstractmethod
    def optimistic(self, confidence: Ball | Ellipsoid) -> Optimum:
        """The feature vector with the largest <theta, phi> over a confidence set.

        Parameters
        ----------
        confidence : Ball or Ellipsoid
            The confidence set.

        Returns
        -------
        Optimum
            The vector, its upper bound, and how it was found.
        """

    @abstractmethod
    def contains(self, x: Vector) -> bool:
        """Whether a feature vector belongs to the set.

        Parameters
        ----------
        x : ndarray of shape (dim,)
            The feature vector.

        Returns
        -------
        bool
            True inside the set, up to rounding.
        """

    def check_length(self, bound: float) -> None:
        """Check the set against the declared bound D.

        Parameters
        ----------
        bound : float
            `feature_bound` of the policy.

        Raises
        ------
        AssumptionError
            If the set reaches beyond the bound.
        """
        if not self.longest <= bound * (1 + LENGTH_TOLERANCE):
            raise AssumptionError(
                f"Every feature vector must satisfy `||phi|| <= feature_bound`, but this {type(self).__name__} reaches "
                f"length {self.longest:.6g}, which is {self.longest - bound:.3g} more than feature_bound={bound:.6g}. "
                "Rescale the features or declare a larger bound."
            )


class RowSet(ActionSet):
    """Actions given as the rows of an array."""

    def __init__(self, rows: ArrayLike) -> None:
        # A copy: what was checked must not change with the caller's array.
        self.rows: Matrix = finite_array("rows", rows, ndim=2).copy()
        if self.rows.size == 0:
            raise InputError(f"`rows` must hold at least one action and one feature, but got shape {self.rows.shape}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(actions={len(self.rows)}, dim={self.dim})"

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    @property
    def longest(self) -> float:
        """The length of the longest row."""
        return float(np.linalg.norm(self.rows, axis=1).max())

    def optimistic(self, confidence: Ball | Ellipsoid) -> Optimum:
        """The row with the largest upper bound, the first one on a tie."""
        uppers = [confidence.upper(row) for row in self.rows]
        best = int(np.argmax(uppers))
        return Optimum(self.rows[best], uppers[best], "rows")

    def contains(self, x: Vector) -> bool:
        """Whether x is one of the rows."""
        return bool((self.rows == x).all(axis=1).any())


class Catalogue(RowSet):
    """The same rows in every round: a policy keeps their means and widths between rounds.

    Use it where the actions do not change; a policy caches one catalogue at a time. Rows are copied and checked once.

    Parameters
    ----------
    rows : array_like of shape (actions, dim)
        One feature row per action.

    Raises
    ------
    InputError
        If the rows are empty or not finite.

    Examples
    --------
    >>> catalogue = Catalogue([[1.0, 0.0], [0.0, 2.0]])
    >>> catalogue
    Catalogue(actions=2, dim=2)
    >>> catalogue.longest
    2.0
    """

    def __init__(self, rows: ArrayLike) -> None:
        super().__init__(rows)
        self.columns: Matrix = np.ascontiguousarray(self.rows.T)
        # With the shape, since 2 x 3 and 3 x 2 rows may share their bytes.
        self.digest = hashlib.sha256(repr(self.rows.shape).encode() + self.rows.tobytes()).hexdigest()


class Vertices(ActionSet):
    """A polytope given by its vertices. A convex function peaks at a vertex, so the optimum is exact.

    Parameters
    ----------
    vertices : array_like of shape (vertices, dim)
        The vertices; points inside do no harm.

    Raises
    ------
    InputError
        If the vertices are empty or not finite.

    Examples
    --------
    >>> triangle = Vertices([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> triangle.optimistic(Ball(1.0)).features
    array([0., 2.])
    """

    def __init__(self, vertices: ArrayLike) -> None:
        self._corners = RowSet(vertices)

    @property
    def dim(self) -> int:
        """Length of a vertex."""
        return self._corners.dim

    @property
    def longest(self) -> float:
        """Length of the longest vertex."""
        return self._corners.longest

    def optimistic(self, confidence: Ball | Ellipsoid) -> Optimum:
        """The vertex with the largest upper bound."""
        best = self._corners.optimistic(confidence)
        return Optimum(best.features, best.upper, "vertices")

    def contains(self, x: Vector) -> bool:
        """Whether x is a convex combination of the vertices, by a linear program."""
        rows = self._corners.rows
        middle = rows.mean(axis=0)
        size = float(np.abs(rows - middle).max()) or 1.0
        # The least total distance between x and a mixture; slack in both directions makes it always feasible.
        gap = np.eye(self.dim)
        sums = np.hstack([(rows - middle).T / size, gap, -gap])
        weights = np.concatenate([np.ones(len(rows)), np.zeros(2 * self.dim)])
        limits = np.concatenate([(x - middle) / size, [1.0], np.zeros(weights.size)])
        matrix = np.vstack([sums, weights, -np.eye(weights.size)])
        nearest = maximise(weights - 1.0, matrix, limits, equalities=self.dim + 1)
        return nearest.status == "solved" and float((1.0 - weights) @ nearest.x) <= 1e-7


class EuclideanBall(ActionSet):
    """All feature vectors within `radius` of `center`; the optimum solves a trust-region problem.

    Parameters
    ----------
    center : array_like of shape (dim,)
        Center of the ball.
    radius : float
        Its radius.

    Raises
    ------
    InputError
        If the center is not finite.
    ConfigError
        If the radius is not positive.

    Examples
    --------
    >>> EuclideanBall(center=[1.0, 0.0], radius=0.5).optimistic(Ball(2.0)).features
    array([1.5, 0. ])
    """

    def __init__(self, *, center: ArrayLike, radius: float) -> None:
        self.center: Vector = finite_array("center", center, ndim=1).copy()
        self.radius = positive("radius", radius, hint="radius is the size of the ball of feature vectors.")

    @property
    def dim(self) -> int:
        """Length of the center."""
        return int(self.center.size)

    @property
    def longest(self) -> float:
        """Distance of the furthest point from the origin."""
        return float(np.linalg.norm(self.center)) + self.radius

    def optimistic(self, confidence: Ball | Ellipsoid) -> Optimum:
        """Maximise <theta, center> + radius ||theta|| over theta; the best phi lies on the sphere, along theta."""
        if isinstance(confidence, Ball):
            length = float(np.linalg.norm(self.center))
            direction = self.center / length if length > 0 else np.eye(self.center.size)[0]
            return Optimum(self.center + self.radius * direction, confidence.radius * self.longest, "ball of theta")
        theta, gap = furthest(
            confidence.center, confidence.whitener, confidence.radius, linear=self.center, weight=self.radius
        )
        best: Vector = self.center + self.radius * theta / max(float(np.linalg.norm(theta)), np.finfo(float).tiny)
        return Optimum(best, confidence.upper(best), "trust region", gap)

    def contains(self, x: Vector) -> bool:
        """Whether x lies in the ball."""
        return float(np.linalg.norm(x - self.center)) <= self.radius * (1 + INSIDE)


class Polytope(ActionSet):
    """A bounded polytope {x: matrix x <= limits}.

    If there are few enough choices of `dim` inequalities, the vertices are enumerated and the optimum is exact.
    Otherwise the confidence set is widened to a polytope with 2 dim corners (||.||_1 <= sqrt(d) ||.||_2), which costs 2
    dim linear programs (Dani et al. 2008). `Optimum.method` tells which one ran, and `gap` bounds what it missed.

    Parameters
    ----------
    matrix : array_like of shape (inequalities, dim)
        Left-hand sides.
    limits : array_like of shape (inequalities,)
        Right-hand sides.

    Raises
    ------
    InputError
        If the inequalities are not finite, do not match, have no solution, or leave the polytope unbounded.
    SolverError
        If a linear program ends without an answer.

    Examples
    --------
    >>> box = Polytope(matrix=[[1, 0], [-1, 0], [0, 1], [0, -1]], limits=[1, 0, 2, 0])
    >>> round(box.longest, 6), box.optimistic(Ball(1.0)).method
    (2.236068, 'vertex enumeration')
    """

    def __init__(self, *, matrix: ArrayLike, limits: ArrayLike) -> None:
        self.matrix: Matrix = finite_array("matrix", matrix, ndim=2).copy()
        self.limits: Vector = finite_array("limits", limits, ndim=1).copy()
        if len(self.matrix) != len(self.limits):
            raise InputError(
                f"`matrix` and `limits` must have as many rows, but got {len(self.matrix)} and {len(self.limits)}."
            )
        self._dim = int(self.matrix.shape[1])
        if self.matrix.size == 0:
            raise InputError(f"`matrix` must hold at least one inequality, but got shape {self.matrix.shape}.")
        # These programs also refuse a polytope that is empty or unbounded.
        box = [(-self._extreme(-axis), self._extreme(axis)) for axis in np.eye(self.dim)]
        self._box = float(np.linalg.norm(np.abs(box).max(axis=1)))
        self._corners = self._enumerate() if math.comb(len(self.matrix), self.dim) <= MOST_BASES else None

    @property
    def dim(self) -> int:
        """Number of unknowns."""
        return self._dim

    @property
    def longest(self) -> float:
        """Length of the longest vertex or, where vertices are not enumerated, of the bounding box's furthest corner."""
        return self._corners.longest if self._corners is not None else self._box

    def optimistic(self, confidence: Ball | Ellipsoid) -> Optimum:
        """The best vertex, or the best of 2 dim linear programs."""
        if self._corners is not None:
            best = self._corners.optimistic(confidence)
            return Optimum(best.features, best.upper, "vertex enumeration")
        root = math.sqrt(self.dim)
        center, edges = np.zeros(self.dim), np.eye(self.dim) * confidence.radius * root
        if isinstance(confidence, Ellipsoid):
            center, edges = confidence.center, confidence.whitener * confidence.radius * root
        points = [self._argmax(center + sign * edge) for edge in edges for sign in (1.0, -1.0)]
        relaxed = max(float((center + sign * e) @ p) for (e, sign), p in zip(_signed(edges), points, strict=True))
        uppers = [confidence.upper(point) for point in points]
        best_row = int(np.argmax(uppers))
        return Optimum(points[best_row], uppers[best_row], "l1 relaxation", max(0.0, relaxed - uppers[best_row]))

    def contains(self, x: Vector) -> bool:
        """Whether x satisfies every inequality."""
        slack = INSIDE * (np.abs(self.limits) + np.linalg.norm(self.matrix, axis=1) * self._box)
        return bool((self.matrix @ x <= self.limits + slack).all())

    def _enumerate(self) -> RowSet:
        corners = []
        for basis in itertools.combinations(range(len(self.matrix)), self.dim):
            part = self.matrix[list(basis)]
            if np.linalg.matrix_rank(part) == self.dim:
                corner: Vector = np.linalg.solve(part, self.limits[list(basis)]).astype(np.float64)
                if self.contains(corner):
                    corners.append(corner)
        if not corners:
            raise InputError(EMPTY_POLYTOPE)
        # Corners where more than dim inequalities meet are found several times, up to rounding.
        _, distinct = np.unique(np.round(np.array(corners) / (self._box or 1.0), 9), axis=0, return_index=True)
        return RowSet(np.array(corners)[distinct])

    def _extreme(self, direction: Vector) -> float:
        return float(self._argmax(direction) @ direction)

    def _argmax(self, direction: Vector) -> Vector:
        best = maximise(direction, self.matrix, self.limits)
        if best.status == "empty":
            raise InputError(EMPTY_POLYTOPE)
        if best.status == "unbounded":
            raise InputError("A polytope must be bounded, but this one is not. Add limits, such as a box.")
        if best.status == "failed":
            raise SolverError(f"The linear program over the polytope ended without an answer: {best.solver_status}")
        return best.x


def _signed(edges: Matrix) -> list[tuple[Vector, float]]:
    return [(edge, sign) for edge in edges for sign in (1.0, -1.0)]


def rows_in(features: ArrayLike | Catalogue) -> Matrix:
    """The rows of a question: those of a catalogue, or an array that is looked at."""
    return features.rows if isinstance(features, Catalogue) else real_array("features", features, ndim=2)


LENGTH_TOLERANCE = 1e-12  # a row may be longer than D by this share, for the rounding of D itself


STEPS = 80  # bisection and golden-section steps; each stops earlier once the interval is a rounding error


def furthest(center: Vector, whitener: Matrix, radius: float, *, linear: Vector, weight: float) -> tuple[Vector, float]:
    """The theta of the ellipsoid with the largest <theta, linear> + weight ||theta||, and a bound on what it misses."""
    squares, vectors = np.linalg.eigh(whitener @ whitener.T)
    axes = radius * (vectors.T @ whitener)  # theta = center + u @ axes

    def solve(scale: float) -> tuple[float, Vector]:
        curvature = weight / scale
        pull = axes @ (linear + curvature * center)
        best, most = center, -math.inf
        for u in _trust_region(curvature * radius**2 * squares, pull):
            theta = center + u @ axes
            value = float(theta @ linear) + weight * (float(theta @ theta) / scale + scale) / 2
            if value > most:
                best, most = theta, value
        return most, best

    reach = float(np.linalg.norm(center)) + radius * math.sqrt(max(squares[-1], 0.0))
    # The minimum over s is taken at s = ||theta||, so no s beyond the reach is needed.
    scale = reach if not linear.any() else _golden(lambda s: solve(s)[0], reach * 1e-6, reach)
    bound, theta = solve(scale)
    # With a linear part the climb may end at a local maximum: start from the ends of every axis, too.
    starts = [theta] if not linear.any() else [theta, *(center + axes), *(center - axes)]
    tops = [_climb(start, center, axes, linear, weight) for start in starts]
    values = [float(top @ linear) + weight * float(np.linalg.norm(top)) for top in tops]
    best = int(np.argmax(values))
    gap = 0.0 if not linear.any() else max(0.0, bound - values[best])
    return tops[best], gap


def _trust_region(curvature: Vector, pull: Vector) -> list[Vector]:
    """All candidates for the maximiser of u.diag(curvature).u / 2 + pull.u over ||u|| <= 1, curvature ascending."""
    top = curvature[-1]
    # Equal top eigenvalues differ by rounding; the whole eigenspace must count as the top.
    is_top = curvature >= top * (1 - 1e-14)
    if np.abs(pull[is_top]).max() <= 1e-14 * (np.abs(pull).max() + top):
        rest = np.where(is_top, 0.0, pull / np.where(is_top, 1.0, top - curvature))
        if rest @ rest < 1:  # the hard case: the rest of the length goes along the top axis, to either side
            side = np.zeros_like(rest)
            side[-1] = math.sqrt(1 - rest @ rest)
            return [rest + side, rest - side]
    # ||u|| falls as the shift grows, and at shift = ||pull|| it is at most 1.
    low, high = 0.0, float(np.linalg.norm(pull))
    for _ in range(STEPS):
        shift = (low + high) / 2
        if np.linalg.norm(pull / (top - curvature + shift)) > 1:
            low = shift
        else:
            high = shift
    # `high`, for at low = 0 a denominator may be 0.
    u = pull / (top - curvature + high)
    unit: Vector = u / np.linalg.norm(u)
    return [unit]


def _climb(theta: Vector, center: Vector, axes: Matrix, linear: Vector, weight: float) -> Vector:
    """Polish: the objective is convex, so moving to the maximiser of its tangent never loses."""
    for _ in range(STEPS):
        length = float(np.linalg.norm(theta))
        slope = axes @ (linear + (weight / length) * theta) if length > 0 else axes @ linear
        size = float(np.linalg.norm(slope))
        if size == 0:
            return theta
        moved = center + (slope / size) @ axes
        if np.linalg.norm(moved - theta) <= 1e-15 * np.linalg.norm(moved):
            return moved
        theta = moved
    return theta


def _golden(function: Callable[[float], float], low: float, high: float) -> float:
    """The minimiser of a convex function on an interval."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(STEPS):
        if high - low <= 1e-13 * high:
            break
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = function(b)
    return (low + high) / 2
