"""What the learned rewards say of theta, from scratch: V and b by plain sums, everything else by a fresh
eigendecomposition V = Q diag(e) Q^T.

The policies keep a triangular factor up to date row by row. Nothing of that is here: a factor that drifted, or an
update that was wrong, shows as a difference.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surefoot.experiment.audit.sums import Matrix, Sum, Total, Vector, Whole, whole

REFINEMENTS = 3
EPS = 2.0**-53
USABLE = 1e-2  # beyond this blur plain floats say nothing
REFUTED, USABLE_RATIO = 1e-5, 1e4  # a root so far below 0 is no rounding, where eigenvalues lie no further apart
DUAL_SHARES = (1.0, 0.001, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 100.0)  # ridges that a `dual` proof may be read at

Solve = Callable[[Vector], Vector]


@dataclass(frozen=True)
class Knowledge:
    """What was declared before the first round, as far as a confidence set depends on it."""

    kind: str
    dim: int
    delta: float
    noise: float
    ridge: float
    theta_bound: float
    feature_bound: float
    misspecification: float = 0.0


class Exact:
    """V = ridge I + sum x x^T and b = sum x y to twice the digits, for where rounding would decide.

    squares: of the rewards, summed up; b^T V^-1 b is at most that
    """

    def __init__(
        self, gram: tuple[Matrix, Matrix], moment: tuple[Vector, Vector], ridge: float, squares: float
    ) -> None:
        self._gram, self._moment, self.ridge, self._squares = gram, moment, ridge, squares

    @cached_property
    def _v(self) -> Whole:
        high, low = self._gram
        return whole(high.ravel()) + whole(low.ravel()) + whole(self.ridge * np.eye(len(high)).ravel())

    @cached_property
    def _b(self) -> Whole:
        return whole(self._moment[0]) + whole(self._moment[1])

    def mean_and_width(self, q: Vector, solve: Solve) -> tuple[float, float, float]:
        """<V^-1 b, q> and an upper bound of ||q||_{V^-1}; then how far the first may be off.

        With y and r = q - V y, <V^-1 b, q> differs from <b, y> by <V^-1 b, r> <= ||b||_{V^-1} |r| / sqrt(ridge).
        """
        y, rest = self._solved(whole(q), solve)
        width = math.sqrt(self._square(whole(q), y, rest)[1])
        return self._b @ y, width, math.sqrt(self._squares * (rest @ rest) / self.ridge)

    def energy(self, solve: Solve) -> tuple[float, float]:
        """What b^T V^-1 b is at least and at most."""
        return self._square(self._b, *self._solved(self._b, solve))

    def _square(self, x: Whole, y: Whole, rest: Whole) -> tuple[float, float]:
        """Bounds of ||x||^2_{V^-1} = <x, y> + <y, r> + ||r||^2_{V^-1}, where r = x - V y and V^-1 <= I / ridge."""
        least = x @ y + y @ rest
        return max(0.0, least), max(0.0, least + (rest @ rest) / self.ridge)

    def _solved(self, x: Whole, solve: Solve) -> tuple[Whole, Whole]:
        """Some y with V y close to x, and what is left of x, exactly."""
        y, rest = whole(np.zeros(len(x.parts))), x
        for _ in range(REFINEMENTS):
            y = y + whole(solve(rest.floats()))
            rest = x + y.turned(self._v)
        return y, rest


class Ellipsoid:
    """||theta - center||_V <= radius, with V = Q diag(e) Q^T, after `observations` rewards were learned.

    most:    what rounding lets the radius be at most; `sharpen` tells that to more digits, where it can be told
    """

    def __init__(
        self,
        axes: Matrix,
        values: Vector,
        projected: Vector,
        radius: float,
        most: float,
        observations: int,
        exact: Exact,
        sharpen: Callable[[], float] | None = None,
    ) -> None:
        self._axes, self._values, self._exact, self._sharpen = axes, values, exact, sharpen
        self._center, self.radius, self.observations = projected / values, radius, observations
        self.dim = axes.shape[0]
        self.conditioning = float(values[-1] / _least(values, exact.ridge)[0])
        # How far rounding may move a width or the center: as far as the conditioning of V amplifies it.
        self.blur = 64.0 * self.dim * EPS * self.conditioning
        self.rounding = 1e-9 + self.blur
        self._most, self.radius_rounding = most, most - radius
        self.energy = float(projected @ self._center)
        self.reach = math.sqrt(float(self._center @ self._center))  # length of the center

    @property
    def center(self) -> Vector:
        """The ridge estimate V^-1 b."""
        center: Vector = self._axes @ self._center
        return center

    def mean_and_width(self, q: Vector) -> tuple[float, float]:
        """<center, q> and ||q||_{V^-1}."""
        turned = q @ self._axes
        return float(self._center @ turned), math.sqrt(float(turned @ (turned / self._values)))

    def lower(self, q: Vector) -> float:
        """The least <theta, q> over the ellipsoid."""
        mean, width = self.mean_and_width(q)
        return mean - self.radius * width

    def at_least(self, q: Vector, share: float = math.inf) -> float:
        """A bound that the least <theta, q> over the ellipsoid never falls below: all rounding is given away.

        Where that is more than a share of what it is made of, V y = q is solved until it hardly matters.
        """
        mean, width = self.mean_and_width(q)
        size = self.reach * float(np.linalg.norm(q)) + self._most * width
        given = self.blur * width * (self._most + math.sqrt(self.energy)) + self.radius_rounding * width
        given += 64.0 * EPS * size
        crude = mean - self.radius * width - given if self.blur < USABLE else -math.inf
        if given <= share * (abs(mean) + self._most * width) and crude > -math.inf:
            return crude
        most = self._most if self._sharpen is None else min(self._most, self._sharpen())
        mean, width, error = self._exact.mean_and_width(q, _solver(self._axes, self._values))
        return max(crude, mean - most * width - error - 8.0 * EPS * (abs(mean) + most * width))

    def is_whitened_by(self, whitener: Matrix) -> bool:
        """Whether M is lower triangular and M V M^T = I, up to rounding."""
        if whitener.shape != (self.dim, self.dim) or np.triu(whitener, 1).any():
            return False
        turned = whitener @ self._axes
        gap = (turned * self._values) @ turned.T - np.eye(self.dim)
        return bool(np.abs(gap).max() <= 1e-6 + 1e3 * self.rounding)

    def uppers(self, rows: Matrix) -> Vector:
        """The largest <theta, row> over the ellipsoid, for every row."""
        turned = rows @ self._axes
        widths = np.sqrt(np.einsum("ij,ij->i", turned, turned / self._values))
        highest: Vector = turned @ self._center + self.radius * widths
        return highest

    def distance(self, center: Vector) -> float:
        """||center - this center||_V, in units of the radius."""
        gap = center @ self._axes - self._center
        return math.sqrt(float(gap @ (gap * self._values))) / max(self.radius, 1e-300)


class Estimate:
    """V and b, one learned reward after the other."""

    def __init__(self, known: Knowledge) -> None:
        self.known, self.count = known, 0
        self._gram, self._moment, self._squares = Sum((known.dim, known.dim)), Sum((known.dim,)), Total()
        self._surprises, self._most_surprises = Total(), Total()
        self._factors: tuple[Matrix, Vector, Vector] | None = None
        self._exacts: dict[float, Exact] = {}
        self._newest: list[Ellipsoid] | None = None
        self._is_refuted = False

    def learn(self, features: Vector, reward: float) -> None:
        """Take in one reward."""
        if self.known.kind == "residual":
            surprise, most = self._surprise(features, reward)
            self._surprises.add(surprise)
            self._most_surprises.add(most)
        self._gram.add_product(features[:, None], features[None, :])
        self._moment.add_product(np.float64(reward), features)
        self._squares.add(reward * reward)
        self.count += 1
        self._factors, self._exacts, self._newest = None, {}, None

    def newest(self) -> list[Ellipsoid]:
        """The confidence set of now; with the `dual` radius, every reading of it that a proof may have chosen."""
        if self._newest is None:
            self._newest = self._make()
        return self._newest

    def _make(self) -> list[Ellipsoid]:
        if self.known.kind == "dual":
            return [made for share in DUAL_SHARES if (made := self._dual(share)) is not None]
        axes, values, projected = self._decomposed()
        radius = self._radius(_growth(values, self.known.ridge), self._surprises.value)
        most = self._radius(_growth(_most(values), self.known.ridge), self._most_surprises.value) * (1 + 16 * EPS)
        return [Ellipsoid(axes, values, projected, radius, most, self.count, self._exact(self.known.ridge))]

    @property
    def is_refuted(self) -> bool:
        """Whether the `dual` set is empty beyond all rounding: no theta of the declared length fits the data."""
        if self.known.kind == "dual" and self.count:
            self.newest()
        return self._is_refuted

    def optimistic(self) -> Ellipsoid:
        """The set by which an action is proposed: `amm` stands in for `dual`."""
        return self.newest()[0]

    def _exact(self, ridge: float) -> Exact:
        if ridge not in self._exacts:
            squares = self._squares.value * (1 + 16 * EPS)
            self._exacts[ridge] = Exact(self._gram.parts, self._moment.parts, ridge, squares)
        return self._exacts[ridge]

    def _decomposed(self) -> tuple[Matrix, Vector, Vector]:
        if self._factors is None:
            ridge = self.known.ridge
            values, axes = np.linalg.eigh(self._gram.value)
            # The sum of x x^T has no negative eigenvalue but by rounding.
            self._factors = axes, ridge + np.maximum(values, 0.0), self._moment.value @ axes
        return self._factors

    def _radius(self, growth: float, surprises: float) -> float:
        """beta, by the kind of radius that was declared.  (docs/mathematics.md, "Radii")

        growth: ln(det V / lambda^d)
        """
        k = self.known
        chance = math.log(1.0 / k.delta)
        if k.kind == "paper":
            ratio = math.log((1.0 + (self.count + 1) * k.feature_bound**2 / k.ridge) / k.delta)
            beta = k.noise * math.sqrt(k.dim * ratio) + math.sqrt(k.ridge) * k.theta_bound
        elif k.kind == "logdet":
            beta = k.noise * math.sqrt(growth + 2.0 * chance) + math.sqrt(k.ridge) * k.theta_bound
        elif k.kind == "residual":
            beta = math.sqrt(k.ridge * k.theta_bound**2 + 2.0 * k.noise**2 * chance + surprises)
        else:
            beta = math.sqrt(k.noise**2 * (growth + 2.0 * chance) + k.ridge * k.theta_bound**2)
        return beta + k.misspecification * math.sqrt(self.count)

    def _surprise(self, features: Vector, reward: float) -> tuple[float, float]:
        """e^2 D^2: the squared error of the prediction, times the row's leverage once it is in.  (Jun and Kim 2024)

        And the most that rounding lets it be.
        """
        axes, values, projected = self._decomposed()
        turned = features @ axes
        leverage = float(turned @ (turned / values))
        error = reward - float((projected / values) @ turned)
        least = _least(values, self.known.ridge)
        most = float(turned @ (turned / least)) * (1.0 + 64.0 * EPS)
        blur = 64.0 * self.known.dim * EPS * float(values[-1] / least[0])
        energy = min(float(projected @ (projected / least)), self._squares.value)
        worst = abs(error) + (blur + 64.0 * EPS) * (math.sqrt(energy * most) + abs(reward))
        return error * error * leverage / (1.0 + leverage), worst * worst * most / (1.0 + most)

    def _dual(self, share: float) -> Ellipsoid | None:
        """The event of `amm`, read at the ridge a.  (docs/mathematics.md, "Radius dual"; Flynn et al. 2023)

        root(a) = sigma^2 (ln(det V / lambda^d) + 2 ln(1/delta)) + a B^2 + b V_a^-1 b - b V^-1 b.
        """
        k, a = self.known, share * self.known.ridge
        axes, values, projected = self._decomposed()
        shifted = values + (a - k.ridge)
        event, most_event = (self._event(_growth(held, k.ridge)) + a * k.theta_bound**2 for held in self._bracket())
        energies = float(projected @ (projected / shifted)), float(projected @ (projected / values))
        root = event + (energies[0] - energies[1])
        self._is_refuted |= root < -REFUTED * (event + sum(energies)) and values[-1] < USABLE_RATIO * values[0]
        if root < 0.0 and share == 1.0:
            return None
        # The root is a difference of large numbers: what rounding does to them, it does to a small radius.
        conditioning = float(shifted[-1] / _least(shifted, a)[0])
        error = (1e-12 + 16.0 * k.dim * EPS * conditioning) * (energies[0] + energies[1]) + (most_event - event)
        most = math.sqrt(max(0.0, root) + error)
        made = self._exact(a), self._exact(k.ridge)

        def sharpen() -> float:
            high = made[0].energy(_solver(axes, shifted))[1]
            low = made[1].energy(_solver(axes, values))[0]
            return math.sqrt(max(0.0, most_event + (high - low)) + 16.0 * EPS * (most_event + high + low))

        return Ellipsoid(axes, shifted, projected, math.sqrt(max(0.0, root)), most, self.count, made[0], sharpen)

    def _event(self, growth: float) -> float:
        return self.known.noise**2 * (growth + 2.0 * math.log(1.0 / self.known.delta))

    def _bracket(self) -> tuple[Vector, Vector]:
        """The eigenvalues of V, and the most that rounding lets them be."""
        values = self._decomposed()[1]
        return values, _most(values)


def _growth(values: Vector, ridge: float) -> float:
    """ln(det V / ridge^d)."""
    return float(np.log(values / ridge).sum())


def _error(values: Vector) -> float:
    """How far an eigenvalue may be off.  (Weyl; LAPACK's error is some EPS ||V||)"""
    return float(8.0 * values.size * EPS * values[-1])


def _least(values: Vector, ridge: float) -> Vector:
    """What eigenvalues are at least: the ridge, which is exact."""
    return np.maximum(values - _error(values), ridge)


def _most(values: Vector) -> Vector:
    """What they are at most."""
    return values + _error(values)


def _solver(axes: Matrix, values: Vector) -> Solve:
    """A solver of V y = q."""
    return lambda q: axes @ ((q @ axes) / values)
