"""The ramp of the guard: how large a share of the rounds to ask for. No proof rests on it; the gate has the last word.

With a holdout h = 1 - p kept up for t more rounds, the slack grows by D t, D = sign m_a + (alpha - sign) m_b, and the
variance of its estimate by m t/h, m = (1 - sign alpha)^2 var_b, var_b the spread of the baseline's rewards around what
was predicted of them. The bound stays above 0 for all t to come if

    h >= event m / (D (G + sqrt(L (2G - L)))),      G what was estimated of the slack so far, L its bound.

That makes the holdout shrink like 1/t. A quarter more is asked for, and more than that where L is small beside G: a
bound that falls to 0 has to be earned again at the free share, which takes long. (docs/mathematics.md, "The ramp")
"""

import math

from surefoot.arrays import Vector
from surefoot.compiled import compiled, compiled_apart
from surefoot.safety.bank import (
    ALPHA,
    BASELINE_COUNT,
    BASELINE_MEAN,
    BASELINE_SPREAD,
    BOUND,
    EVENT,
    LEARNER_COUNT,
    LEARNER_MEAN,
    LEARNER_SPREAD,
    OWED,
    RATE,
    RESERVE,
    SIGN,
    TOTAL,
    free_share,
)

# All of these were chosen by simulation (`python -m bench guard`); none enters a proof.
CAUTION = 1.25  # times the holdout that would just do
STEADY = 0.3  # of the first term of G + sqrt(L (2G - L)), 3 alpha at most: the less, the harder a bound near 0 brakes
BET = 0.4  # the largest share of its wealth that the best rate may lose in one round
WORSE = 4.0  # standard errors below the floor at which a learner is left to probes
SHRINK = 0.1  # of the squared error of a lift, against which the lift is shrunk
PROBE = 0.05  # of the free share


@compiled_apart
def wanted(settings: Vector, bank: Vector) -> float:
    """The share to ask for: at least a probe."""
    sign, alpha = settings[SIGN], settings[ALPHA]
    # Rewards that never varied must not look as if no holdout were needed.
    weight, spread = alpha - sign, max(bank[BASELINE_SPREAD], 1e-9)
    gain = sign * bank[LEARNER_MEAN] + weight * bank[BASELINE_MEAN]
    # Of a cost no share need be free: the gate then cuts this to what the bank can pay.
    start = free_share(settings, 0.0) if sign > 0.0 else alpha
    error = bank[LEARNER_SPREAD] / bank[LEARNER_COUNT] + weight * weight * spread / bank[BASELINE_COUNT]
    if gain < -WORSE * math.sqrt(error):
        return float(PROBE * start)
    lift, noise = sign * (bank[LEARNER_MEAN] - bank[BASELINE_MEAN]), SHRINK * error
    gain = lift * (lift * lift / (lift * lift + noise)) + alpha * bank[BASELINE_MEAN]
    bound, total = bank[BOUND] + settings[RESERVE] - bank[OWED], bank[TOTAL] + settings[RESERVE] - bank[OWED]
    if bound <= 0.0 or gain <= 0.0:
        return float(start)
    reach = min(STEADY, 3.0 * alpha) * total + math.sqrt(bound * max(0.0, 2.0 * total - bound))
    holdout = CAUTION * settings[EVENT] * weight * weight * spread / (gain * reach)
    return float(max(start, 1.0 - max(holdout, _affordable(settings, bank))))


@compiled
def _affordable(settings: Vector, bank: Vector) -> float:
    """The holdout at which a round cannot cost the best rate more than BET of its wealth."""
    largest = BET / bank[RATE]
    if settings[SIGN] > 0.0:
        scale = (1.0 - settings[ALPHA]) * (1.0 - bank[BASELINE_MEAN])
        return float(scale / (largest + 1.0 - (1.0 - settings[ALPHA]) * bank[BASELINE_MEAN]))
    scale = (1.0 + settings[ALPHA]) * bank[BASELINE_MEAN]
    return float(scale / (largest + scale))
