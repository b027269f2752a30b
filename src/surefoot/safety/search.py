"""The search for a split: the best lower bound of <theta, q> over one ellipsoid, the ball, and linear facts.

With theta = c + radius M^T u the ellipsoid is the unit ball of u, a linear fact <theta, g> >= l is <a, u> >= h with
a = radius M g and h = l - <c, g>, and the question asks for the least <p, u> with p = radius M q. Its dual,

    maximise  h.mu - ||p - A^T mu||  over weights mu >= 0,

is concave, and *any* mu is a valid split: mu_k g_k by fact k, the rest of q by the ellipsoid. The ascent keeps a
working set of facts. On the face where only they have weight the maximum has a closed form; on the way there a weight
that would turn negative leaves. Then the fact that the minimiser u violates most joins. The ball joins through its
tangents, whose pieces add up to one piece of the ball. The value rises with every step, ends at the exact minimum
over everything known, and may stop at any time. Where it would rise for ever, no theta satisfies all facts.
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_large, compiled_sum
from surefoot.linear.ellipsoid import ball_spread, ellipsoid_support
from surefoot.linear.ridge import EPS

# Kinds of facts. Those before GIVEN change with the ledger and are given anew in every round, in this order.
(
    KEPT_LEAST, KEPT_MOST, OWED_LEAST, OWED_MOST, PLAYED_LEAST, PLAYED_MOST, REALISED, PROVED_BEFORE, BASELINE_LEAST,
    BASELINE_MOST, GIVEN,
) = range(11)  # fmt: skip
RANGE_LEAST, RANGE_MOST, TANGENT = GIVEN, GIVEN + 1, GIVEN + 2
OTHER = 100  # given facts beyond the named ones are OTHER + their place
KIND, LEVEL, WEIGHT, NORMAL = range(4)

FOUND, REFUTED = 0, 1
DEPENDENT = 1e-11  # squared sine below which a normal counts as a combination of the others
SMOOTH = 1e-7  # the norm is smoothed where this little is left of the question: at a corner every weight would do
VIOLATED = 1e-9  # relative violation of a fact that is worth a step
CONTRADICTION = 1e-6  # relative gap between facts that counts as a contradiction, and not as rounding


@compiled_large
def _drop(work: Matrix, normals: Matrix, levels: Vector, k: int, count: int) -> int:
    """Take fact k out of the working set; the order of the others stays."""
    for i in range(k, count - 1):
        for j in range(work.shape[1]):
            work[i, j] = work[i + 1, j]
        for j in range(normals.shape[1]):
            normals[i, j] = normals[i + 1, j]
        levels[i] = levels[i + 1]
    return count - 1


@compiled_sum
def dot(x: Vector, y: Vector) -> float:
    """<x, y>."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@compiled_large
def _project(normals: Matrix, count: int, x: Vector) -> Vector:
    """A x, for the first `count` facts."""
    out = np.zeros(count)
    for k in range(count):
        out[k] = dot(normals[k], x)
    return out


@compiled_large
def _rest(p: Vector, weights: Vector, normals: Matrix) -> Vector:
    """p - A^T weights."""
    out = np.zeros(p.size)
    for j in range(p.size):
        out[j] = p[j]
        for k in range(weights.size):
            out[j] -= weights[k] * normals[k, j]
    return out


@compiled
def largest(x: Vector) -> float:
    """The largest absolute value."""
    most = 0.0
    for i in range(x.size):
        most = max(most, abs(x[i]))
    return most


@compiled_large
def _factor(normals: Matrix, count: int, lower: Matrix) -> int:
    """Cholesky of A A^T; the first fact whose normal depends on those before it, or -1."""
    for i in range(count):
        for j in range(i + 1):
            total = dot(normals[i], normals[j])
            square = total
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i == j:
                if total <= DEPENDENT * square or square == 0.0:
                    return i
                lower[i, i] = math.sqrt(total)
            else:
                lower[i, j] = total / lower[j, j]
    return -1


@compiled_large
def _solve(lower: Matrix, count: int, right: Vector) -> Vector:
    """(A A^T)^-1 right, for the first `count` facts."""
    x = np.zeros(count)
    for i in range(count):
        x[i] = right[i]
        for k in range(i):
            x[i] -= lower[i, k] * x[k]
        x[i] /= lower[i, i]
    for i in range(count - 1, -1, -1):
        for k in range(i + 1, count):
            x[i] -= lower[k, i] * x[k]
        x[i] /= lower[i, i]
    return x


@compiled_large
def _blocking(work: Matrix, direction: Vector, most: float) -> tuple[int, float]:
    """Which weight turns negative first along a direction, and after which step; (-1, most) where none does."""
    who, step = -1, most
    least = -1e-12 * largest(direction)  # what rounding may have made of zero
    for k in range(direction.size):
        if direction[k] < least and -work[k, WEIGHT] / direction[k] < step:
            who, step = k, -work[k, WEIGHT] / direction[k]
    return who, step


