"""The bank of one metric, added up again from the rewards.  (docs/mathematics.md, "The guard")

A round that plays the proposal with probability p has the slack d = sign p mu_a + (alpha - sign p) mu_b. A bet at a
rate l is on both sides, with the coefficients sign l and l (alpha - sign p)/(1 - p) and a centre for each. It
multiplies a wealth by exp(l d') (1 + s (y - m)), where d' is the slack if the centres were the means, and s and m are
those of the side that was played. The slack of all rounds is at least the S at which sum over rates of
exp(log_wealth - rate S - event) = 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.audit.declarations import RATES, DeclaredMetric, GuardDeclarations

MEMORY, HISTORY, CHANGE, STEPS = 300.0, 1e4, 3.0, 4
LEAST_FACTOR, RAREST = 0.05, 1e-6  # of 1 + s (y - m), and of the chances that means are believed to be
OF_TERM, OF_SUM = 1e-14, 2.3e-16  # given away of every logarithm that is added, and of the sum
DRIFT = 2.0**-50  # by how much two may differ who give away what rounding loses of a sum, as parts of that sum
BELOW_ONE = 1.0 - 2.0**-50
UNLUCKY, STEADY = 7.0, 0.01


@dataclass(frozen=True, slots=True)
class BookedRound:
    """What a round is settled by, fixed before its coin: its share, its worst, and mean and spread of both sides."""

    share: float
    worst: float
    learner: tuple[float, float]
    baseline: tuple[float, float]


@dataclass(slots=True)
class SideMean:
    """A running mean that begins in the middle, the spread around what was expected, and the mean since a change."""

    mean: float
    spread: float
    overall: float
    count: float = 1.0
    rewards: float = 1.0

    def add(self, reward: float, expected: float) -> None:
        """Take a reward in."""
        self.count = min(self.count + 1.0, MEMORY)
        self.mean += (reward - self.mean) / self.count
        self.spread += ((reward - expected) ** 2 - self.spread) / self.count
        self.rewards = min(self.rewards + 1.0, HISTORY)
        self.overall += (reward - self.overall) / self.rewards
        if (self.mean - self.overall) ** 2 * self.count > CHANGE**2 * self.spread:
            self.rewards, self.overall = self.count, self.mean


class RebuiltBank:
    """What one metric has earned and owes."""

    def __init__(self, metric: DeclaredMetric) -> None:
        self.metric = metric
        self.log_wealth = [0.0] * len(RATES)
        self.bound = -metric.event / RATES[0]
        self.carried = self.played = metric.reserve
        self.owed = self.coin_variance = self.drift = 0.0
        width = 1.0 - metric.low
        middle = metric.low + width / 2.0
        self.learner, self.baseline = (SideMean(middle, width * width / 4.0, middle) for _ in range(2))

    @property
    def held(self) -> float:
        """What may be spent."""
        return self.played if self.metric.is_played else self.carried

    @property
    def rounding(self) -> float:
        """By how much what was held may differ from this, by the sums made here: no figure of a prover enters it."""
        return 1e-12 * (1.0 + abs(self.held) + self.owed) + self.drift

    def held_at(self, rounded: float) -> float:
        """The same, or the least and the most that it may have been, as far as rounding goes, at -1 and 1."""
        return self.held + rounded * self.rounding

    def allowed_at(self, rounded: float) -> float:
        """The largest share that is proved to be safe where so much is held."""
        held = self.held_at(rounded)
        if self.metric.is_played:
            return 1.0 if held >= self.worst_of_playing else 0.0
        return self.free_share(max(held, 0.0))

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

    def plan(self, share: float, prediction: float | None) -> BookedRound:
        """Fix what a round will be settled by, from what is known before its coin."""
        baseline = self.baseline.mean if prediction is None else prediction
        learner = min(max(baseline + self.learner.mean - self.baseline.mean, self.metric.low), 1.0)
        sides = (learner, self.learner.spread), (baseline, self.baseline.spread)
        return BookedRound(share, self.worst(share), *sides)

    def charge(self, share: float, is_learner: bool) -> None:
        """Charge a round at its worst."""
        self._pay(self.worst(share), share * (1.0 - share), self.worst_of_playing if is_learner else 0.0)

    def lose(self, rounds: float, share: float) -> None:
        """Pay for rounds of which nothing is left: at the largest share, with as much luck as coins can have."""
        self._pay(rounds * self.worst(share), 0.25 * rounds, rounds * self.worst_of_playing)

    def _pay(self, worst: float, variance: float, played: float) -> None:
        """Sums give away what rounding may have lost, or a bank that is empty to the bit might seem not to be."""
        self.drift += DRIFT * (abs(self.held) + self.owed + worst + played)
        self.owed += worst
        self.carried = _less(self.carried, worst)
        if self.metric.is_played:
            self.coin_variance += variance
            self.played = _less(self.played, played)
        self._carry()

    def _carry(self) -> None:
        self.carried = max(self.carried, self.bound + self.metric.reserve - self.owed)
        if self.metric.is_played:
            self.played = max(self.played, self.carried - self.coin_luck)

    def enter(self, booked: BookedRound, is_learner: bool, reward: float, *, is_late: bool = False) -> None:
        """Take the next round in; a reward that is nan is missing, and counts where its bet pays least.

        A late one has entered without its reward, which now counts in place of the least.
        """
        bets = [(-1.0, math.nan), (1.0, reward)] if is_late else [(1.0, reward)]
        for sign, paid in bets:
            for i, rate in enumerate(RATES):
                logarithm, lost = self._bet(rate, booked, is_learner, paid)
                self.log_wealth[i] += sign * logarithm - (lost + OF_SUM * abs(self.log_wealth[i]))
        if not is_late:
            self.drift += DRIFT * self.owed
            self.owed = max(0.0, self.owed - booked.worst)
        self._find_bound()
        self._carry()
        # Where nothing was at stake rewards may be of another kind.
        if booked.share > 0.0 and not math.isnan(reward):
            expected = booked.learner if is_learner else booked.baseline
            (self.learner if is_learner else self.baseline).add(reward, expected[0])

    def _bet(self, rate: float, booked: BookedRound, is_learner: bool, reward: float) -> tuple[float, float]:
        """The logarithm of what the bet of one rate pays, and what of it is given away for rounding."""
        metric, share = self.metric, booked.share
        weight = metric.alpha - metric.sign * share
        on_learner, on_baseline = metric.sign * rate, rate * weight / (1.0 - share)
        learner = self._centre(on_learner, *booked.learner)
        # With nothing at stake the bet cannot be lost.
        baseline = self._centre(on_baseline, *booked.baseline) if share > 0.0 else metric.low
        expected = rate * (metric.sign * share * learner + weight * baseline)
        coefficient, centre = (on_learner, learner) if is_learner else (on_baseline, baseline)
        if math.isnan(reward):
            reward = metric.low if coefficient >= 0.0 else 1.0
        won = coefficient * (reward - centre)
        logarithm = expected + math.log1p(won)
        return logarithm, OF_TERM * (1.0 + abs(logarithm) + (1.0 + abs(coefficient)) / (1.0 + won))

    def _centre(self, coefficient: float, mean: float, spread: float) -> float:
        """Where the bet grows fastest, for rewards of two values: one is the end of the range at which it loses.

        In units of the distance of the two, the centre x solves c x^2 - (c + 1) x + q = 0, q the chance of the upper
        one and c what the bet wins from one to the other.
        """
        low, width = self.metric.low, 1.0 - self.metric.low
        mean = min(max((mean - low) / width, RAREST), 1.0 - RAREST)
        spread = min(spread / width**2, mean * (1.0 - mean))
        lower, upper = (0.0, mean + spread / mean) if coefficient >= 0.0 else (mean - spread / (1.0 - mean), 1.0)
        chance, bet = (mean - lower) / (upper - lower), coefficient * width * (upper - lower)
        root = math.sqrt(max(0.0, (bet + 1.0) ** 2 - 4.0 * bet * chance))
        at = 2.0 * chance / (bet + 1.0 + root) if bet > -1.0 else (bet + 1.0 - root) / (2.0 * bet)
        centre = low + width * (lower + at * (upper - lower))
        if coefficient > 0.0:
            centre = min(centre, low + (1.0 - LEAST_FACTOR) / coefficient)
        elif coefficient < 0.0:
            centre = max(centre, 1.0 - (1.0 - LEAST_FACTOR) / -coefficient)
        return min(max(centre, low), 1.0)

    def _find_bound(self) -> None:
        """Newton's steps from the best single rate, each of them on the safe side of a convex curve."""
        logs = [wealth - self.metric.event for wealth in self.log_wealth]
        bound = max(log / rate for log, rate in zip(logs, RATES, strict=True))
        for _ in range(STEPS):
            parts = [math.exp(log - rate * bound) for log, rate in zip(logs, RATES, strict=True)]
            total = sum(parts)
            if total > 1.0:
                slope = sum(rate * part for rate, part in zip(RATES, parts, strict=True))
                bound += math.log(total) * total / slope
        self.bound = bound - 1e-13 * (1.0 + abs(bound))


