"""A split in numbers: the kinds of facts that the search knows, and what a split over them proves.

A working fact is a row (kind, level, weight, normal). Its piece of the question is weight times normal.
"""

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_large, compiled_sum
from surefoot.linear.ellipsoid import ball_spread, ellipsoid_support
from surefoot.linear.ridge_layout import EPS

# Kinds of facts. Those before GIVEN change with the ledger and are updated in every round, in this order.
(
    KEPT_LEAST, KEPT_MOST, OWED_LEAST, OWED_MOST, PLAYED_LEAST, PLAYED_MOST, REALISED, PROVED_BEFORE, BASELINE_LEAST,
    BASELINE_MOST, GIVEN,
) = range(11)  # fmt: skip
RANGE_LEAST, RANGE_MOST, TANGENT = GIVEN, GIVEN + 1, GIVEN + 2
OTHER = 100  # given facts beyond the named ones are OTHER + their place
KIND, LEVEL, WEIGHT, NORMAL = range(4)


@compiled_sum
def dot(x: Vector, y: Vector) -> float:
    """<x, y>."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@compiled
def largest(x: Vector) -> float:
    """The largest absolute value."""
    most = 0.0
    for i in range(x.size):
        most = max(most, abs(x[i]))
    return most


@compiled_large
def weigh(
    flat: Vector, start: int, radius: float, bound: float, q: Vector, work: Matrix, count: int
) -> tuple[float, float]:
    """What a split proves, and the size of the numbers in it: pieces weight * normal by each fact, tangents as one
    piece by the ball, and what is left of q by the ellipsoid.
    """
    d = q.size
    rest, ball = np.zeros(d), np.zeros(d)
    value, size, moved = 0.0, 0.0, 0.0
    for j in range(d):
        rest[j] = q[j]
        moved += abs(q[j])
    for k in range(count):
        weight, length = work[k, WEIGHT], 0.0
        is_ball = work[k, KIND] == TANGENT
        for j in range(d):
            piece = weight * work[k, NORMAL + j]
            rest[j] -= piece
            length += abs(piece)
            if is_ball:
                ball[j] += piece
        moved += length
        if not is_ball:
            value += weight * work[k, LEVEL]
            size += abs(weight * work[k, LEVEL])
    reach = ball_spread(bound, ball, 0, d)
    mean, spread = ellipsoid_support(flat, start, radius, rest, 0, d)
    # What each weight moved is charged at the largest ||theta||: rounding in `rest` hides there.
    return value + ((mean - spread) - reach), size + abs(mean) + spread + reach + (count + 2.0) * bound * moved


@compiled
def rounding_of(d: int, count: int, size: float) -> float:
    """By how much rounding may have raised the value of a split."""
    return float(8.0 * (d + count + 4.0) * EPS * size)