@compiled_large
def _climb(
    flat: Vector,
    start: int,
    radius: float,
    bound: float,
    work: Matrix,
    normals: Matrix,
    levels: Vector,
    count: int,
    p: Vector,
    u: Vector,
) -> tuple[int, int]:
    """Move the weights to the maximum over the working facts, dropping those that hinder; leaves the minimiser in u.

    Returns how many facts remain, and FOUND or REFUTED. With p = 0 the question is only whether some u satisfies all.
    """
    lower = np.zeros((work.shape[0], work.shape[0]))
    size = math.sqrt(dot(p, p))
    while count > 0:
        odd = _factor(normals, count, lower)
        if odd >= 0:  # a combination of others: weight moves from them to it, or back, and the rest of q stays
            mix = _solve(lower, odd, _project(normals, odd, normals[odd]))
            gain, total = levels[odd], abs(levels[odd])
            for k in range(odd):
                gain -= mix[k] * levels[k]
                total += abs(mix[k] * levels[k])
            direction = np.zeros(count)
            sign = 1.0 if gain >= 0.0 else -1.0
            for k in range(odd):
                direction[k] = -sign * mix[k]
            direction[odd] = sign
            who, step = _blocking(work, direction, np.inf)
            if who < 0:
                if gain > CONTRADICTION * total and _contradicts(flat, start, radius, bound, work, direction):
                    return count, REFUTED
                who, step = odd, 0.0
            for k in range(count):
                work[k, WEIGHT] += step * direction[k]
            count = _drop(work, normals, levels, who, count)
            continue
        outward = _solve(lower, count, levels)
        square = dot(outward, levels)
        inward = _solve(lower, count, _project(normals, count, p))
        rest = _rest(p, inward, normals)
        if count == p.size:
            for j in range(p.size):
                rest[j] = 0.0  # nothing but rounding is left
        if square < 1.0:
            scale = math.sqrt(dot(rest, rest) / (1.0 - square))
            scale = max(scale, SMOOTH * size) if size > 0.0 else 1.0
            direction = inward
            for k in range(count):
                direction[k] += scale * outward[k]
            least = 1e-12 * largest(direction)
            for k in range(count):
                goal = direction[k] if abs(direction[k]) > least else 0.0  # what rounding made of nothing
                direction[k] = goal - work[k, WEIGHT]
            who, step = _blocking(work, direction, 1.0)
        else:  # no u of the ellipsoid meets all of them with equality: the value rises along this way without end
            direction = outward
            who, step = _blocking(work, direction, np.inf)
            if who < 0:
                if square > 1.0 + CONTRADICTION and _contradicts(flat, start, radius, bound, work, direction):
                    return count, REFUTED
                step = 0.0
        for k in range(count):
            work[k, WEIGHT] = max(0.0, work[k, WEIGHT] + step * direction[k])
        if who < 0:
            for j in range(p.size):
                u[j] = -rest[j] / scale if square < 1.0 else 0.0
                for k in range(count):
                    u[j] += outward[k] * normals[k, j]
            return count, FOUND
        count = _drop(work, normals, levels, who, count)
    for j in range(p.size):
        u[j] = -p[j] / size if size > 0.0 else 0.0
    return 0, FOUND


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
            excess /= math.sqrt(dot(rows[i], rows[i])) + 1e-300
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
    return value + ((mean - spread) - reach), size + abs(mean) + spread + reach + (count + 2.0) * bound * moved


@compiled
def rounding_of(d: int, count: int, size: float) -> float:
    """By how much rounding may have raised the value of a split."""
    return float(8.0 * (d + count + 4.0) * EPS * size)


@compiled_large
def _contradicts(flat: Vector, start: int, radius: float, bound: float, work: Matrix, ray: Vector) -> bool:
    """Whether weights along `ray` prove <theta, 0> > 0, rounding given away: only then is no theta left for sure.

    What looks like it in the whitened space may be the rounding of an ill-conditioned set, or of one that says nothing.
    """
    d, most = work.shape[1] - NORMAL, largest(ray)
    tried = work[: ray.size].copy()
    for k in range(ray.size):
        tried[k, WEIGHT] = max(0.0, ray[k] / most)
    value, size = weigh(flat, start, radius, bound, np.zeros(d), tried, ray.size)
    return bool(value - rounding_of(d, ray.size, size) > 0.0)


@compiled_large
def refresh_working(work: Matrix, count: int, given: Matrix, levels: Vector) -> int:
    """Bring facts that change with the ledger up to date, and drop those that say nothing any more."""
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
        gaps[k] = work[k, LEVEL] - dot(work[k, NORMAL:], flat[start:])
    center_q = dot(q, flat[start:])
    u = np.zeros(d)
    for step in range(budget + 1):
        count, status = _climb(flat, start, radius, bound, work, normals, gaps, count, p, u)
        if status == REFUTED:
            return np.inf, 0.0, count, REFUTED
        weights = np.zeros(count)
        for k in range(count):
            weights[k] = work[k, WEIGHT]
        rest = _rest(p, weights, normals)
        value = dot(weights, gaps) - math.sqrt(dot(rest, rest))
        _point(flat, start, radius, u, theta)
        if value + center_q > target or step == budget:
            break
        if count == work.shape[0]:
            weakest = 0
            for k in range(count):
                weakest = k if work[k, WEIGHT] < work[weakest, WEIGHT] else weakest
            count = _drop(work, normals, gaps, weakest, count)
        excess = _most_violated(theta, bound, rows, low, high, given, levels, work[count])
        if excess <= VIOLATED * bound:
            break
        normals[count] = _whitened(flat, start, radius, work[count, NORMAL:])
        gaps[count] = work[count, LEVEL] - dot(work[count, NORMAL:], flat[start:])
        count += 1
    value, size = weigh(flat, start, radius, bound, q, work, count)
    return value, rounding_of(d, count, size), count, FOUND
