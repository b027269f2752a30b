"""What a policy remembers beside the ledger: known rewards, realised rewards, the last proof, and facts worth keeping.

One flat array, which compiled code shares: the head below, then the features of the learner rounds whose reward was
learned (sum and carry), the last question that was proved, the first baseline, the ellipsoid of a `dual` set, and the
working facts of the search, each as (kind, level, weight, normal).
"""

from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.compiled import compiled
from surefoot.linear.exact import add as add_finite
from surefoot.linear.radius import MISFIT, NOISE, RANGE_HIGH, RANGE_LOW, REWARD_FLOOR, SUM_DELTA

(
    LOW, HIGH, KEPT_LOW, KEPT_LOW_CARRY, KEPT_HIGH, KEPT_HIGH_CARRY, OWED_LOW, OWED_LOW_CARRY, OWED_HIGH,
    OWED_HIGH_CARRY, EARNED, EARNED_CARRY, EARNED_ROUNDS, REFUTED, PROVED, PROVED_ROUND, WORKING, REFUSED, PAUSE,
    MOVED, DEBT, ROUNDS_BEFORE, HEAD,
) = range(23)  # fmt: skip

SPARE = 8  # working facts beyond the dimension: tangents of the ball, and facts that may be needed again


@compiled
def earned_at(d: int) -> int:
    """Where the features of the learner rounds whose reward is learned start, and d further on their carry."""
    return HEAD


@compiled
def proved_at(d: int) -> int:
    """Where the last question that was proved starts."""
    return HEAD + 2 * d


@compiled
def baseline_at(d: int) -> int:
    """Where the features of the first round's baseline start."""
    return HEAD + 3 * d


@compiled
def set_at(d: int) -> int:
    """Where center and whitener of the `dual` set in use start."""
    return HEAD + 4 * d


@compiled
def working_at(d: int) -> int:
    """Where the working facts start, WORKING of them filled."""
    return HEAD + 5 * d + d * d


@compiled
def room(d: int) -> int:
    """How many working facts there may be."""
    return d + SPARE


def new_memory(dim: int) -> Vector:
    """An empty memory."""
    return np.zeros(working_at.function(dim) + room.function(dim) * (3 + dim))


def restored_memory(saved: Any, dim: int) -> Any:
    """A saved memory; before there were restarts it had no DEBT and no ROUNDS_BEFORE, which were both 0."""
    if np.shape(saved) == (new_memory(dim).size - 2,):
        return np.insert(np.asarray(saved, dtype=np.float64), DEBT, [0.0, 0.0])
    return saved


@compiled
def tell(settings: Vector, memory: Vector, low: float, high: float) -> None:
    """Write down what is known of this round's baseline reward: [low, high], cut to the declared range and floor."""
    # Where nothing is declared the range is infinite, and the floor 0: a baseline's mean is never negative.
    memory[LOW] = max(low, max(settings[REWARD_FLOOR], settings[RANGE_LOW]))
    memory[HIGH] = min(high, settings[RANGE_HIGH])


@compiled
def add(memory: Vector, at: int, term: float, gap: int) -> None:
    """Add to a sum whose carry stands `gap` further on; a sum that is not finite says nothing, and stays so."""
    if np.isfinite(memory[at]) and np.isfinite(term):
        add_finite(memory, at, term, gap)
    else:
        # Compensation would turn an infinity into NaN.
        memory[at] += term


@compiled
def remember_baseline(memory: Vector, displaced: Vector, is_first: bool, is_learner: bool, d: int) -> None:
    """Add this round's known baseline reward to the sums of the rounds that displaced it, or that kept it.

    MOVED turns true for good once a baseline's reward is not exactly known, or its features change.
    """
    if is_learner:
        add(memory, OWED_LOW, memory[LOW], 1)
        add(memory, OWED_HIGH, memory[HIGH], 1)
    else:
        add(memory, KEPT_LOW, memory[LOW], 1)
        add(memory, KEPT_HIGH, memory[HIGH], 1)
    if memory[LOW] != memory[HIGH]:
        memory[MOVED] = 1.0
    for i in range(d):
        if is_first:
            memory[baseline_at(d) + i] = displaced[i]
        elif memory[baseline_at(d) + i] != displaced[i]:
            memory[MOVED] = 1.0


@compiled
def teaches(memory: Vector, is_learner: bool) -> bool:
    """Whether the reward of the round just decided will enter the confidence set.

    If the baseline stays the same and its mean is known exactly, its rewards say nothing new and would only widen the
    set. This must be asked when the round is decided: later, what has happened since would select the data.
    """
    return bool(is_learner or memory[MOVED] > 0.0)


@compiled
def remember_reward(memory: Vector, features: Vector, reward: float) -> None:
    """Take in the reward of a learner round: the realised sum, and the features it belongs to."""
    d = features.size
    memory[EARNED_ROUNDS] += 1.0
    add(memory, EARNED, reward, 1)
    for i in range(d):
        add(memory, earned_at(d) + i, features[i], d)


@compiled
def realised_slack(settings: Vector, rounds: float) -> float:
    """psi = sqrt((sigma^2 m + rho)(ln((sigma^2 m + rho)/rho) + 2 ln(1/delta'))).  (Garcelon et al. 2020, re-derived)

    With probability 1 - delta', at every m at once, m rewards add up to at most psi more than their means.
    """
    variance = settings[NOISE] * settings[NOISE]
    rho = 30.0 * variance
    total = variance * rounds + rho
    return float(np.sqrt(total * (np.log(total / rho) + 2.0 * np.log(1.0 / settings[SUM_DELTA]))))


@compiled
def realised_level(settings: Vector, memory: Vector) -> float:
    """What <theta, sum of learned features over learner rounds> is at least, by the rewards received."""
    rounds = memory[EARNED_ROUNDS]
    return float(memory[EARNED] + memory[EARNED_CARRY] - realised_slack(settings, rounds) - settings[MISFIT] * rounds)
