"""Means and widths of many rows at once: what the optimistic choice among finitely many actions needs.

`scores` has three rows: means; squares, i.e. ||phi||^2_{V^-1} (or ||phi||^2 while the set is the ball), so that
UCB = mean + factor sqrt(square); and scratch. For a fixed catalogue it follows every observation in O(actions x dim).
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart, compiled_large, compiled_sum
from surefoot.linear.radius import FEATURE_BOUND, THETA_BOUND
from surefoot.linear.ridge import (
    COUNT,
    EPS,
    FAVOURITE,
    HEAD,
    REFRESH_EVERY,
    SHORT,
    absorb,
    norm,
    step_at,
    whitener_at,
    whitener_of,
)

LENGTH_TOLERANCE = 1e-12  # a row may be longer than D by this share: the rounding of whoever computed D
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


def _score(state: Vector, rows: Matrix, i: int) -> tuple[float, float]:
    """<theta, phi> and ||phi||^2_{V^-1} of one row; the same row has the same score wherever it stands."""
    d = rows.shape[1]
    at = whitener_at(d)
    mean, square = 0.0, 0.0
    for j in range(d):
        mean += state[HEAD + j] * rows[i, j]
        entry = 0.0
        for k in range(j + 1):
            entry += state[at + k] * rows[i, k]
        square += entry * entry
        at += d
    return mean, square


_score_short, _score_long = compiled(_score), compiled_sum(_score)


@compiled
def _score_four(state: Vector, rows: Matrix, i: int, scores: Matrix) -> None:
    """`_score_short` of four rows side by side, each in its own order: while one sum waits, the others go on."""
    d = rows.shape[1]
    at = whitener_at(d)
    m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for j in range(d):
        theta = state[HEAD + j]
        m0 += theta * rows[i, j]
        m1 += theta * rows[i + 1, j]
        m2 += theta * rows[i + 2, j]
        m3 += theta * rows[i + 3, j]
        e0, e1, e2, e3 = 0.0, 0.0, 0.0, 0.0
        for k in range(j + 1):
            weight = state[at + k]
            e0 += weight * rows[i, k]
            e1 += weight * rows[i + 1, k]
            e2 += weight * rows[i + 2, k]
            e3 += weight * rows[i + 3, k]
        s0 += e0 * e0
        s1 += e1 * e1
        s2 += e2 * e2
        s3 += e3 * e3
        at += d
    scores[0, i], scores[0, i + 1], scores[0, i + 2], scores[0, i + 3] = m0, m1, m2, m3
    scores[1, i], scores[1, i + 1], scores[1, i + 2], scores[1, i + 3] = s0, s1, s2, s3


@compiled_apart
def score_rows(state: Vector, rows: Matrix, scores: Matrix) -> None:
    """Fill means and squares, the two rows of `scores`, for rows that are new."""
    first = 0
    if state[COUNT] > 0.0 and rows.shape[1] < SHORT:
        first = rows.shape[0] - rows.shape[0] % 4
        for i in range(0, first, 4):
            _score_four(state, rows, i, scores)
    for i in range(first, rows.shape[0]):
        if state[COUNT] == 0.0:
            scores[0, i], scores[1, i] = 0.0, _square_length(rows, i)
        elif rows.shape[1] < SHORT:
            scores[0, i], scores[1, i] = _score_short(state, rows, i)
        else:
            scores[0, i], scores[1, i] = _score_long(state, rows, i)


@compiled_sum
def _square_length(rows: Matrix, i: int) -> float:
    total = rows[i, 0] * rows[i, 0]
    for j in range(1, rows.shape[1]):
        total += rows[i, j] * rows[i, j]
    return float(total)


@compiled
def follow(state: Vector, columns: Matrix, gain: float, error: float, scores: Matrix) -> None:
    """Move means and squares of a fixed catalogue along with one observation: (gain, error) as `absorb` returned."""
    step = step_at(columns.shape[0])
    if columns.shape[0] == 4:  # the paper's dimension, in one pass and in the same order
        a, b, c, d = state[step], state[step + 1], state[step + 2], state[step + 3]
        for i in range(columns.shape[1]):
            scores[2, i] = ((columns[0, i] * a + columns[1, i] * b) + columns[2, i] * c) + columns[3, i] * d
    else:
        for i in range(columns.shape[1]):
            scores[2, i] = columns[0, i] * state[step]
        for j in range(1, columns.shape[0]):
            weight = state[step + j]
            for i in range(columns.shape[1]):
                scores[2, i] += columns[j, i] * weight
    for i in range(columns.shape[1]):
        scores[0, i] += error * scores[2, i]
        scores[1, i] = max(0.0, scores[1, i] - gain * scores[2, i] * scores[2, i])


@compiled
def optimistic(settings: Vector, state: Vector, scores: Matrix, beta: float) -> tuple[int, float]:
    """The row with the largest UCB, the first one on a tie, and that UCB.  (paper, Algorithm 1, line 4)

    Most rounds one pass over the squares shows that the row that was best last time still is.
    """
    factor = settings[THETA_BOUND] if state[COUNT] == 0.0 else beta
    guess = int(state[FAVOURITE]) if state[FAVOURITE] < scores.shape[1] else 0
    bar = scores[0, guess] + factor * math.sqrt(scores[1, guess])
    square = factor * factor * (1.0 + 1e-12)
    rivals = 0
    for i in range(scores.shape[1]):
        # Whatever rounding did to the bar or to a mean, a row that may reach the bar counts as a rival.
        gap = max(0.0, bar - scores[0, i] - 4.0 * EPS * (abs(bar) + abs(scores[0, i])))
        rivals += int(i != guess and square * scores[1, i] >= gap * gap)
    if rivals == 0:
        return guess, bar
    best, highest = guess, -math.inf
    for i in range(scores.shape[1]):
        upper = scores[0, i] + factor * math.sqrt(scores[1, i])
        if upper > highest:
            best, highest = i, upper
    state[FAVOURITE] = best
    return best, highest


@compiled_sum
def _mean(state: Vector, rows: Matrix, i: int) -> float:
    total = 0.0
    for j in range(rows.shape[1]):
        total += state[HEAD + j] * rows[i, j]
    return total


@compiled_large
def screened(settings: Vector, state: Vector, rows: Matrix, factor: float) -> tuple[int, float]:
    """The same choice as `score_rows` and `optimistic`, for many long rows that are new every round.

    All rows are scored in single precision; only those that could still be best within the error bound of that
    are scored exactly.
    """
    size = norm(whitener_of(state).reshape(-1)) * settings[FEATURE_BOUND]
    rough = np.empty(rows.shape[0])
    _rough_widths(state, rows, settings[FEATURE_BOUND], rough)
    error = factor * size * (2.0 * (rows.shape[1] + 4.0) * EPS_SINGLE)
    bar = -math.inf
    for i in range(rows.shape[0]):
        rough[i] = _mean(state, rows, i) + factor * rough[i]
        bar = max(bar, rough[i] - error)
    best, highest = 0, -math.inf
    for i in range(rows.shape[0]):
        if not rough[i] + error < bar:
            mean, square = _score_long(state, rows, i)
            upper = mean + factor * math.sqrt(square)
            if upper > highest:
                best, highest = i, upper
    return best, highest


@compiled_large
def _rough_widths(state: Vector, rows: Matrix, bound: float, out: Vector) -> None:
    """Widths in single precision; the empty corner of the triangular whitener is skipped."""
    n, d = rows.shape
    half = d // 2
    size, scale = norm(whitener_of(state).reshape(-1)), 1.0 / bound
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
                part[i, j] = rows[start + i, j] * scale
            for j in range(half):
                left[i, j] = part[i, j]
        np.dot(left[:m], corner.T, first[:m])
        np.dot(part[:m], below.T, second[:m])
        for i in range(m):
            out[start + i] = math.sqrt(_square_length(first, i) + _square_length(second, i)) * size * bound


@compiled
def propose(
    settings: Vector, state: Vector, rows: Matrix, cached: bool, scores: Matrix, beta: float
) -> tuple[int, float]:
    """The optimistic row and its UCB; for row r that breaks the bound D or is not finite, (-1 - r, 0).

    With `cached`, rows are a catalogue that was checked before and whose scores are up to date.
    """
    if not cached:
        bad = first_bad_row(rows, settings[FEATURE_BOUND])
        if bad >= 0:
            return -1 - bad, 0.0
        if state[COUNT] > 0.0 and min(rows.shape) >= SCREEN_FROM:
            return screened(settings, state, rows, beta)
        score_rows(state, rows, scores)
    return optimistic(settings, state, scores, beta)


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
