"""What the learned rewards say of theta, from scratch: V = ridge I + sum x x^T and b by plain sums, solved afresh.

V is solved in plain floats by its eigenvalues, and without rounding where that decides. The policies keep a triangular
factor up to date row by row; nothing of that is here: a factor that drifted, or an update that was wrong, shows as a
difference.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surefoot.audit.compensated_sums import CompensatedSum, ExactNumbers, Matrix, UnboundedSum, Vector, whole

EPS = 2.0**-53
REFINEMENTS = 3

Solve = Callable[[Vector], Vector]
USABLE = 1e-2  # beyond this blur plain floats say nothing
REFUTED = 1e-5  # a root that lies further below 0 than that, relative to what it is made of, is no rounding
FINE = 1e-9  # the share of a number that rounding may take before more digits are used
DUAL_SHARES = (1.0, 0.001, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 100.0)  # ridges that a `dual` proof may be read at


class GramFactor:
    """V = S Q diag(e) Q^T S, with powers of two on the diagonal of S, so that Q diag(e) Q^T has about ones there.

    So rounding does the same to a feature whether it is measured in metres or in miles.
    """

    def __init__(self, scale: Vector, values: Vector, axes: Matrix, moment: Vector, ridge: float) -> None:
        self.scale, self.axes, self.ridge, self.dim = scale, axes, ridge, scale.size
        # V is at least ridge I, whatever rounding did to its eigenvalues.
        floor = ridge / scale.max() ** 2
        self.values: Vector = np.maximum(values, floor)
        error = 8.0 * self.dim * EPS * self.values[-1]  # of any of them: Weyl, and some EPS ||V|| by LAPACK
        self.least: Vector = np.maximum(self.values - error, floor)
        self.most: Vector = self.values + error
        self.moment: Vector = self.turn(moment)
        self.conditioning = float(self.values[-1] / self.least[0])
        # How far rounding may move a width or the center: as far as the conditioning of V amplifies it.
        self.blur = 64.0 * self.dim * EPS * self.conditioning
        self.energy = float(self.moment @ (self.moment / self.values))  # b^T V^-1 b

    def turn(self, x: Any) -> Any:
        """Q^T S^-1 x, row by row."""
        return (x / self.scale) @ self.axes

    def solve(self, q: Vector) -> Vector:
        """V^-1 q."""
        solution: Vector = (self.axes @ (self.turn(q) / self.values)) / self.scale
        return solution

    def growth(self, values: Vector) -> float:
        """ln(det V / ridge^d), by these eigenvalues."""
        return float(np.log(values).sum() + np.log(self.scale * (self.scale / self.ridge)).sum())


def factors(gram: Matrix, moment: Vector, ridges: Vector) -> list[GramFactor]:
    """V = gram + ridge I in factors, for each of these ridges."""
    shifted = gram + ridges[:, None, None] * np.eye(moment.size)
    # Powers of two: scaling by them rounds nothing.
    scales = np.exp2(np.round(0.5 * np.log2(np.diagonal(shifted, axis1=1, axis2=2))))
    values, axes = np.linalg.eigh(shifted / (scales[:, :, None] * scales[:, None, :]))
    parts = zip(scales, values, axes, ridges.tolist(), strict=True)
    return [GramFactor(scale, own, turned, moment, ridge) for scale, own, turned, ridge in parts]


class ExactGram:
    """V and b = sum x y to twice the digits, for where rounding would decide.

    squares: of the rewards, summed up; b^T V^-1 b is at most that
    """

    def __init__(
        self, gram: tuple[Matrix, Matrix], moment: tuple[Vector, Vector], ridge: float, squares: float
    ) -> None:
        self._gram, self._moment, self.ridge, self._squares = gram, moment, ridge, squares

    @cached_property
    def _v(self) -> ExactNumbers:
        high, low = self._gram
        return whole(high.ravel()) + whole(low.ravel()) + whole(self.ridge * np.eye(len(high)).ravel())

    @cached_property
    def _b(self) -> ExactNumbers:
        return whole(self._moment[0]) + whole(self._moment[1])

    def mean_and_width(self, q: Vector, solve: Solve) -> tuple[float, float, float]:
        """<V^-1 b, q> and an upper bound of ||q||_{V^-1}; then how far the first may be off.

        With y and r = q - V y, <V^-1 b, q> differs from <b, y> by <V^-1 b, r> <= ||b||_{V^-1} |r| / sqrt(ridge).
        """
        y, rest = self._solved(whole(q), solve)
        width = self._square(whole(q), y, rest)[1] ** 0.5
        return self._b @ y, width, (self._squares * (rest @ rest) / self.ridge) ** 0.5

    def energy(self, solve: Solve) -> tuple[float, float]:
        """What b^T V^-1 b is at least and at most."""
        return self._square(self._b, *self._solved(self._b, solve))

    def _square(self, x: ExactNumbers, y: ExactNumbers, rest: ExactNumbers) -> tuple[float, float]:
        """Bounds of ||x||^2_{V^-1} = <x, y> + <y, r> + ||r||^2_{V^-1}, where r = x - V y and V^-1 <= I / ridge."""
        least = x @ y + y @ rest
        return max(0.0, least), max(0.0, least + (rest @ rest) / self.ridge)

    def _solved(self, x: ExactNumbers, solve: Solve) -> tuple[ExactNumbers, ExactNumbers]:
        """Some y with V y close to x, and what is left of x, exactly."""
        y, rest = whole(np.zeros(len(x.parts))), x
        for _ in range(REFINEMENTS):
            y = y + whole(solve(rest.floats()))
            rest = x + y.turned(self._v)
        return y, rest


@dataclass(frozen=True)
class SetDeclarations:
    """What was declared before the first round, as far as a confidence set depends on it."""

    kind: str
    dim: int
    delta: float
    noise: float
    ridge: float
    theta_bound: float
    feature_bound: float
    misspecification: float = 0.0
    is_watched: bool = False


class RebuiltSet:
    """||theta - center||_V <= radius, after `observations` rewards were learned.

    most:    what rounding lets the radius be at most; `sharpen` tells that to more digits, where it can be told
    """

    def __init__(
        self,
        factor: GramFactor,
        radius: float,
        most: float,
        observations: int,
        exact: ExactGram,
        sharpen: Callable[[], float] | None = None,
    ) -> None:
        self._factor, self._exact, self._sharpen = factor, exact, sharpen
        self._center, self.radius, self.observations = factor.moment / factor.values, radius, observations
        self.dim, self.conditioning = factor.dim, factor.conditioning
        self.blur, self.energy = factor.blur, factor.energy
        self.rounding = 1e-9 + self.blur
        self._most, self.radius_rounding = most, most - radius
        self._reach = math.sqrt(float(self._center @ self._center))

    @property
    def widest_guard(self) -> float:
        """The largest share by which the policies may widen their radius against their own rounding."""
        return min(1e-3, 1e-7 + 100.0 * self.dim**3 * EPS * self.conditioning)

    def mean_and_width(self, q: Vector) -> tuple[float, float]:
        """<center, q> and ||q||_{V^-1}."""
        turned = self._factor.turn(q)
        return float(self._center @ turned), math.sqrt(float(turned @ (turned / self._factor.values)))

    def size(self, q: Vector) -> float:
        """How large the numbers are that a mean is made of."""
        turned = self._factor.turn(q)
        return self._reach * math.sqrt(float(turned @ turned))

    def lower(self, q: Vector) -> float:
        """The least <theta, q> over the ellipsoid."""
        mean, width = self.mean_and_width(q)
        return mean - self.radius * width

    def at_least(self, q: Vector, share: float = math.inf) -> tuple[float, float]:
        """A bound that the least <theta, q> never falls below, all rounding given away; and the same with none.

        Where that is more than a share of what it is made of, V y = q is solved until it hardly matters.
        """
        mean, width = self.mean_and_width(q)
        rounding = self.blur * width * (self._most + math.sqrt(self.energy)) + self.radius_rounding * width
        rounding += 64.0 * EPS * (self.size(q) + self._most * width)
        plain = mean - self.radius * width
        crude = plain - rounding if self.blur < USABLE else -math.inf
        if rounding <= share * (abs(mean) + self._most * width) and crude > -math.inf:
            return crude, plain
        most = self._most if self._sharpen is None else min(self._most, self._sharpen())
        mean, width, error = self._exact.mean_and_width(q, self._factor.solve)
        precise = mean - most * width - error - 8.0 * EPS * (abs(mean) + most * width)
        return max(crude, precise), mean - self.radius * width

    def is_whitened_by(self, whitener: Matrix) -> bool:
        """Whether M is lower triangular and M V M^T = I, up to rounding."""
        if whitener.shape != (self.dim, self.dim) or np.triu(whitener, 1).any():
            return False
        factor = self._factor
        turned = (whitener * factor.scale) @ factor.axes
        gap = (turned * factor.values) @ turned.T - np.eye(self.dim)
        # The policies factor V as it is: there badly scaled features cost digits. No verdict rests on M.
        widest = float(factor.scale**2 @ (factor.axes**2 @ factor.values))
        narrowest = float(factor.scale.min() ** 2 * factor.values.min())
        allowed = 1e-6 + 1e3 * self.rounding + 64.0 * self.dim**2 * EPS * widest / narrowest
        return bool(np.abs(gap).max() <= allowed)

    def uppers(self, rows: Matrix, radius: float | None = None) -> Vector:
        """The largest <theta, row> over the ellipsoid, for every row; with another radius where one was declared."""
        turned = self._factor.turn(rows)
        widths = np.sqrt(np.einsum("ij,ij->i", turned, turned / self._factor.values))
        highest: Vector = turned @ self._center + (self.radius if radius is None else radius) * widths
        return highest

    def distance(self, center: Vector) -> float:
        """||center - this center||_V, in units of the radius."""
        gap = (center * self._factor.scale) @ self._factor.axes - self._center
        return math.sqrt(float(gap @ (gap * self._factor.values))) / max(self.radius, 1e-300)


class RebuiltRidge:
    """V and b, one learned reward after the other."""

    def __init__(self, known: SetDeclarations) -> None:
        self.known, self.count = known, 0
        self._gram, self._moment, self._squares = (
            CompensatedSum((known.dim, known.dim)),
            CompensatedSum((known.dim,)),
            UnboundedSum(),
        )
        self._surprises, self._most_surprises = UnboundedSum(), UnboundedSum()
        self._newest: list[RebuiltSet] | None = None
        self._factors: list[GramFactor] | None = None
        self._is_refuted = False

    def learn(self, features: Vector, reward: float) -> None:
        """Take in one reward."""
        if self.known.kind == "residual" or self.known.is_watched:
            surprise, most = self._surprise(features, reward)
            self._surprises.add(surprise)
            self._most_surprises.add(most)
        self._gram.add_product(features[:, None], features[None, :])
        self._moment.add_product(np.float64(reward), features)
        self._squares.add(reward * reward)
        self.count += 1
        self._newest = self._factors = None

    def predicted(self, features: Vector) -> float:
        """The reward of this row, by the ridge estimate."""
        v = self._factorised()[0]
        return float((v.moment / v.values) @ v.turn(features))

    @property
    def price(self) -> float:
        """What predictions have cost beside the best theta, at most.  (docs/mathematics.md, "The watch")"""
        k = self.known
        return (self._most_surprises.value + k.ridge * k.theta_bound**2) / (2.0 * k.noise**2)

    def newest(self) -> list[RebuiltSet]:
        """The confidence set of now; with the `dual` radius, every reading of it that a proof may have chosen."""
        if self._newest is None:
            self._newest = self._duals() if self.known.kind == "dual" else [self._set()]
        return self._newest

    @property
    def is_refuted(self) -> bool:
        """Whether the `dual` set is empty beyond all rounding: no theta of the declared length fits the data."""
        if self.known.kind == "dual" and self.count:
            self.newest()
        return self._is_refuted

    def optimistic(self) -> RebuiltSet:
        """The set by which an action is proposed: `amm` stands in for `dual`."""
        return self.newest()[0]

    def _exact(self, ridge: float) -> ExactGram:
        return ExactGram(self._gram.parts, self._moment.parts, ridge, self._squares.value * (1 + 16 * EPS))

    def _factorised(self) -> list[GramFactor]:
        """V in factors; with the `dual` radius, at every ridge that a proof may be read at."""
        if self._factors is None:
            shares = np.array(DUAL_SHARES if self.known.kind == "dual" else (1.0,))
            self._factors = factors(self._gram.value, self._moment.value, self.known.ridge * shares)
        return self._factors

    def _set(self) -> RebuiltSet:
        v = self._factorised()[0]
        radius = self._radius(v.growth(v.values), self._surprises.value)
        most = self._radius(v.growth(v.most), self._most_surprises.value) * (1 + 16 * EPS)
        return RebuiltSet(v, radius, most, self.count, self._exact(self.known.ridge))

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
        v = self._factorised()[0]
        turned = v.turn(features)
        leverage, most = float(turned @ (turned / v.values)), float(turned @ (turned / v.least)) * (1.0 + 64.0 * EPS)
        mean = float((v.moment / v.values) @ turned)
        off = (v.blur + 64.0 * EPS) * (math.sqrt(min(v.energy, self._squares.value) * most) + abs(reward))
        surprise, worst = _surprise(reward - mean, 0.0, leverage), _surprise(reward - mean, off, most)
        if worst - surprise <= FINE * self._radius(0.0, self._surprises.value) ** 2 and v.blur < USABLE:
            return surprise, worst
        mean, width, error = self._exact(self.known.ridge).mean_and_width(features, v.solve)
        off = error + 8.0 * EPS * (abs(mean) + abs(reward))
        return _surprise(reward - mean, 0.0, width**2), _surprise(reward - mean, off, width**2 * (1.0 + 64.0 * EPS))

    def _duals(self) -> list[RebuiltSet]:
        """The event of `amm`, read at several ridges a.  (docs/mathematics.md, "Radius dual"; Flynn et al. 2023)

        root(a) = sigma^2 (ln(det V / lambda^d) + 2 ln(1/delta)) + a B^2 + b V_a^-1 b - b V^-1 b.
        """
        v, exact, variance = self._factorised()[0], self._exact(self.known.ridge), self.known.noise**2
        chance = 2.0 * math.log(1.0 / self.known.delta)
        events = variance * (v.growth(v.values) + chance), variance * (v.growth(v.most) + chance)
        sets = [self._dual(at_a, v, exact, events) for at_a in self._factorised()]
        return [one for one in sets if one is not None]

    def _dual(
        self, at_a: GramFactor, v: GramFactor, exact: ExactGram, events: tuple[float, float]
    ) -> RebuiltSet | None:
        event, most_event = (one + at_a.ridge * self.known.theta_bound**2 for one in events)
        root, size = event + (at_a.energy - v.energy), event + at_a.energy + v.energy
        self._is_refuted |= root < -REFUTED * size and max(at_a.blur, v.blur) < 1e-3 * REFUTED
        if root < 0.0 and at_a is v:
            return None
        exact_a = exact if at_a is v else self._exact(at_a.ridge)

        def sharpen() -> float:
            high, low = exact_a.energy(at_a.solve)[1], exact.energy(v.solve)[0]
            return math.sqrt(max(0.0, most_event + (high - low)) + 16.0 * EPS * (most_event + high + low))

        # The root is a difference of large numbers: what rounding does to them, it does to a small radius.
        error = (1e-12 + at_a.blur) * at_a.energy + (1e-12 + v.blur) * v.energy + (most_event - event)
        most = math.sqrt(max(0.0, root) + error)
        return RebuiltSet(at_a, math.sqrt(max(0.0, root)), most, self.count, exact_a, sharpen)


def _surprise(error: float, off: float, leverage: float) -> float:
    """e^2 D^2, where the error may be further off and D^2 is the leverage of a row that is in, l / (1 + l)."""
    return (abs(error) + off) ** 2 * leverage / (1.0 + leverage)
