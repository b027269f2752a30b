"""Means with intervals, from numbers that arrive in batches; each interval says what it takes for granted.

Where a handful of clicks carries a sum, a normal interval is too short, and too low. Such a sum of positive terms is
much like one of weighted Poisson counts: with total y, sum of squares v and largest weight m, its mean lies between the
quantiles of two gamma distributions (Fay and Feuer 1997),

    v / (2 y) chi2(2 y^2 / v)    and    (v + m^2) / (2 (y + m)) chi2(2 (y + m)^2 / (v + m^2)),

which for equal weights is the exact interval of a Poisson count, and covers at its level or better. For a difference
the two sums are put together by their squares, each side by the ends that matter there (Zou and Donner 2008).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector

RARE = 50  # terms that matter, below which a sum counts as rare
OFTEN = 0.5  # of the rows; where more are rewarded, the number of rows is what is small, and normal intervals serve
GAMMA = (
    f"Gamma interval, where fewer than {RARE} rewarded rows carry an estimate, and most rows have no reward: rows are "
    "drawn afresh given the rows before; it covers at its level or better, as the exact interval of a count does."
)


@dataclass(slots=True)
class RareSum:
    """A sum of positive terms: total, sum of squares, what one of them may be at most, and how many rows may have one.

    With weights, rows count as many as would make as uncertain a sum if all were equal.
    """

    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    rows: float = 0.0

    @property
    def terms(self) -> float:
        """How many equal terms would make as uncertain a sum."""
        return alike(self.total, self.squares)

    @property
    def is_rare(self) -> bool:
        """Whether few terms carry it, though there could be many."""
        return self.largest > 0 and self.terms < min(RARE, OFTEN * self.rows)

    def ends(self, level: float) -> tuple[float, float]:
        """Between what its mean lies."""
        side, most = (1 - level) / 2, self.largest
        if most <= 0.0:
            return self.total, self.total
        low = 0.0
        if self.squares > 0:
            low = self.squares / (2 * self.total) * chi_square_quantile(2 * self.terms, 1 - side)
        total, squares = self.total + most, self.squares + most**2
        return low, squares / (2 * total) * chi_square_quantile(2 * total**2 / squares, side)


def alike(total: float, squares: float) -> float:
    """How many equal terms have this sum and this sum of squares."""
    return total**2 / squares if squares > 0 else 0.0


def reaches(plus: RareSum, minus: RareSum, level: float) -> tuple[float, float]:
    """How far the mean of `plus - minus` may lie below and above what was seen."""
    (low, high), (least, most) = plus.ends(level), minus.ends(level)
    return math.hypot(plus.total - low, most - minus.total), math.hypot(high - plus.total, minus.total - least)


NORMAL = (
    "Normal interval: each row is drawn afresh given the rows before it, its variance is finite and does not vanish, "
    "and there are many rows; then the interval covers at about its level."
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, an interval that covers the truth at `level`, and what it rests on."""

    value: float
    low: float
    high: float
    level: float = 0.95
    method: str = "normal"
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def as_dict(self) -> dict[str, float | str | int | None]:
        """For JSON, where what is not finite is null."""
        numbers = {"value": self.value, "low": self.low, "high": self.high, "level": self.level}
        plain = {key: number if math.isfinite(number) else None for key, number in numbers.items()}
        return {**plain, "method": self.method, "rows": self.rows}


def normal_reach(level: float) -> float:
    """The z for which a standard normal lies within ±z with probability `level`."""
    return -NormalDist().inv_cdf((1 - level) / 2)


def around(value: float, stderr: float, *, level: float, rows: int, method: str = "normal") -> Estimate:
    """value ± z stderr."""
    reach = normal_reach(level) * stderr
    return Estimate(value, value - reach, value + reach, level, method, rows)


def without_interval(value: float, rows: int) -> Estimate:
    """A number whose error nothing bounds."""
    return Estimate(value, -math.inf, math.inf, 1.0, "none", rows)


def within(estimate: Estimate, bounds: tuple[float, float] | None) -> Estimate:
    """The interval cut to a range that the truth cannot leave."""
    if bounds is None or not math.isfinite(estimate.low):
        return estimate
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in (estimate.low, estimate.high))
    return replace(estimate, low=low, high=high)


