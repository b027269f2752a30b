"""The share that a guard must have asked for: a function of the past alone, so that nobody chooses it by the coin.

No promise rests on how large it is below what the banks allow; that it was fixed before the coin, all of them do.
(docs/mathematics.md, "The ramp")
"""

from collections.abc import Sequence

from surefoot.audit.guard_declarations import GuardDeclarations
from surefoot.audit.rebuilt_bank import RebuiltBank

UNLUCKY, STEADY = 7.0, 0.01


def ramp_share(declared: GuardDeclarations, banks: Sequence[RebuiltBank]) -> float:
    """The least that every bank allows and the ramp asks for, or the step below it."""
    share = declared.most
    for bank in banks:
        share = min(share, bank.allowed)
        if declared.ramp == "free":
            share = min(share, bank.free_share(0.0))
        elif declared.ramp == "auto":
            share = min(share, _affordable(bank) * (_trust(bank) if declared.goal == "earn" else 1.0))
    if declared.steps is None:
        return share
    return max((step for step in declared.steps if step <= share), default=0.0)


def _affordable(bank: RebuiltBank) -> float:
    """The share at which the bank lasts for seven unlucky rewards of the baseline."""
    low, mean = bank.metric.low, bank.baseline.mean
    spread = bank.baseline.spread / max((mean - low) * (1.0 - mean), 1e-9)
    reach = max(0.0, bank.held) / (UNLUCKY * min(max(spread, STEADY), 1.0) * (1.0 - low))
    return (bank.free_share(0.0) + reach) / (1.0 + reach)


def _trust(bank: RebuiltBank) -> float:
    """1/z^2 of a learner that is z > 1 standard errors below the floor by itself."""
    metric, learner, baseline = bank.metric, bank.learner, bank.baseline
    below = (metric.sign - metric.alpha) * baseline.mean - metric.sign * learner.mean
    error = max(learner.spread, baseline.spread) * (1.0 / learner.count + 1.0 / baseline.count)
    return min(1.0, error / below**2) if below > 0.0 else 1.0
