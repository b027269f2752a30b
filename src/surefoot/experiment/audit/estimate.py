"""What the learned rewards say of theta, from scratch: V and b by plain sums, everything else by a fresh
eigendecomposition V = Q diag(e) Q^T.

The policies keep a triangular factor up to date row by row. Nothing of that is here: a factor that drifted, or an
update that was wrong, shows as a difference.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from surefoot.experiment.audit.sums import Matrix, Sum, Vector

REFINEMENTS = 3

EPS = 2.0**-53
DUAL_SHARES = (1.0, 0.001, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 100.0)  # ridges that a `dual` proof may be read at


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


@dataclass(frozen=True)
class Exact:
    """V = ridge I + sum x x^T and b = sum x y to twice the digits, for where rounding would decide."""

    gram: tuple[Matrix, Matrix]
    moment: tuple[Vector, Vector]
    ridge: float
    energy: float

    def mean_and_width(self, q: Vector, solve: Callable[[Vector], Vector]) -> tuple[float, float, float]:
        """<V^-1 b, q> and an upper bound of ||q||_{V^-1}; then how far the first may be off.

        For any y, with r = q - V y, ||q||^2 = <q, y> + <y, r> + ||r||^2 <= <q, y> + <y, r> + |r|^2 / ridge, and
        <V^-1 b, q> differs from <b, y> by at most ||b||_{V^-1} |r| / sqrt(ridge).
        """
        ridge, asked = Fraction(self.ridge), [Fraction(entry) for entry in q.tolist()]
        rows = _fractions(self.gram)
        for i, row in enumerate(rows):
            row[i] += ridge
        y, rest = [Fraction(0)] * len(asked), asked
        for _ in range(REFINEMENTS):
            step = solve(np.array([float(entry) for entry in rest]))
            y = [entry + Fraction(more) for entry, more in zip(y, step.tolist(), strict=True)]
            rest = [one - _dot(row, y) for one, row in zip(asked, rows, strict=True)]
        left = math.sqrt(float(_dot(rest, rest)))
        square = float(_dot(asked, y) + _dot(y, rest) + _dot(rest, rest) / ridge)
        mean = float(_dot(_fractions(self.moment), y))
        return mean, math.sqrt(max(0.0, square)), math.sqrt(self.energy) * left / math.sqrt(self.ridge)


def _fractions(parts: tuple[Any, Any]) -> Any:
    """Sums of two floats as fractions."""
    if parts[0].ndim > 1:
        return [_fractions(pair) for pair in zip(*parts, strict=True)]
    return [Fraction(a) + Fraction(b) for a, b in zip(parts[0].tolist(), parts[1].tolist(), strict=True)]


def _dot(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


class Ellipsoid:
    """||theta - center||_V <= radius, with V = Q diag(e) Q^T, after `observations` rewards were learned."""

    def __init__(
        self,
        axes: Matrix,
        values: Vector,
        projected: Vector,
        radius: float,
        observations: int,
        exact: Exact,
        radius_rounding: float = 0.0,
    ) -> None:
        self._axes, self._values, self._exact = axes, values, exact
        self._center, self.radius, self.observations = projected / values, radius, observations
        self.dim, self.conditioning = axes.shape[0], float(values[-1] / values[0])
        # How far rounding may move a width or the center: as far as the conditioning of V amplifies it.
        self.blur = 64.0 * self.dim * EPS * self.conditioning
        self.rounding = 1e-9 + self.blur
        self.radius_rounding = radius_rounding
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

    def at_least(self, q: Vector, *, is_precise: bool) -> float:
        """A bound that the least <theta, q> over the ellipsoid never falls below: all rounding is given away.

        By a crude bound on it or, to be precise, by solving V y = q until it hardly matters.
        """
        mean, width = self.mean_and_width(q)
        radius = self.radius * (1.0 + self.dim * self.blur) + self.radius_rounding
        size = self.reach * float(np.linalg.norm(q)) + radius * width
        crude = float(mean - radius * width - self.blur * width * (radius + math.sqrt(self.energy)) - 64.0 * EPS * size)
        if not is_precise:
            return crude
        mean, width, error = self._exact.mean_and_width(q, self._solve)
        return max(crude, float(mean - radius * width - error - 64.0 * EPS * size))

    def _solve(self, q: Vector) -> Vector:
        solution: Vector = self._axes @ ((q @ self._axes) / self._values)
        return solution

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
        self._gram, self._moment = Sum((known.dim, known.dim)), Sum((known.dim,))
        self._surprises = 0.0
        self._factors: tuple[Matrix, Vector, Vector] | None = None

    def learn(self, features: Vector, reward: float) -> None:
        """Take in one reward."""
        if self.known.kind == "residual":
            self._surprises += self._surprise(features, reward)
        self._gram.add_product(features[:, None], features[None, :])
        self._moment.add_product(np.float64(reward), features)
        self.count += 1
        self._factors = None

    def newest(self) -> list[Ellipsoid]:
        """The confidence set of now; with the `dual` radius, every reading of it that a proof may have chosen."""
        if self.known.kind == "dual":
            return [made for share in DUAL_SHARES if (made := self._dual(share)) is not None]
        axes, values, projected = self._decomposed()
        return [Ellipsoid(axes, values, projected, self._radius(values), self.count, self._exact(self.known.ridge))]

    def optimistic(self) -> Ellipsoid:
        """The set by which an action is proposed: `amm` stands in for `dual`."""
        return self.newest()[0]

    def _exact(self, ridge: float) -> Exact:
        _, values, projected = self._decomposed()
        shifted = values + (ridge - self.known.ridge)
        energy = float(projected @ (projected / shifted)) * (1.0 + 1e-6)
        return Exact(self._gram.parts, self._moment.parts, ridge, energy)

    def _decomposed(self) -> tuple[Matrix, Vector, Vector]:
        if self._factors is None:
            ridge = self.known.ridge
            values, axes = np.linalg.eigh(self._gram.value)
            # The sum of x x^T has no negative eigenvalue but by rounding.
            self._factors = axes, ridge + np.maximum(values, 0.0), self._moment.value @ axes
        return self._factors

    def _radius(self, values: Vector) -> float:
        """beta, by the kind of radius that was declared.  (docs/mathematics.md, "Radii")"""
        k = self.known
        growth, chance = float(np.log(values / k.ridge).sum()), math.log(1.0 / k.delta)
        if k.kind == "paper":
            ratio = math.log((1.0 + (self.count + 1) * k.feature_bound**2 / k.ridge) / k.delta)
            beta = k.noise * math.sqrt(k.dim * ratio) + math.sqrt(k.ridge) * k.theta_bound
        elif k.kind == "logdet":
            beta = k.noise * math.sqrt(growth + 2.0 * chance) + math.sqrt(k.ridge) * k.theta_bound
        elif k.kind == "residual":
            beta = math.sqrt(k.ridge * k.theta_bound**2 + 2.0 * k.noise**2 * chance + self._surprises)
        else:
            beta = math.sqrt(k.noise**2 * (growth + 2.0 * chance) + k.ridge * k.theta_bound**2)
        return beta + k.misspecification * math.sqrt(self.count)

    def _surprise(self, features: Vector, reward: float) -> float:
        """e^2 D^2: the squared error of the prediction, times the row's leverage once it is in.  (Jun and Kim 2024)"""
        axes, values, projected = self._decomposed()
        turned = features @ axes
        leverage = float(turned @ (turned / values))
        error = reward - float((projected / values) @ turned)
        return error * error * leverage / (1.0 + leverage)

    def _dual(self, share: float) -> Ellipsoid | None:
        """The event of `amm`, read at the ridge a.  (docs/mathematics.md, "Radius dual"; Flynn et al. 2023)

        root(a) = sigma^2 (ln(det V / lambda^d) + 2 ln(1/delta)) + a B^2 + b V_a^-1 b - b V^-1 b.
        """
        k, a = self.known, share * self.known.ridge
        axes, values, projected = self._decomposed()
        shifted = values + (a - k.ridge)
        event = k.noise**2 * (float(np.log(values / k.ridge).sum()) + 2.0 * math.log(1.0 / k.delta))
        energies = float(projected @ (projected / shifted)), float(projected @ (projected / values))
        root = event + a * k.theta_bound**2 + (energies[0] - energies[1])
        if root < 0.0 and share == 1.0:
            return None
        # The root is a difference of large numbers: what rounding does to them, it does to a small radius.
        error = 1e-12 * (energies[0] + energies[1]) * max(1.0, 1e-3 * float(shifted[-1] / shifted[0]))
        radius = math.sqrt(max(0.0, root))
        blur = math.sqrt(max(0.0, root) + error) - radius
        return Ellipsoid(axes, shifted, projected, radius, self.count, self._exact(a), blur)