def _rarer(normal: Estimate, bounds: tuple[float, float], sides: Sequence[RareSum], total: float) -> Estimate:
    """A mean's normal interval; a gamma one where the distances from one end of its bounds are a rare sum."""
    above, below = sides
    rarer = min(above, below, key=lambda side: side.terms)
    if not rarer.is_rare:
        return within(normal, bounds)
    near, far = (end / total for end in rarer.ends(normal.level))
    low, high = (bounds[0] + near, bounds[0] + far) if rarer is above else (bounds[1] - far, bounds[1] - near)
    return within(replace(normal, low=low, high=high, method="gamma"), bounds)


class Moments:
    """Count, mean and variance of numbers that arrive in batches.  (Chan, Golub and LeVeque 1983)"""

    def __init__(self) -> None:
        self.count, self.mean, self._squares = 0, 0.0, 0.0

    def add(self, values: Vector) -> None:
        """Take in some numbers."""
        if values.size == 0:
            return
        total, mean = self.count + values.size, float(values.mean())
        gap = mean - self.mean
        self._squares += float(((values - mean) ** 2).sum()) + gap**2 * self.count * values.size / total
        self.mean += gap * values.size / total
        self.count = total

    @property
    def variance(self) -> float:
        """With n - 1 below; NaN for fewer than two numbers."""
        return self._squares / (self.count - 1) if self.count > 1 else math.nan

    @property
    def stderr(self) -> float:
        """Standard error of the mean."""
        return math.sqrt(self.variance / self.count) if self.count > 1 else math.nan

    def interval(self, level: float, bounds: tuple[float, float] | None = None) -> Estimate:
        """The mean with its normal interval; a gamma one where most numbers lie at an end of their bounds."""
        value = self.mean if self.count else math.nan
        normal = around(value, self.stderr, level=level, rows=self.count)
        if bounds is None or self.count == 0:
            return normal
        sides = [self._distances(end, bounds[1] - bounds[0]) for end in bounds]
        return _rarer(normal, bounds, sides, self.count)

    def _distances(self, end: float, largest: float) -> RareSum:
        """The sum of the distances from one end of a range."""
        gap = abs(self.mean - end)
        return RareSum(self.count * gap, self._squares + self.count * gap**2, largest, self.count)


class WeightedMean:
    """The mean of numbers with weights, sum of w x / sum of w, from batches; with weights of 1 that of `Moments`.

    Its standard error is the root of sum of w^2 (x - mean)^2 / (sum of w)^2, by n / (n - 1) with n as many rows as
    would make as uncertain a mean if all counted alike.
    """

    def __init__(self) -> None:
        self.count, self._mean, self._largest = 0, 0.0, 0.0
        self._total, self._squares = 0.0, 0.0  # of the weights
        self._tilt, self._spread = 0.0, 0.0  # sums of w^2 (x - mean) and w^2 (x - mean)^2

    def add(self, values: Vector, weights: Vector) -> None:
        """Take in some numbers with their weights."""
        if values.size == 0:
            return
        before = self._mean
        total = self._total + float(weights.sum())
        self._mean += float((weights * (values - before)).sum()) / total
        gap, squared = before - self._mean, weights**2
        # What was summed up around the mean before, around the new one.
        self._spread += 2 * gap * self._tilt + gap**2 * self._squares
        self._tilt += gap * self._squares
        self._tilt += float((squared * (values - self._mean)).sum())
        self._spread += float((squared * (values - self._mean) ** 2).sum())
        self._total, self._squares = total, self._squares + float(squared.sum())
        self.count, self._largest = self.count + values.size, max(self._largest, float(weights.max()))

    def interval(self, level: float, bounds: tuple[float, float]) -> Estimate:
        """The mean with its normal interval; a gamma one where most numbers lie at an end of their bounds."""
        if self.count == 0:
            return Estimate(math.nan, math.nan, math.nan, level, "normal", 0)
        rows = alike(self._total, self._squares)
        variance = self._spread / self._total**2 * rows / (rows - 1) if self.count > 1 else math.nan
        normal = around(self._mean, math.sqrt(max(0.0, variance)), level=level, rows=self.count)
        sides = [self._distances(end, bounds[1] - bounds[0], rows) for end in bounds]
        return _rarer(normal, bounds, sides, self._total)

    def _distances(self, end: float, width: float, rows: float) -> RareSum:
        """The weighted sum of the distances from one end of a range."""
        gap = self._mean - end
        squares = self._spread + 2 * gap * self._tilt + gap**2 * self._squares
        return RareSum(self._total * abs(gap), squares, self._largest * width, rows)


