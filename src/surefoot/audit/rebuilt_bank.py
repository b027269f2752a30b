"""The bank of one metric, added up again from the rewards.  (docs/mathematics.md, "The guard")

A round that plays the proposal with probability p has the slack d = sign p mu_a + (alpha - sign p) mu_b, estimated by
g = sign U y + (1 - U) y slope + (U - p) h with slope = (alpha - sign p)/(1 - p); g >= -k. For every rate of the grid
the logarithm of its wealth adds ln(1 + rate g), or -rate times the worst of the round where rate k is near 1. The
slack of all rounds is at least the S at which sum over rates of exp(log_wealth - rate S - event) = 1.
"""

import math
from dataclasses import dataclass

from surefoot.audit.guard_declarations import RATES, DeclaredMetric

NEAR_RUIN, MEMORY, STEPS = 0.98, 5000.0, 4
GIVEN_AWAY = 1e-14, 2.3e-16  # of every logarithm that is added, and of the sum
BELOW_ONE = 1.0 - 2.0**-50


@dataclass(frozen=True, slots=True)
class BookedRound:
    """What a round is settled by, fixed before its coin: its share, h, its worst, and what both sides should bring."""

    share: float
    balance: float
    worst: float
    baseline: float
    learner: float


@dataclass(slots=True)
class SideMean:
    """A running mean that begins at one half, and the spread around what was expected."""

    count: float = 1.0
    mean: float = 0.5
    spread: float = 0.25

    def add(self, reward: float, expected: float) -> None:
        """Take a reward in."""
        self.count = min(self.count + 1.0, MEMORY)
        self.mean += (reward - self.mean) / self.count
        self.spread += ((reward - expected) ** 2 - self.spread) / self.count