def _less(held: float, paid: float) -> float:
    return held - paid - OF_SUM * (abs(held) + paid) if paid > 0.0 else held


def ramp_share(declared: GuardDeclarations, banks: Sequence[RebuiltBank], rounded: float = 0.0) -> float:
    """The least that every bank allows and the ramp asks for, or the step below it.  (docs/mathematics.md, "The ramp")

    With `rounded` at -1 and 1 that is the least and the most that it may have been (`RebuiltBank.held_at`).

    A function of the past alone, so that nobody chooses it by the coin. No promise rests on how large it is below what
    the banks allow; that it was fixed before the coin, all of them do.
    """
    share = declared.most
    for bank in banks:
        share = min(share, bank.allowed_at(rounded))
        if declared.ramp == "free":
            share = min(share, bank.free_share(0.0))
        elif declared.ramp == "auto":
            share = min(share, _affordable(bank, rounded) * (_trust(bank) if declared.goal == "earn" else 1.0))
    if declared.steps is None:
        return share
    return max((step for step in declared.steps if step <= share), default=0.0)


def _affordable(bank: RebuiltBank, rounded: float) -> float:
    """The share at which what is held lasts for seven unlucky rewards of the baseline."""
    low, mean = bank.metric.low, bank.baseline.mean
    spread = bank.baseline.spread / max((mean - low) * (1.0 - mean), 1e-9)
    reach = max(0.0, bank.held_at(rounded)) / (UNLUCKY * min(max(spread, STEADY), 1.0) * (1.0 - low))
    return (bank.free_share(0.0) + reach) / (1.0 + reach)


def _trust(bank: RebuiltBank) -> float:
    """1/z^2 of a learner that is z > 1 standard errors below the floor by itself, of late and since it changed."""
    metric, learner, baseline = bank.metric, bank.learner, bank.baseline
    spread, floor = max(learner.spread, baseline.spread), metric.sign - metric.alpha

    def kept(of_learner: float, of_baseline: float, counts: tuple[float, float]) -> float:
        below = floor * of_baseline - metric.sign * of_learner
        return min(1.0, spread * sum(1.0 / count for count in counts) / below**2) if below > 0.0 else 1.0

    if floor * baseline.mean <= metric.sign * learner.mean:
        return 1.0
    return min(
        kept(learner.mean, baseline.mean, (learner.count, baseline.count)),
        kept(learner.overall, baseline.overall, (learner.rewards, baseline.rewards)),
    )
