"""What the learner earns beyond the baseline, with an interval that holds at all times at once; no proof rests on it.

Over the rounds in which the proposal had a share p > 0, with any predictions e_a and e_b fixed before the coin,

    x = U (y - e_a)/p - (1 - U)(y - e_b)/(1 - p) + e_a - e_b,        E[x | past] = mu_a - mu_b,

and the bets of `surefoot.safety.bank` on x and on -x bound the sum of mu_a - mu_b from both sides, whatever the means
do.
"""

import math

from surefoot.arrays import Vector
from surefoot.compiled import compiled_apart
from surefoot.safety.bank import NEAR_RUIN, RATE_GRID, RATES, ROUNDING, mixture_bound

LEVEL = 0.95
EVENT = math.log(2.0 * RATES / (1.0 - LEVEL))

# The head of a lift, then the logarithms of the wealth of bets on x and on -x.
COUNT, LOW_SUM, HIGH_SUM, ABOVE = range(4)
BELOW = ABOVE + RATES
SIZE = BELOW + RATES


@compiled_apart
def enter_lift(
    lift: Vector, low: float, p: float, learner: float, baseline: float, is_learner: bool, reward: float
) -> None:
    """Take in a round of which both sides were expected to bring so much; a missing reward may have been anything."""
    if p <= 0.0:
        return
    gap, spread = learner - baseline, 1.0 - low
    least = min((low - learner) / p, (baseline - 1.0) / (1.0 - p)) + gap
    most = max((1.0 - learner) / p, (baseline - low) / (1.0 - p)) + gap
    is_missing = math.isnan(reward)
    estimate = gap
    if not is_missing:
        estimate += (reward - learner) / p if is_learner else (baseline - reward) / (1.0 - p)
    lift[COUNT] += 1.0
    for i in range(RATES):
        rate = RATE_GRID[i]
        worst = -rate * spread
        above = math.log1p(rate * estimate) if not is_missing and -rate * least < NEAR_RUIN else worst
        below = math.log1p(-rate * estimate) if not is_missing and rate * most < NEAR_RUIN else worst
        lift[ABOVE + i] += above - ROUNDING * (1.0 + abs(above))
        lift[BELOW + i] += below - ROUNDING * (1.0 + abs(below))
    lift[LOW_SUM] = mixture_bound(lift, ABOVE, EVENT)
    lift[HIGH_SUM] = -mixture_bound(lift, BELOW, EVENT)


def lift_interval(low: float, lift: Vector) -> tuple[float, float]:
    """The interval of the mean of mu_a - mu_b, cut to what rewards from `low` to 1 allow."""
    count, widest = float(lift[COUNT]), 1.0 - float(low)
    if count == 0.0:
        return -widest, widest
    return max(-widest, float(lift[LOW_SUM]) / count), min(widest, float(lift[HIGH_SUM]) / count)