class RebuiltBank:
    """What one metric has earned and owes."""

    def __init__(self, metric: DeclaredMetric) -> None:
        self.metric = metric
        self.log_wealth = [0.0] * len(RATES)
        self.bound, self.rate = -metric.event / RATES[0], RATES[0]
        self.carried = self.played = metric.reserve
        self.owed = self.total = self.coin_variance = 0.0
        self.learner, self.baseline = SideMean(), SideMean()

    @property
    def held(self) -> float:
        """What may be spent, before rounding is given away."""
        return self.played if self.metric.is_played else self.carried

    @property
    def rounding(self) -> float:
        """What is given away of it: nothing that a prover writes down makes it larger."""
        return 1e-12 * (abs(self.held) + self.owed + abs(self.total))

    @property
    def allowed(self) -> float:
        """The largest share that is proved to be safe."""
        budget = self.held - self.rounding
        if self.metric.is_played:
            return 1.0 if budget >= self.worst_of_playing else 0.0
        return self.free_share(max(budget, 0.0))

    def free_share(self, budget: float) -> float:
        """The largest share whose worst is within a budget."""
        metric = self.metric
        if metric.sign > 0.0:
            reach, width = metric.alpha * metric.most + budget, metric.most - metric.low
        else:
            reach, width = metric.alpha * metric.low + budget, 1.0 - metric.low
        return min(1.0, BELOW_ONE * reach / width) if width > 0.0 else 1.0

    def worst(self, share: float) -> float:
        """-d at its largest, over the corners of what the two means can be."""
        metric = self.metric
        learner = share * metric.low if metric.sign > 0.0 else -share
        weight = metric.alpha - metric.sign * share
        return max(0.0, -(learner + min(weight * metric.low, weight * metric.most)))

    @property
    def worst_of_playing(self) -> float:
        """What a round of the learner's costs at most, once its coin has fallen."""
        metric = self.metric
        if metric.sign > 0.0:
            return max(0.0, (1.0 - metric.alpha) * metric.most - metric.low)
        return max(0.0, 1.0 - (1.0 + metric.alpha) * metric.low)

    def cost(self, share: float) -> float:
        """What a round with this share may cost at worst."""
        if self.metric.is_played:
            return self.worst_of_playing if share > 0.0 else 0.0
        return self.worst(share)

    @property
    def coin_luck(self) -> float:
        """How far the coins may have fallen against us, at all times at once."""
        if not self.metric.is_played or self.coin_variance == 0.0:
            return 0.0
        spread = 1.0 - self.metric.low
        rates = [rate / spread for rate in RATES]
        return min(
            ((math.expm1(rate * spread) - rate * spread) * self.coin_variance + self.metric.event) / rate
            for rate in rates
        )

    def plan(self, share: float, prediction: float | None, is_balanced: bool) -> BookedRound:
        """Fix what a round will be settled by, from what is known before its coin."""
        baseline = self.baseline.mean if prediction is None else prediction
        learner = min(max(baseline + self.learner.mean - self.baseline.mean, self.metric.low), 1.0)
        balance = self._balance(share, baseline, learner) if is_balanced else 0.0
        return BookedRound(share, balance, self.worst(share), baseline, learner)

    def charge(self, share: float, is_learner: bool) -> None:
        """Charge a round at its worst."""
        worst = self.worst(share)
        self.owed += worst
        self.carried = max(self.carried - worst, self.bound + self.metric.reserve - self.owed)
        if self.metric.is_played:
            self.coin_variance += share * (1.0 - share)
            self.played -= self.worst_of_playing if is_learner else 0.0
            self.played = max(self.played, self.carried - self.coin_luck)

    def _balance(self, share: float, baseline: float, learner: float) -> float:
        metric = self.metric
        if share == 0.0 or (metric.sign > 0.0 and share <= metric.alpha):
            return 0.0
        return baseline * self._slope(share) - metric.sign * learner

    def _slope(self, share: float) -> float:
        return (self.metric.alpha - self.metric.sign * share) / (1.0 - share)

    def _least(self, booked: BookedRound, is_learner: bool) -> float:
        """The least that g can be on one side."""
        metric, share, slope = self.metric, booked.share, self._slope(booked.share)
        if is_learner:
            return (metric.low if metric.sign > 0.0 else -1.0) + (1.0 - share) * booked.balance
        return min(slope, slope * metric.low) - share * booked.balance

    def _largest_loss(self, booked: BookedRound) -> float:
        sides = (False, True) if booked.share > 0.0 else (False,)
        return max(0.0, *(-self._least(booked, side) for side in sides))

    def enter(self, booked: BookedRound, is_learner: bool, reward: float) -> None:
        """Take the next round in; a reward that is nan is missing, and counts as the least of its side."""
        loss = self._largest_loss(booked)
        if math.isnan(reward):
            estimate = self._least(booked, is_learner)
        elif is_learner:
            estimate = self.metric.sign * reward + (1.0 - booked.share) * booked.balance
        else:
            estimate = reward * self._slope(booked.share) - booked.share * booked.balance
        self.total += estimate
        self.owed = max(0.0, self.owed - booked.worst)
        self._bet(estimate, loss, booked.worst)
        self._find_bound()
        self.carried = max(self.carried, self.bound + self.metric.reserve - self.owed)
        if self.metric.is_played:
            self.played = max(self.played, self.carried - self.coin_luck)
        if not math.isnan(reward):
            expected = booked.learner if is_learner else booked.baseline
            (self.learner if is_learner else self.baseline).add(reward, expected)

    def _bet(self, estimate: float, loss: float, worst: float) -> None:
        of_term, of_sum = GIVEN_AWAY
        for i, rate in enumerate(RATES):
            term = math.log1p(rate * estimate) if rate * loss < NEAR_RUIN else -rate * worst
            wealth = self.log_wealth[i]
            self.log_wealth[i] = wealth + term - (of_term * (1.0 + abs(term)) + of_sum * abs(wealth))

    def _find_bound(self) -> None:
        """Newton's steps from the best single rate, each of them on the safe side of a convex curve."""
        logs = [wealth - self.metric.event for wealth in self.log_wealth]
        singles = [log / rate for log, rate in zip(logs, RATES, strict=True)]
        bound = max(singles)
        enough = (0.8 if bound > 0.0 else 1.0) * bound
        self.rate = min(rate for rate, single in zip(RATES, singles, strict=True) if single >= enough)
        for _ in range(STEPS):
            parts = [math.exp(log - rate * bound) for log, rate in zip(logs, RATES, strict=True)]
            total = sum(parts)
            if total > 1.0:
                slope = sum(rate * part for rate, part in zip(RATES, parts, strict=True))
                bound += math.log(total) * total / slope
        self.bound = bound - 1e-13 * (1.0 + abs(bound))
