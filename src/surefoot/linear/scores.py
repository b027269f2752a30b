"""Means and widths of many rows at once: what the optimistic choice among finitely many actions needs.

`squares` holds ||phi||^2_{V^-1} for every row (or ||phi||^2 while the set is the ball), so that
UCB = mean + factor sqrt(square). For a fixed catalogue both arrays follow every observation in O(actions x dim).
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_sum
from surefoot.linear.radius import FEATURE_BOUND, THETA_BOUND, radius_of
from surefoot.linear.ridge import COUNT, DIM, REFRESH_EVERY, absorb, norm, step_of, theta_of, whitener_of, width

LENGTH_TOLERANCE = 1e-12  # a row may be longer than D by this share: the rounding of whoever computed D
BLAS_FROM_DIM = 12  # below this a plain loop beats the call to BLAS
SCREEN_FROM = 64  # actions and dimensions from which it pays to look at all rows in single precision first
EPS_SINGLE = 2.0**-24


@compiled_sum
def first_bad_row(rows: Matrix, bound: float) -> int:
    """Index of the first row that is longer than the bound or not finite, or -1."""
    limit = (bound * (1.0 + LENGTH_TOLERANCE)) ** 2
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        if not total <= limit:  # NaN and infinity end up here too
            return i
    return -1


@compiled
def score_rows(state: Vector, rows: Matrix, scores: Matrix) -> None:
    """Fill means and squares, the two rows of `scores`, for rows that are new."""
    means, squares = scores[0], scores[1]
    if state[COUNT] == 0.0:
        means[:] = 0.0
        _square_lengths(rows, squares)
    elif state[DIM] < BLAS_FROM_DIM:
        _score_small(state, rows, means, squares)
    else:
        _score_large(state, rows, means, squares)


@compiled_sum
def _square_lengths(rows: Matrix, squares: Vector) -> None:
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        squares[i] = total


@compiled_sum
def _score_small(state: Vector, rows: Matrix, means: Vector, squares: Vector) -> None:
    theta = theta_of(state)
    whitener = whitener_of(state)
    for i in range(rows.shape[0]):
        mean, square = 0.0, 0.0
        for j in range(rows.shape[1]):
            mean += theta[j] * rows[i, j]
            entry = 0.0
            for k in range(j + 1):
                entry += whitener[j, k] * rows[i, k]
            square += entry * entry
        means[i] = mean
        squares[i] = square


@compiled
def _score_large(state: Vector, rows: Matrix, means: Vector, squares: Vector) -> None:
    means[:] = np.dot(rows, theta_of(state))
    _square_lengths(np.dot(rows, whitener_of(state).T), squares)


@compiled
def follow(state: Vector, columns: Matrix, gain: float, error: float, scores: Matrix) -> None:
    """Move means and squares of a fixed catalogue along with one observation: (gain, error) as `absorb` returned."""
    means, squares = scores[0], scores[1]
    step = step_of(state)
    along = np.zeros(means.size)
    for j in range(step.size):
        for i in range(along.size):
            along[i] += columns[j, i] * step[j]
    for i in range(along.size):
        means[i] += error * along[i]
        squares[i] = max(0.0, squares[i] - gain * along[i] * along[i])


@compiled
def optimistic(settings: Vector, state: Vector, scores: Matrix) -> tuple[int, float]:
    """The row with the largest UCB, the first one on a tie, and that UCB.  (paper, Algorithm 1, line 4)"""
    means, squares = scores[0], scores[1]
    factor = settings[THETA_BOUND] if state[COUNT] == 0.0 else radius_of(settings, state)
    best, highest = 0, -math.inf
    for i in range(means.size):
        upper = means[i] + factor * math.sqrt(squares[i])
        if upper > highest:
            best, highest = i, upper
    return best, highest


@compiled
def screened(settings: Vector, state: Vector, rows: Matrix) -> tuple[int, float]:
    """The same choice as `score_rows` and `optimistic`, for many long rows that are new every round.

    All rows are scored in single precision; only those that could still be best within the error bound of that
    are scored exactly.
    """
    factor = radius_of(settings, state)
    means = np.dot(rows, theta_of(state))
    size = norm(whitener_of(state).reshape(-1)) * settings[FEATURE_BOUND]
    rough = np.empty(rows.shape[0])
    _rough_widths(state, rows, settings[FEATURE_BOUND], rough)
    error = factor * size * (4.0 * (rows.shape[1] + 4.0) * EPS_SINGLE)
    bar = -math.inf
    for i in range(rows.shape[0]):
        rough[i] = means[i] + factor * rough[i]
        bar = max(bar, rough[i] - error)
    best, highest = -1, -math.inf
    for i in range(rows.shape[0]):
        if not rough[i] + error < bar:
            upper = means[i] + factor * width(state, rows[i])
            if upper > highest:
                best, highest = i, upper
    return best, highest


@compiled_sum
def _rough_widths(state: Vector, rows: Matrix, bound: float, out: Vector) -> None:
    """Widths in single precision; the empty corner of the triangular whitener is skipped."""
    n, d = rows.shape
    half = d // 2
    size = norm(whitener_of(state).reshape(-1))
    single = (whitener_of(state) / size).astype(np.float32)
    corner = np.ascontiguousarray(single[:half, :half])
    below = single[half:]
    block = max(4, 2**17 // (d * (d - half)))  # small enough for BLAS to stay on this thread
    part = np.empty((block, d), np.float32)
    left = np.empty((block, half), np.float32)
    first = np.empty((block, half), np.float32)
    second = np.empty((block, d - half), np.float32)
    for start in range(0, n, block):
        m = min(block, n - start)
        for i in range(m):
            for j in range(d):
                part[i, j] = rows[start + i, j] / bound
            for j in range(half):
                left[i, j] = part[i, j]
        np.dot(left[:m], corner.T, first[:m])
        np.dot(part[:m], below.T, second[:m])
        for i in range(m):
            total = np.float32(0.0)
            for j in range(half):
                total += first[i, j] * first[i, j]
            for j in range(d - half):
                total += second[i, j] * second[i, j]
            out[start + i] = math.sqrt(total) * size * bound


@compiled
def propose(settings: Vector, state: Vector, rows: Matrix, cached: bool, scores: Matrix) -> tuple[int, float]:
    """The optimistic row and its UCB; for row r that breaks the bound D or is not finite, (-1 - r, 0).

    With `cached`, rows are a catalogue that was checked before and whose scores are up to date.
    """
    if not cached:
        bad = first_bad_row(rows, settings[FEATURE_BOUND])
        if bad >= 0:
            return -1 - bad, 0.0
        if state[COUNT] > 0.0 and min(rows.shape) >= SCREEN_FROM:
            return screened(settings, state, rows)
        score_rows(state, rows, scores)
    return optimistic(settings, state, scores)


@compiled
def learn_catalogue(state: Vector, x: Vector, reward: float, rows: Matrix, columns: Matrix, scores: Matrix) -> None:
    """Take in one observation, and move the scores of the catalogue along.

    They are computed afresh at the first observation, where the ball becomes an ellipsoid, then whenever the count has
    doubled, and in the long run every REFRESH_EVERY observations.
    """
    gain, error = absorb(state, x, reward)
    count = int(state[COUNT])
    if count % REFRESH_EVERY == 0 or count & (count - 1) == 0:
        score_rows(state, rows, scores)
    else:
        follow(state, columns, gain, error, scores)
