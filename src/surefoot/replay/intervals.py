"""Means with intervals, from numbers that arrive in batches. Each interval says what it takes for granted."""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from surefoot.arrays import Vector
from surefoot.replay.rare_rewards import RareSum, alike

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
