"""The guard straight from docs/mathematics.md, slow and in plain Python: one round after the other, no shortcuts."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

RATES = [4.0 * 2.13**-i for i in range(12)]


def bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The last number that passes, until there is none between the two ends."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


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

    def enter(self, p: float, balance: float, is_learner: bool, y: float | None) -> None:
        """Book a round by the definition: the smallest g over all outcomes, and the logarithms one by one."""
        slope = (self.alpha - self.sign * p) / (1 - p)
        baseline = [reward * slope - p * balance for reward in (self.low, 1.0)]
        learner = [self.sign * reward + (1 - p) * balance for reward in (self.low, 1.0)]
        k = max(0.0, -min(baseline + learner if p > 0 else baseline))
        g = min(learner if is_learner else baseline)
        if y is not None and is_learner:
            g = self.sign * y + (1 - p) * balance
        elif y is not None:
            g = y * slope - p * balance
        for i, rate in enumerate(RATES):
            self.wealth[i] += math.log(1 + rate * g) if rate * k < 0.98 else -rate * self.worst(p)
        self.bank = max(self.bound(), self.bank - self.worst(p))

    def bound(self) -> float:
        """L by bisection: where the mixture of wealths reaches its limit."""
        event = math.log(len(RATES) / self.delta)

        def exceeds(slack: float) -> bool:
            parts = [w - rate * slack - event for w, rate in zip(self.wealth, RATES, strict=True)]
            top = max(parts)
            return top + math.log(sum(math.exp(part - top) for part in parts)) >= 0.0

        return bisect(exceeds, -1e6, 1e6)
