"""The ascent over a working set of facts: the weights at which they prove most, in closed form face by face.

On the face where only the working facts have weight the maximum of h.mu - ||p - A^T mu|| has a closed form; on the way
there a weight that would turn negative leaves (`surefoot.safety.split_search` says what the letters mean). If the
value would rise without bound, no theta satisfies all facts.
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled_large
from surefoot.safety.split import NORMAL, WEIGHT, dot, largest, rounding_of, weigh

FOUND, REFUTED = 0, 1
DEPENDENT = 1e-11  # squared sine below which a normal counts as a combination of the others
SMOOTH = 1e-7  # the norm is smoothed if this little is left of the question: at its corner any weight is optimal
CONTRADICTION = 1e-6  # relative gap between facts that counts as a contradiction, and not as rounding


@compiled_large
def drop(work: Matrix, normals: Matrix, levels: Vector, k: int, count: int) -> int:
    """Remove fact k from the working set; the order of the others stays."""
    for i in range(k, count - 1):
        for j in range(work.shape[1]):
            work[i, j] = work[i + 1, j]
        for j in range(normals.shape[1]):
            normals[i, j] = normals[i + 1, j]
        levels[i] = levels[i + 1]
    return count - 1


@compiled_large
def _project(normals: Matrix, count: int, x: Vector) -> Vector:
    """A x, for the first `count` facts."""
    out = np.zeros(count)
    for k in range(count):
        out[k] = dot(normals[k], x)
    return out


@compiled_large
def rest_of(p: Vector, weights: Vector, normals: Matrix) -> Vector:
    """p - A^T weights."""
    out = np.zeros(p.size)
    for j in range(p.size):
        out[j] = p[j]
        for k in range(weights.size):
            out[j] -= weights[k] * normals[k, j]
    return out


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
    """Which weight turns negative first along a direction, and after which step; (-1, most) if none does."""
    who, step = -1, most
    least = -1e-12 * largest(direction)  # rounding of zero
    for k in range(direction.size):
        if direction[k] < least and -work[k, WEIGHT] / direction[k] < step:
            who, step = k, -work[k, WEIGHT] / direction[k]
    return who, step


@compiled_large
def _contradicts(flat: Vector, start: int, radius: float, bound: float, work: Matrix, ray: Vector) -> bool:
    """Whether weights along `ray` prove <theta, 0> > 0 despite rounding: only then is it certain that no theta is left.

    In the whitened space, rounding of an ill-conditioned set, or of one that says nothing, may look the same.
    """
    d, most = work.shape[1] - NORMAL, largest(ray)
    tried = work[: ray.size].copy()
    for k in range(ray.size):
        # A ray has no length of its own: any scale proves as much, and this one cannot overflow.
        tried[k, WEIGHT] = max(0.0, ray[k] / most)
    value, size = weigh(flat, start, radius, bound, np.zeros(d), tried, ray.size)
    return bool(value - rounding_of(d, ray.size, size) > 0.0)


@compiled_large
def climb(
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
    # Each pass returns or drops a fact, so this ends.
    while count > 0:
        odd = _factor(normals, count, lower)
        if odd >= 0:  # a combination of others: weight moves between them and it, and the rest of q stays
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
                # Nothing was proved but rounding: the fact that depends on the others leaves.
                who, step = odd, 0.0
            for k in range(count):
                work[k, WEIGHT] += step * direction[k]
            count = drop(work, normals, levels, who, count)
            continue
        outward = _solve(lower, count, levels)
        square = dot(outward, levels)
        inward = _solve(lower, count, _project(normals, count, p))
        rest = rest_of(p, inward, normals)
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
                goal = direction[k] if abs(direction[k]) > least else 0.0  # rounding of zero
                direction[k] = goal - work[k, WEIGHT]
            who, step = _blocking(work, direction, 1.0)
        else:  # no u of the ellipsoid meets all of them with equality: the value rises along this ray without bound
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
        count = drop(work, normals, levels, who, count)
    for j in range(p.size):
        u[j] = -p[j] / size if size > 0.0 else 0.0
    return 0, FOUND
