"""What the learner earns beyond the baseline: an estimate, and an interval that holds at all times at once.

Of a linear policy it is read off the policy's own confidence set, which contains theta in every round with probability
1 - delta: whatever is summed up of the ledger, and whenever somebody looks, lies within what the set allows for it.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

from surefoot.experiment.estimates import estimates, known_rewards, ledger_sums
from surefoot.linear.ellipsoid import Ball, newest_set
from surefoot.policies import Guard
from surefoot.policies.base_policy import BasePolicy
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.safety.metric import MetricKind

Interval: TypeAlias = tuple[float, float]
GUARD_CONFIDENCE = 0.95  # of `core/lift.hpp`


@dataclass(frozen=True, slots=True)
class Lift:
    """How much more a decision of the learner earned, on average, than the baseline would have.

    Of a guard it is about proposals, played or not, over the rounds in which they had a share.

    Attributes
    ----------
    metric : str
        Of a guard, the metric: its first floor.
    estimate, low, high : float
        In the reward's own unit. Of a guard there is no estimate, but nan: the difference of both sides' means would be
        misled where shares and rewards change over time, and lie outside of the interval, which is not.
    decisions : int
        The learner's decisions so far; those before a restart are not counted, and the interval is not about them.
    confidence : float
        The probability that the interval holds, at all times at once, if what was declared is true.
    kind : {"floor", "ceiling"}
        Of a guard, whether more of its metric is better, or less, as of costs.

    Examples
    --------
    >>> lift = Lift("reward", 0.02, 0.01, 0.03, 400, 0.95)
    >>> lift.is_paying, lift.is_costing
    (True, False)
    """

    metric: str
    estimate: float
    low: float
    high: float
    decisions: int
    confidence: float
    kind: MetricKind = "floor"

    @property
    def is_paying(self) -> bool:
        """Whether the learner does better than the baseline, by the interval."""
        return self.high < 0 if self.kind == "ceiling" else self.low > 0

    @property
    def is_costing(self) -> bool:
        """Whether it does worse, by the interval."""
        return self.low > 0 if self.kind == "ceiling" else self.high < 0


@dataclass(frozen=True, slots=True)
class Earnings:
    """What is known of sums over the ledger of a policy; nan where nothing is.

    lift:    of the learner's decisions; None where there are none, or nothing bounds it
    reward:  what all decisions have earned
    surplus: by how much that lies above the floor
    """

    lift: Lift | None = None
    reward: Interval = (math.nan, math.nan)
    surplus: Interval = (math.nan, math.nan)


NOTHING = Earnings()


def earnings_of(policy: BasePolicy) -> Earnings:
    """What is known of a linear policy that is told its baseline; nothing while the alarm is on."""
    if not isinstance(policy, LinearPolicy) or not policy.needs_baseline or policy.alarm is not None:
        return NOTHING
    bounds = LedgerBounds(policy)
    surplus = bounds.less(1.0 - policy.settings["alpha"]) if policy.keeps_floor else NOTHING.surplus
    return Earnings(_lift(policy, bounds.less(1.0)), bounds.less(0.0), surplus)


def _lift(policy: LinearPolicy, total: Interval) -> Lift | None:
    decisions = int(policy.ledger.learner_rounds)
    if not decisions:
        return None
    earned, baseline = estimates(policy)
    low, high = total
    confidence = 1.0 - policy.settings["delta"]
    return Lift("reward", (earned - baseline) / decisions, low / decisions, high / decisions, decisions, confidence)


def guard_lift(guard: Guard, decisions: int) -> Lift | None:
    """Of a guard's first floor, or else of its first metric; None before the learner's first decision."""
    if not decisions:
        return None
    metrics = guard.metrics
    name = next((name for name, metric in metrics.items() if metric.kind == "floor"), next(iter(metrics)))
    return Lift(name, math.nan, *guard.lift_intervals[name], decisions, GUARD_CONFIDENCE, metrics[name].kind)


class LedgerBounds:
    """Bounds of what was earned less a share of what the baseline would have earned, over the whole ledger."""

    def __init__(self, policy: LinearPolicy) -> None:
        self._rounds = policy.ledger.learner_rounds, policy.ledger.baseline_rounds
        self._earned, self._baseline = ledger_sums(policy)
        self._is_known = known_rewards(policy) is not None
        # Of nested sets the newest one alone, which costs no copy of all.
        self._set, self._ball = newest_set(policy.core), Ball(policy.settings["theta_bound"])
        self._misfit = float(policy.settings.get("misspecification", 0.0))
        self._unconfirmed = policy.charged if isinstance(policy, SafeLUCB) else 0.0

    def less(self, share: float) -> Interval:
        """What the confidence set and the declared length of theta allow, all rounds at once."""
        vector, constant = self._earned.less(self._baseline, share)
        slack = self._unconfirmed + self._misfit * self._weight(share)
        low = max(self._set.lower(vector), self._ball.lower(vector)) + constant - slack
        high = min(self._set.upper(vector), self._ball.upper(vector)) + constant + slack
        return low, high

    def _weight(self, share: float) -> float:
        """How often a mean counts that may be off by the declared misspecification."""
        learner, baseline = self._rounds
        return learner if self._is_known else learner * (1.0 + share) + baseline * (1.0 - share)
