"""The share that a guard must have asked for: a function of the past alone, so that nobody chooses it by the coin.

No promise rests on how large it is below what the banks allow; that it was fixed before the coin, all of them do.
(docs/mathematics.md, "The ramp")
"""

import math
from collections.abc import Sequence

from surefoot.audit.guard_declarations import GuardDeclarations
from surefoot.audit.rebuilt_bank import RebuiltBank

CAUTION, STEADY, BET, WORSE, SHRINK, PROBE = 1.25, 0.3, 0.4, 4.0, 0.1, 0.05


def ramp_share(declared: GuardDeclarations, banks: Sequence[RebuiltBank]) -> float:
    """The least that every bank allows and the ramp asks for, or the step below it."""
    share = declared.most
    for bank in banks:
        share = min(share, bank.allowed)
        if declared.ramp == "auto":
            share = min(share, _wanted(bank))
        elif declared.ramp == "free":
            share = min(share, bank.free_share(0.0))
    if declared.steps is None:
        return share
    return max((step for step in declared.steps if step <= share), default=0.0)


def _wanted(bank: RebuiltBank) -> float:
    metric, learner, baseline = bank.metric, bank.learner, bank.baseline
    weight, spread = metric.alpha - metric.sign, max(baseline.spread, 1e-9)
    start = bank.free_share(0.0) if metric.sign > 0.0 else metric.alpha
    error = learner.spread / learner.count + weight * weight * spread / baseline.count
    if metric.sign * learner.mean + weight * baseline.mean < -WORSE * math.sqrt(error):
        return PROBE * start
    lift = metric.sign * (learner.mean - baseline.mean)
    gain = lift * (lift * lift / (lift * lift + SHRINK * error)) + metric.alpha * baseline.mean
    open_ = metric.reserve - bank.owed
    bound, total = bank.bound + open_, bank.total + open_
    if bound <= 0.0 or gain <= 0.0:
        return start
    reach = min(STEADY, 3.0 * metric.alpha) * total + math.sqrt(bound * max(0.0, 2.0 * total - bound))
    holdout = CAUTION * metric.event * weight * weight * spread / (gain * reach)
    return max(start, 1.0 - max(holdout, _affordable(bank)))


def _affordable(bank: RebuiltBank) -> float:
    metric, mean, largest = bank.metric, bank.baseline.mean, BET / bank.rate
    if metric.sign > 0.0:
        return (1.0 - metric.alpha) * (1.0 - mean) / (largest + 1.0 - (1.0 - metric.alpha) * mean)
    scale = (1.0 + metric.alpha) * mean
    return scale / (largest + scale)
