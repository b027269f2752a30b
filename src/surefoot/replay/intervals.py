"""Means with intervals, from numbers that arrive in batches. Each interval says what it takes for granted."""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from surefoot.arrays import Vector
from surefoot.replay.rare_rewards import RareSum, alike

NORMAL = (
    "Normal interval: each row is drawn afresh given the rows before it, its variance is finite and does not vanish, "
    "and there are many rows; then the interval covers at about its level."
)
BERNSTEIN = (
    "Empirical Bernstein interval: each row is drawn afresh given the rows before it, and rewards lie in the declared "
    "range; it covers at its level or better for any number of rows."
)
RATES = tuple(float(rate) for rate in np.geomspace(1e-3, 0.9, 20))  # tuned over afterwards, so each gets its share


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
        above, below = (self._distances(end, bounds[1] - bounds[0]) for end in bounds)
        rarer = min(above, below, key=lambda side: side.terms)
        if not rarer.is_rare:
            return within(normal, bounds)
        near, far = (end / self.count for end in rarer.ends(level))
        low, high = (bounds[0] + near, bounds[0] + far) if rarer is above else (bounds[1] - far, bounds[1] - near)
        return within(Estimate(value, low, high, level, "gamma", self.count), bounds)

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
        above, below = (self._distances(end, bounds[1] - bounds[0], rows) for end in bounds)
        rarer = min(above, below, key=lambda side: side.terms)
        if not rarer.is_rare:
            return within(normal, bounds)
        near, far = (end / self._total for end in rarer.ends(level))
        low, high = (bounds[0] + near, bounds[0] + far) if rarer is above else (bounds[1] - far, bounds[1] - near)
        return within(Estimate(self._mean, low, high, level, "gamma", self.count), bounds)

    def _distances(self, end: float, width: float, rows: float) -> RareSum:
        """The weighted sum of the distances from one end of a range."""
        gap = self._mean - end
        squares = self._spread + 2 * gap * self._tilt + gap**2 * self._squares
        return RareSum(self._total * abs(gap), squares, self._largest * width, rows)


class Bernstein:
    """An interval for the average conditional mean of bounded numbers, valid for any count.

    For x in [0, 1] with conditional means m and predictions g from the past,
    exp(sum rate (x - m) - sum (x - g)^2 (-ln(1 - rate) - rate)) is a supermartingale (Howard et al. 2021, Section 3;
    Fan et al. 2015), so that |mean x - mean m| <= (ln(2/delta) + (-ln(1 - rate) - rate) sum (x - g)^2) / (n rate) for
    each rate in (0, 1). Means may change from row to row: a policy that learns is covered.
    """

    def __init__(self, low: float, high: float) -> None:
        self._low, self._span = low, high - low
        self._count, self._total, self._squares = 0, 0.0, 0.0

    def add(self, values: Vector) -> None:
        """Take in some numbers in [low, high], in order."""
        x = (values - self._low) / self._span
        before = self._total + np.concatenate([[0.0], np.cumsum(x)[:-1]]) if x.size else x
        seen = self._count + np.arange(x.size)
        # Predicted from the values before only; any such prediction is valid, and a good one gives a short interval.
        self._squares += float(((x - (0.5 + before) / (1 + seen)) ** 2).sum())
        self._total += float(x.sum())
        self._count += x.size

    def interval(self, level: float) -> Estimate:
        """The mean with its interval, the best over a grid of rates among which delta is shared."""
        n = self._count
        if n == 0:
            return Estimate(math.nan, math.nan, math.nan, level, "bernstein", 0)
        price = math.log(2 * len(RATES) / (1 - level))
        reach = min((price + (-math.log1p(-rate) - rate) * self._squares) / (n * rate) for rate in RATES)
        value = self._low + self._span * self._total / n
        low, high = value - self._span * reach, value + self._span * reach
        return Estimate(value, max(low, self._low), min(high, self._low + self._span), level, "bernstein", n)
