"""The watch's bets: an e-process that grows where rewards stop following one theta.  (docs/mathematics.md, "The watch")

Each learned reward has a prediction from all learned before it, and an error e. One bettor says that from some round
on, all rewards of the baseline's rounds (or all of the learner's) lie `shift` noise scales above their predictions. On
its rounds its wealth is multiplied by

    exp((shift e/noise) - shift^2/2),

and a fresh share of its capital enters in every round, so that a change late in life is seen as well. What predictions
have cost beside the best theta is subtracted: surprises = sum e^2 D^2, D^2 the leverage of the row, and ridge B^2.
Under the declared model the wealth that is left is at most 1 on average whenever one stops, so by Ville's inequality it
reaches 1/delta with a probability of at most delta, at any time.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Vector
from surefoot.compiled import compiled, compiled_apart

SHIFTS = (0.1, -0.1, 0.2, -0.2, 0.4, -0.4, 0.8, -0.8, 1.6, -1.6)  # in units of the noise
BETTORS = len(SHIFTS)
SIDES = 2  # rounds of the baseline, rounds of the learner
HORIZON = 500.0  # half of the capital has entered after so many rounds of a side; the rest never runs out
ROUNDING = 1e-6  # of the logarithm, given away

# Of each side the rounds, then of each bettor: the logarithm of its wealth; that of the one share of capital that has
# grown most, for people; and of the rounds since that entered the first one's number, how many they are, and the sum of
# their errors.
WEALTH, GROWN, SINCE, SEEN, ERRORS, BETTOR = range(6)
SIDE = 1 + BETTORS * BETTOR


class Drift(NamedTuple):
    """What the best bettor has seen: so many rounds since round `since`, and by how much they lay off on average."""

    is_learner: bool
    since: int
    rounds: int
    shift: float


def new_bets() -> Vector:
    """Nobody has bet yet."""
    bets = np.zeros(SIDES * SIDE)
    # They are logarithms, and no capital has entered.
    by_bettor(bets)[:, :, : GROWN + 1] = -math.inf
    return bets


def by_bettor(bets: Vector) -> NDArray[np.float64]:
    """The numbers of each bettor, by side: a view."""
    return bets.reshape(SIDES, SIDE)[:, 1:].reshape(SIDES, BETTORS, BETTOR)


@compiled_apart
def bet(bets: Vector, is_learner: bool, error: float, round_: float) -> None:
    """Take in the error of one prediction, in units of the noise."""
    side = SIDE if is_learner else 0
    bets[side] += 1.0
    entering = math.log(HORIZON / ((HORIZON + bets[side] - 1.0) * (HORIZON + bets[side])))
    for i in range(BETTORS):
        at = side + 1 + i * BETTOR
        gain = SHIFTS[i] * error - 0.5 * SHIFTS[i] * SHIFTS[i]
        before = bets[at + WEALTH]
        # The larger is taken out, so that no exponential overflows.
        larger = max(before, entering)
        bets[at + WEALTH] = larger + math.log(math.exp(before - larger) + math.exp(entering - larger)) + gain
        if entering >= bets[at + GROWN]:
            bets[at + GROWN], bets[at + SINCE], bets[at + SEEN], bets[at + ERRORS] = entering, round_, 0.0, 0.0
        bets[at + GROWN] += gain
        bets[at + SEEN] += 1.0
        bets[at + ERRORS] += error


@compiled
def log_wealth(bets: Vector) -> float:
    """The logarithm of the bettors' average wealth, before what predictions have cost."""
    largest = -math.inf
    for i in range(SIDES * BETTORS):
        largest = max(largest, bets[i // BETTORS * SIDE + 1 + i % BETTORS * BETTOR])
    # Before the first bet -inf - -inf would be NaN.
    if largest == -math.inf:
        return largest
    total = 0.0
    for i in range(SIDES * BETTORS):
        total += math.exp(bets[i // BETTORS * SIDE + 1 + i % BETTORS * BETTOR] - largest)
    return largest + math.log(total / (SIDES * BETTORS))


@compiled_apart
def log_evidence(bets: Vector, surprises: float, noise: float, ridge: float, theta_bound: float) -> float:
    """The logarithm of the e-process: an alarm is due where it reaches ln(1/delta)."""
    cost = (surprises + ridge * theta_bound * theta_bound) / (2.0 * noise * noise)
    return log_wealth(bets) - cost - ROUNDING


def seen_by_best(bets: Vector, noise: float) -> Drift:
    """What the wealthiest bettor has seen."""
    bettors = by_bettor(bets)
    side, best = divmod(int(bettors[:, :, WEALTH].argmax()), BETTORS)
    since, seen, errors = bettors[side, best, SINCE:]
    return Drift(bool(side), int(since), int(seen), noise * float(errors / seen))
