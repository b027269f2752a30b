"""The guard straight from docs/mathematics.md, slow and in plain Python: one round after the other, no shortcuts."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

RATES = [4.0 * 2.13**-i for i in range(12)]
LEAST_FACTOR = 0.05
Side = tuple[float, float]  # what is expected of a side's rewards: mean and variance


def bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The last number that passes, until there is none between the two ends."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def two_points(coefficient: float, low: float, side: Side) -> list[tuple[float, float]]:
    """Rewards of this mean and variance, with their chances: two values, one where the bet loses most."""
    width = 1.0 - low
    mean = low + width * min(max((side[0] - low) / width, 1e-6), 1.0 - 1e-6)
    variance = min(side[1], (mean - low) * (1.0 - mean))
    end = 1.0 if coefficient < 0 else low
    other = mean + variance / (mean - end)
    chance = (mean - other) / (end - other)
    return [(end, chance), (other, 1.0 - chance)]


def centre(coefficient: float, low: float, side: Side) -> float:
    """Where the bet grows fastest, by bisection on the slope of its growth; no factor may be below the least."""
    if coefficient == 0.0:
        return side[0]
    points = two_points(coefficient, low, side)

    def is_short_of_it(at: float) -> bool:
        """The mean of 1/(1 + s (y - at)) rises (s > 0) or falls (s < 0) with `at`, and is 1 at the best one."""
        factors = [(1.0 + coefficient * (y - at), chance) for y, chance in points]
        if min(factor for factor, _ in factors) <= 0.0:
            return coefficient < 0.0
        mean = math.fsum(chance / factor for factor, chance in factors)
        return mean < 1.0 if coefficient > 0.0 else mean > 1.0

    best = bisect(is_short_of_it, low, 1.0)
    if coefficient > 0.0:
        return min(best, low + (1.0 - LEAST_FACTOR) / coefficient)
    return min(1.0, max(best, 1.0 - (1.0 - LEAST_FACTOR) / -coefficient))


@dataclass
class Bank:
    """One metric, rewards as shares of the highest; every round is settled at once."""

    sign: float
    alpha: float
    low: float
    most: float
    delta: float
    wealth: list[float] = field(default_factory=lambda: [0.0] * len(RATES))
    bank: float = 0.0

    def worst(self, p: float) -> float:
        """-d at its largest, by trying the corners of what the means can be."""
        corners = [
            self.sign * p * a + (self.alpha - self.sign * p) * b
            for a in (self.low, 1.0)
            for b in (self.low, self.most if self.sign > 0 else 1.0)
        ]
        return max(0.0, -min(corners))

    def largest_share(self) -> float:
        """The gate by bisection."""
        return bisect(lambda share: self.worst(share) <= self.bank, 0.0, 1.0)

    def factor(self, rate: float, p: float, learner: Side, baseline: Side, is_learner: bool, y: float | None) -> float:
        """What one bet pays; a reward that is missing counts where it pays least."""
        on_learner, on_baseline = self.sign * rate, rate * (self.alpha - self.sign * p) / (1 - p)
        a = centre(on_learner, self.low, learner)
        b = centre(on_baseline, self.low, baseline) if p > 0 else self.low
        expected = self.sign * p * a + (self.alpha - self.sign * p) * b
        coefficient, middle = (on_learner, a) if is_learner else (on_baseline, b)
        rewards = [y] if y is not None else [self.low, 1.0]
        return math.exp(rate * expected) * min(1.0 + coefficient * (reward - middle) for reward in rewards)

    def enter(self, p: float, learner: Side, baseline: Side, is_learner: bool, y: float | None) -> None:
        """Book a round by the definition, the logarithms one by one."""
        for i, rate in enumerate(RATES):
            self.wealth[i] += math.log(self.factor(rate, p, learner, baseline, is_learner, y))
        self.bank = max(self.bound(), self.bank - self.worst(p))

    def bound(self) -> float:
        """L by bisection: where the mixture of wealths reaches its limit."""
        event = math.log(len(RATES) / self.delta)

        def exceeds(slack: float) -> bool:
            parts = [w - rate * slack - event for w, rate in zip(self.wealth, RATES, strict=True)]
            top = max(parts)
            return top + math.log(sum(math.exp(part - top) for part in parts)) >= 0.0

        return bisect(exceeds, -1e6, 1e6)