ESTIMATORS = ("ips", "snips", "dr")  # those with an interval
ASSUMES = {
    "ips": "Importance weighting: logged propensities are right, and every action asked about had a chance above 0.",
    "snips": "Self-normalised importance weighting: as importance weighting, and rows enough for a ratio of means; its "
    "interval is the delta method's.",
    "dr": "Doubly robust: as importance weighting; the reward model is fitted to earlier rows only, and need not be "
    "right.",
    "dm": "Direct method: the reward model's word alone. It is as wrong as the model is, so that it has no interval.",
}


def weights(actions: NDArray[np.int64], asked: NDArray[np.int64], propensities: Vector) -> Vector:
    """1{a = d} / p."""
    return np.where(actions == asked, 1.0 / propensities, 0.0)


def robust_terms(weight: Matrix, rewards: Vector, at_asked: Matrix, at_logged: Vector) -> Matrix:
    """m(d) + w (r - m(a)), a row of terms for each target."""
    terms: Matrix = at_asked + weight * (rewards - at_logged)
    return terms


class ImportanceWeighting:
    """A policy's value, the baseline's, and their difference on the same rows, by all three estimators.

    Where few rewarded rows carry an estimate, its interval is a gamma one instead of the normal, within `bounds`, the
    declared range of rewards.

    With the chance p that the logged action a had, and d the action in question, w = 1{a = d} / p has mean 1, and

    - ips:    mean of w r. Unbiased.
    - snips:  sum of w r / sum of w. Slightly biased for few rows, far less spread, never outside the range of rewards.
    - dr:     mean of m(d) + w (r - m(a)), m a ridge prediction from the rows before. Unbiased whether m is right or
              not, and less spread the better m is.
    - dm:     mean of m(d), the direct method. As wrong as the model is, which the rows cannot say: it has no interval.

    The first three take for granted that chances were logged as they were, that every action in question had a chance
    above 0 wherever it is asked about, and that nothing but the context in the log decides both the action and the
    reward.
    """

    def __init__(self, *, bounds: tuple[float, float] | None) -> None:
        self._rows = 0
        self._plain = {name: {what: Moments() for what in WHATS} for name in ("ips", "dr")}
        # Sums of w_i w_j r^k for both targets: all that the delta method needs.
        self._single, self._double = np.zeros((2, 2)), np.zeros((2, 2, 3))
        self._bounds, self.weight = bounds, Moments()
        # The rewards' part of every estimate: sums and squares of what they add and take. Weights of policy and
        # baseline, in all rows and where they differ. And what a reward model adds.
        self._signed, self._seen = np.zeros((3, 2, 2)), (math.inf, -math.inf)
        self._weights, self._largest = np.zeros((2, 4)), np.zeros(4)
        self._rest = {what: Moments() for what in WHATS}
        self._modelled = {what: Moments() for what in WHATS}

    def add(self, weight: Matrix, rewards: Vector, robust: Matrix, modelled: Matrix | None = None) -> None:
        """Take in rows: weights, doubly robust terms and modelled means (2, rows) of policy and baseline; rewards."""
        self._rows += rewards.size
        if modelled is not None:
            for what, values in zip(WHATS, _asked(modelled), strict=True):
                self._modelled[what].add(values)
        self.weight.add(weight[0])
        paid = weight * rewards
        for name, terms in (("ips", paid), ("dr", robust)):
            for what, values in zip(WHATS, _asked(terms), strict=True):
                self._plain[name][what].add(values)
        if rewards.size:
            self._add_rare(weight, rewards, paid)
        for what, values in zip(WHATS, _asked(robust - paid), strict=True):
            self._rest[what].add(values)
        powers = np.stack([np.ones_like(rewards), rewards, rewards**2])
        self._single += weight @ powers[:2].T
        self._double += np.einsum("in,jn,kn->ijk", weight, weight, powers, optimize=True)

    def estimate(self, name: str, what: str, level: float) -> Estimate:
        """One of "reward", "baseline" and "gain" by one of the estimators, with its interval."""
        interval = self._ratio(what, level) if name == "snips" else self._plain[name][what].interval(level)
        heavier = max(self._rare_sums(what), key=lambda side: (side.squares, side.largest))
        if heavier.is_rare and math.isfinite(interval.value):
            interval = self._gamma(interval, name, what)
        bounds = self._bounds
        if bounds is not None and what == "gain":
            bounds = bounds[0] - bounds[1], bounds[1] - bounds[0]
        return within(interval, bounds) if interval.method == "gamma" else interval

    def _rare_sums(self, what: str) -> tuple[RareSum, RareSum]:
        """What the rewards add to an estimate and what they take from it."""
        low, high = self._bounds or self._seen
        own, other = {"reward": (0, 0), "baseline": (1, 1), "gain": (2, 3)}[what]
        # Of both targets where they ask for different actions: elsewhere their difference has no luck to have.
        most, rows = self._largest, [alike(*sums) for sums in self._weights.T]
        against = most[other] if what == "gain" else 0.0
        paid = max(most[own] * high, against * -low, 0.0), max(most[own] * -low, against * high, 0.0)
        (gained, square), (lost, lost_square) = self._signed[WHATS.index(what)].tolist()
        return RareSum(gained, square, paid[0], rows[own]), RareSum(lost, lost_square, paid[1], rows[other])

    def _add_rare(self, weight: Matrix, rewards: Vector, paid: Matrix) -> None:
        self._seen = min(self._seen[0], float(rewards.min())), max(self._seen[1], float(rewards.max()))
        used = np.vstack([weight, np.where(weight[0] != weight[1], weight, 0.0)])
        self._largest = np.maximum(self._largest, used.max(axis=1))
        self._weights += [used.sum(axis=1), (used**2).sum(axis=1)]
        for place, values in enumerate(_asked(paid)):
            for side, terms in enumerate((np.maximum(values, 0.0), np.maximum(-values, 0.0))):
                # Not `terms @ terms`: over that many rows BLAS wakes threads, which cost more than the sum.
                self._signed[place, side] += terms.sum(), np.square(terms).sum()

    def _gamma(self, normal: Estimate, name: str, what: str) -> Estimate:
        """The estimate with the interval of rare rewards, by the sum of weights where they are divided by that."""
        used = {"reward": [0], "baseline": [1], "gain": [0, 1]}[what]
        below = self._single[used, 0].min() if name == "snips" else self._rows
        spare = normal_reach(normal.level) * self._rest[what].stderr if name == "dr" else 0.0
        down, up = (math.hypot(reach / below, spare) for reach in reaches(*self._rare_sums(what), normal.level))
        return Estimate(normal.value, normal.value - down, normal.value + up, normal.level, "gamma", normal.rows)

    def all(self, level: float) -> Mapping[str, Mapping[str, Estimate]]:
        """Every estimate by estimator and question."""
        estimates = {name: {what: self.estimate(name, what, level) for what in WHATS} for name in ESTIMATORS}
        estimates["dm"] = {what: without_interval(mean.mean, mean.count) for what, mean in self._modelled.items()}
        return estimates

    def _ratio(self, what: str, level: float) -> Estimate:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = self._single[:, 1] / self._single[:, 0]
            # Influence of a row on a ratio: w (r - value) / mean w.
            pairs = np.empty((2, 2))
            for i in range(2):
                for j in range(2):
                    s = self._double[i, j]
                    middle = s[2] - (values[i] + values[j]) * s[1] + values[i] * values[j] * s[0]
                    pairs[i, j] = middle / (self._single[i, 0] * self._single[j, 0])
        signs = {"reward": (1.0, 0.0), "baseline": (0.0, 1.0), "gain": (1.0, -1.0)}[what]
        sign = np.array(signs)
        # A target that no row matched has no estimate, and must not spoil the other's by 0 times NaN.
        used = sign != 0
        spread = float(sign[used] @ pairs[np.ix_(used, used)] @ sign[used])
        value = float(sign[used] @ values[used])
        stderr = math.sqrt(max(0.0, spread)) if math.isfinite(spread) else math.nan
        return around(value, stderr, level=level, rows=self._rows)


