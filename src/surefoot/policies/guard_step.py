"""The compiled step of a guard over all its metrics: ask for a share, book the round, take its reward in.

A round is kept as [share, and for each metric its balance h, its worst and what was predicted of the baseline], until
its reward is settled.
"""

import math
from typing import NamedTuple

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart
from surefoot.safety.bank import (
    BASELINE_MEAN,
    LOW,
    allowed,
    balance_of,
    charge,
    enter,
    free_share,
    predicted_learner,
    worst_of,
)
from surefoot.safety.lift import enter_lift
from surefoot.safety.ramp import wanted

AUTO, FREE_SHARE, GATE = range(3)  # ramps
NOT_PREDICTED = math.inf  # stands for a balance of 0


class StepSettings(NamedTuple):
    """What the step of a guard runs on: the numbers of its metrics, its ramp, its largest share, and no predictions."""

    numbers: Matrix
    ramp: int
    largest_share: float
    unpredicted: Vector


@compiled_apart
def share_of(settings: Matrix, banks: Matrix, ramp: int, most: float) -> float:
    """The share of the next proposal: the least that every metric allows and the ramp asks for, at most `most`."""
    share = most
    for i in range(banks.shape[0]):
        share = min(share, allowed(settings[i], banks[i]))
        if ramp == AUTO:
            share = min(share, wanted(settings[i], banks[i]))
        elif ramp == FREE_SHARE:
            share = min(share, free_share(settings[i], 0.0))
    return share


@compiled_apart
def book_round(
    settings: Matrix, banks: Matrix, share: float, predicted: Vector, is_learner: bool, record: Vector
) -> None:
    """Charge a round to every bank at its worst, and write down what it will be settled by."""
    record[0] = share
    for i in range(banks.shape[0]):
        # Needed even where nothing is balanced: the spread of rewards is taken around it.
        prediction = predicted[i] if math.isfinite(predicted[i]) else banks[i, BASELINE_MEAN]
        is_balanced = predicted[i] != NOT_PREDICTED
        # Kept with the round: h must be fixed before the coin, so it is never computed again.
        record[1 + 3 * i] = balance_of(settings[i], banks[i], share, prediction) if is_balanced else 0.0
        record[2 + 3 * i] = worst_of(settings[i], share)
        record[3 + 3 * i] = prediction
        charge(settings[i], banks[i], share, is_learner)


@compiled_apart
def enter_round(settings: Matrix, banks: Matrix, record: Vector, is_learner: bool, rewards: Vector) -> None:
    """Take the rewards of the next round in, one for each metric; NaN where it is missing."""
    for i in range(banks.shape[0]):
        balance, worst, prediction = record[1 + 3 * i], record[2 + 3 * i], record[3 + 3 * i]
        enter(settings[i], banks[i], record[0], balance, worst, prediction, is_learner, rewards[i])


@compiled_apart
def enter_lifts(
    settings: Matrix, banks: Matrix, lifts: Matrix, record: Vector, is_learner: bool, rewards: Vector
) -> None:
    """The same for what is told of the lift; before the means of the banks move on."""
    for i in range(banks.shape[0]):
        baseline = record[3 + 3 * i]
        learner = predicted_learner(settings[i], banks[i], baseline)
        enter_lift(lifts[i], settings[i, LOW], record[0], learner, baseline, is_learner, rewards[i])


@compiled
def record_size(metrics: int) -> int:
    """Length of what is kept of a round."""
    return 1 + 3 * metrics
