"""The search for a split: the best lower bound of <theta, q> over one ellipsoid, the ball, and linear facts.

With theta = c + radius M^T u the ellipsoid is the unit ball of u, a linear fact <theta, g> >= l is <a, u> >= h with
a = radius M g and h = l - <c, g>, and the question asks for the least <p, u> with p = radius M q. Its dual,

    maximise  h.mu - ||p - A^T mu||  over weights mu >= 0,

is concave, and *any* mu is a valid split: mu_k g_k by fact k, the rest of q by the ellipsoid. The ascent keeps a
working set of facts. On the face where only they have weight the maximum has a closed form; on the way there a weight
that would turn negative leaves. Then the fact that the minimiser u violates most joins. The ball joins through its
tangents, whose pieces add up to one piece of the ball. The value rises with every step, ends at the exact minimum
over everything known, and may stop at any time. If it would rise without bound, no theta satisfies all facts.
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled_large
from surefoot.safety.ascent import FOUND, REFUTED, climb, drop, rest_of
from surefoot.safety.split import (
    GIVEN,
    KIND,
    LEVEL,
    NORMAL,
    OTHER,
    RANGE_LEAST,
    RANGE_MOST,
    TANGENT,
    WEIGHT,
    dot,
    rounding_of,
    weigh,
)

VIOLATED = 1e-9  # relative violation of a fact that is worth a step


@compiled_large
def _whitened(flat: Vector, start: int, radius: float, x: Vector) -> Vector:
    """radius M x."""
    d = x.size
    out = np.zeros(d)
    for i in range(d):
        row = start + d + i * d
        for j in range(i + 1):
            out[i] += flat[row + j] * x[j]
        out[i] *= radius
    return out


@compiled_large
def _point(flat: Vector, start: int, radius: float, u: Vector, theta: Vector) -> None:
    """theta = c + radius M^T u."""
    d = u.size
    for j in range(d):
        theta[j] = flat[start + j]
    for i in range(d):
        row = start + d + i * d
        for j in range(i + 1):
            theta[j] += radius * u[i] * flat[row + j]


@compiled_large
def _most_violated(
    theta: Vector, bound: float, rows: Matrix, low: float, high: float, given: Matrix, levels: Vector, fact: Vector
) -> float:
    """Write the fact that theta violates most, relative to the length of its normal, and return by how much."""
    d = theta.size
    worst, which, kind = 0.0, -1, -1
    for i in range(rows.shape[0]):
        mean = 0.0
        for j in range(d):
            mean += theta[j] * rows[i, j]
        excess = max(low - mean, mean - high)
        if excess > 0.0:
            excess /= math.sqrt(dot(rows[i], rows[i])) + 1e-300  # a row of zeros has no length
            if excess > worst:
                worst, which, kind = excess, i, (RANGE_LEAST if mean < low else RANGE_MOST)
    for i in range(given.shape[0]):
        if levels[i] > -np.inf:
            excess = levels[i] - dot(given[i], theta)
            if excess > 0.0:
                excess /= math.sqrt(dot(given[i], given[i])) + 1e-300
                if excess > worst:
                    worst, which, kind = excess, i, (i if i < GIVEN else OTHER + i)
    length = math.sqrt(dot(theta, theta))
    if length - bound > worst:
        worst, kind = length - bound, TANGENT
    if kind < 0:
        return 0.0
    fact[KIND], fact[WEIGHT] = kind, 0.0
    if kind == TANGENT:
        fact[LEVEL] = -bound
    elif kind == RANGE_LEAST:
        fact[LEVEL] = low
    elif kind == RANGE_MOST:
        fact[LEVEL] = -high
    else:
        fact[LEVEL] = levels[which]
    for j in range(d):
        if kind == TANGENT:
            fact[NORMAL + j] = -theta[j] / length
        elif kind == RANGE_LEAST:
            fact[NORMAL + j] = rows[which, j]
        elif kind == RANGE_MOST:
            fact[NORMAL + j] = -rows[which, j]
        else:
            fact[NORMAL + j] = given[which, j]
    return worst


@compiled_large
def refresh_working(work: Matrix, count: int, given: Matrix, levels: Vector) -> int:
    """Update facts that change with the ledger, and drop those that no longer say anything."""
    left = 0
    for k in range(count):
        kind = int(work[k, KIND])
        if kind < GIVEN:
            if not levels[kind] > -np.inf:
                continue
            work[k, LEVEL] = levels[kind]
            for j in range(given.shape[1]):
                work[k, NORMAL + j] = given[kind, j]
        for j in range(work.shape[1]):
            work[left, j] = work[k, j]
        left += 1
    return left


@compiled_large
def search(
    flat: Vector,
    start: int,
    radius: float,
    bound: float,
    q: Vector,
    rows: Matrix,
    low: float,
    high: float,
    given: Matrix,
    levels: Vector,
    work: Matrix,
    count: int,
    target: float,
    budget: int,
    theta: Vector,
) -> tuple[float, float, int, int]:
    """Improve the split in `work` until it proves `target`, is optimal, or the budget of joining facts is spent.

    Returns what the split proves, the size of the numbers in it, how many working facts it has, and FOUND or REFUTED.
    `rows` are actions whose mean lies in [low, high]; `given` are the normals of other facts, with their levels. The
    worst theta for the split goes to `theta`.
    """
    d = q.size
    p = _whitened(flat, start, radius, q)
    normals, gaps = np.zeros((work.shape[0], d)), np.zeros(work.shape[0])
    for k in range(count):
        normals[k] = _whitened(flat, start, radius, work[k, NORMAL:])
        # `dot` ends with its first argument: behind the center the flat array goes on.
        gaps[k] = work[k, LEVEL] - dot(work[k, NORMAL:], flat[start:])
    center_q = dot(q, flat[start:])
    u = np.zeros(d)
    for step in range(budget + 1):
        count, status = climb(flat, start, radius, bound, work, normals, gaps, count, p, u)
        if status == REFUTED:
            return np.inf, 0.0, count, REFUTED
        weights = np.zeros(count)
        for k in range(count):
            weights[k] = work[k, WEIGHT]
        rest = rest_of(p, weights, normals)
        value = dot(weights, gaps) - math.sqrt(dot(rest, rest))
        _point(flat, start, radius, u, theta)
        if value + center_q > target or step == budget:
            break
        if count == work.shape[0]:
            weakest = 0
            for k in range(count):
                weakest = k if work[k, WEIGHT] < work[weakest, WEIGHT] else weakest
            count = drop(work, normals, gaps, weakest, count)
        excess = _most_violated(theta, bound, rows, low, high, given, levels, work[count])
        if excess <= VIOLATED * bound:
            break
        normals[count] = _whitened(flat, start, radius, work[count, NORMAL:])
        gaps[count] = work[count, LEVEL] - dot(work[count, NORMAL:], flat[start:])
        count += 1
    # Weighed in the space of theta: whitened numbers guide the search and are not believed.
    value, size = weigh(flat, start, radius, bound, q, work, count)
    return value, rounding_of(d, count, size), count, FOUND