WHATS = ("reward", "baseline", "gain")


def _asked(terms: Matrix) -> tuple[Vector, Vector, Vector]:
    """Terms of policy and baseline, and of what the policy gains."""
    return terms[0], terms[1], terms[0] - terms[1]


class DifferingRows:
    """Rewards of the rows in which policy and baseline differ, as each of the two would have played them.

    Where both play the same action there is nothing to gain. Of the other rows, thinned so that every action has the
    same chance, those that were played as the policy wished and those that were played as the baseline did are two
    samples from the same contexts: a randomised comparison of the two. Rows between two rounds that count all meet the
    same policy, so that all of them may be compared, and not only those that count.

        gain = (share of differing rows) x (mean of the policy's - mean of the baseline's)
    """

    def __init__(self) -> None:
        self._rows, self._differing = 0, 0
        self._policy, self._baseline = WeightedMean(), WeightedMean()

    def add(
        self,
        chosen: NDArray[np.int64],
        baselines: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: Vector,
        weight: Vector,
    ) -> None:
        """Take in rows with their weights; a choice below 0 was never asked for."""
        chosen_rows = chosen >= 0
        differing = chosen_rows & (chosen != baselines)
        self._rows += int(chosen_rows.sum())
        self._differing += int(differing.sum())
        for mean, asked_for in ((self._policy, chosen), (self._baseline, baselines)):
            rows = differing & (actions == asked_for)
            mean.add(rewards[rows], weight[rows])

    def gain(self, level: float, bounds: tuple[float, float]) -> Estimate:
        """What a round of the policy earns beyond one of the baseline, on average."""
        if self._differing == 0:
            value = 0.0 if self._rows else math.nan
            return Estimate(value, value, value, level, "normal", self._rows)
        policy, baseline = self._policy.interval(level, bounds), self._baseline.interval(level, bounds)
        share, apart = self._differing / self._rows, policy.value - baseline.value
        # How often they differ is an estimate, too.
        spread = normal_reach(level) * math.sqrt(share * (1 - share) / self._rows) * abs(apart)
        down = math.hypot(share * (policy.value - policy.low), share * (baseline.high - baseline.value), spread)
        up = math.hypot(share * (policy.high - policy.value), share * (baseline.value - baseline.low), spread)
        method = "gamma" if "gamma" in (policy.method, baseline.method) else "normal"
        width, value = bounds[1] - bounds[0], share * apart
        return within(Estimate(value, value - down, value + up, level, method, self._rows), (-width, width))


TINY = 1e-300


def chi_square_tail(degrees: float, x: float) -> float:
    """P(X > x).

    >>> round(chi_square_tail(2, 9.21034), 6)
    0.01
    """
    if x <= 0.0:
        return 1.0
    half, order = x / 2, degrees / 2
    if math.isinf(half):
        return 0.0
    factor = math.exp(order * math.log(half) - half - math.lgamma(order + 1))
    if half < order + 1:
        return max(0.0, 1.0 - factor * _series(order, half))
    return min(1.0, factor * order * _fraction(order, half))


def _series(order: float, half: float) -> float:
    total = term = 1.0
    place = order
    while term > 1e-17 * total:
        place += 1.0
        term *= half / place
        total += term
    return total


def _fraction(order: float, half: float) -> float:
    """1 / (half + 1 - order - 1 (1 - order) / (half + 3 - order - 2 (2 - order) / ...))."""
    below = half + 1.0 - order
    above, inverse = 1.0 / TINY, 1.0 / below
    value, step, change = inverse, 0, 0.0
    while abs(change - 1.0) > 1e-16 and step < 100_000:
        step += 1
        part = -step * (step - order)
        below += 2.0
        inverse = 1.0 / (_apart(part * inverse + below))
        above = _apart(below + part / above)
        change = inverse * above
        value *= change
    return value


def _apart(value: float) -> float:
    return value if abs(value) > TINY else TINY


def chi_square_quantile(degrees: float, tail: float) -> float:
    """The x that X exceeds with probability `tail`, by bisection.

    >>> round(chi_square_quantile(1, 0.05), 4)
    3.8415
    """
    low, high = 0.0, float(degrees)
    while chi_square_tail(degrees, high) > tail:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        if chi_square_tail(degrees, middle) > tail:
            low = middle
        else:
            high = middle
    return high
