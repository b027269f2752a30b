"""Means and widths of many rows at once: what the optimistic choice among finitely many actions needs.

`scores` has a column for each action. Its first two rows are means and squares, i.e. ||phi||^2_{V^-1} (or ||phi||^2
while the set is the ball), so that UCB = mean + factor sqrt(square); then come scratch, and the short list of a
catalogue (`surefoot.linear.catalogue`), which begins with its length.
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart, compiled_fused, compiled_large, compiled_sum
from surefoot.linear.radius import FEATURE_BOUND, THETA_BOUND
from surefoot.linear.ridge import norm
from surefoot.linear.ridge_layout import COUNT, EPS, FAVOURITE, HEAD, whitener_at, whitener_of

MEANS, SQUARES, SCRATCH, LIST, SCORE_ROWS = range(5)
LENGTH_TOLERANCE = 1e-12  # a row may be longer than D by this share, for the rounding of D itself
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


@compiled_sum
def _score(state: Vector, rows: Matrix, i: int) -> tuple[float, float]:
    """<theta, phi> and ||phi||^2_{V^-1} of one row."""
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


@compiled_fused
def _score_block(state: Vector, rows: Matrix, i: int, scores: Matrix) -> None:
    """Four rows side by side, by two rows of M at a time: while one sum waits, the others continue."""
    d = rows.shape[1]
    at = whitener_at(d)
    m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for j in range(0, d, 2):
        e0, e1, e2, e3 = 0.0, 0.0, 0.0, 0.0
        f0, f1, f2, f3 = 0.0, 0.0, 0.0, 0.0
        below = at + d if j + 1 < d else at
        for k in range(j + 1):
            x0, x1, x2, x3 = rows[i, k], rows[i + 1, k], rows[i + 2, k], rows[i + 3, k]
            weight = state[at + k]
            e0, e1, e2, e3 = e0 + weight * x0, e1 + weight * x1, e2 + weight * x2, e3 + weight * x3
            weight = state[below + k]
            f0, f1, f2, f3 = f0 + weight * x0, f1 + weight * x1, f2 + weight * x2, f3 + weight * x3
        s0, s1, s2, s3 = s0 + e0 * e0, s1 + e1 * e1, s2 + e2 * e2, s3 + e3 * e3
        weight = state[HEAD + j]
        m0, m1 = m0 + weight * rows[i, j], m1 + weight * rows[i + 1, j]
        m2, m3 = m2 + weight * rows[i + 2, j], m3 + weight * rows[i + 3, j]
        if j + 1 < d:
            x0, x1, x2, x3 = rows[i, j + 1], rows[i + 1, j + 1], rows[i + 2, j + 1], rows[i + 3, j + 1]
            weight = state[below + j + 1]
            f0, f1, f2, f3 = f0 + weight * x0, f1 + weight * x1, f2 + weight * x2, f3 + weight * x3
            s0, s1, s2, s3 = s0 + f0 * f0, s1 + f1 * f1, s2 + f2 * f2, s3 + f3 * f3
            weight = state[HEAD + j + 1]
            m0, m1, m2, m3 = m0 + weight * x0, m1 + weight * x1, m2 + weight * x2, m3 + weight * x3
        at = below + d
    scores[MEANS, i], scores[MEANS, i + 1], scores[MEANS, i + 2], scores[MEANS, i + 3] = m0, m1, m2, m3
    scores[SQUARES, i], scores[SQUARES, i + 1], scores[SQUARES, i + 2], scores[SQUARES, i + 3] = s0, s1, s2, s3


@compiled_fused
def _score_four_columns(state: Vector, rows: Matrix, scores: Matrix) -> None:
    """All rows in the paper's dimension, written out so that the processor takes several of them at once."""
    at = whitener_at(4)
    t0, t1, t2, t3 = state[HEAD], state[HEAD + 1], state[HEAD + 2], state[HEAD + 3]
    a0, b0, b1 = state[at], state[at + 4], state[at + 5]
    c0, c1, c2 = state[at + 8], state[at + 9], state[at + 10]
    d0, d1, d2, d3 = state[at + 12], state[at + 13], state[at + 14], state[at + 15]
    for i in range(rows.shape[0]):
        x0, x1, x2, x3 = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3]
        scores[MEANS, i] = t0 * x0 + t1 * x1 + t2 * x2 + t3 * x3
        a, b, c = a0 * x0, b0 * x0 + b1 * x1, c0 * x0 + c1 * x1 + c2 * x2
        d = d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3
        scores[SQUARES, i] = a * a + b * b + c * c + d * d


@compiled_apart
def score_rows(state: Vector, rows: Matrix, scores: Matrix) -> None:
    """Fill in means and squares for rows that are new; equal rows have equal scores."""
    n, d = rows.shape
    scores[LIST, 0] = 0.0
    if state[COUNT] == 0.0:
        for i in range(n):
            scores[MEANS, i], scores[SQUARES, i] = 0.0, _square_length(rows, i)
    elif d == 4:
        _score_four_columns(state, rows, scores)
    elif n >= 4:
        for i in range(0, n, 4):
            _score_block(state, rows, min(i, n - 4), scores)  # the last block may go over some rows again
    else:
        for i in range(n):
            scores[MEANS, i], scores[SQUARES, i] = _score(state, rows, i)


@compiled_sum
def _square_length(rows: Matrix, i: int) -> float:
    total = rows[i, 0] * rows[i, 0]
    for j in range(1, rows.shape[1]):
        total += rows[i, j] * rows[i, j]
    return float(total)


@compiled
def optimistic(settings: Vector, state: Vector, scores: Matrix, beta: float) -> tuple[int, float]:
    """The row with the largest UCB, the first one on a tie, and that UCB.  (paper, Algorithm 1, line 4)

    In most rounds one pass over the squares shows that the last best row still is.
    """
    factor = settings[THETA_BOUND] if state[COUNT] == 0.0 else beta
    guess = int(state[FAVOURITE]) if state[FAVOURITE] < scores.shape[1] else 0
    bar = scores[MEANS, guess] + factor * math.sqrt(scores[SQUARES, guess])
    square = factor * factor * (1.0 + 1e-12)
    rivals = 0
    for i in range(scores.shape[1]):
        # A row that may reach the bar, rounding included, counts as a rival.
        gap = max(0.0, bar - scores[MEANS, i] - 4.0 * EPS * (abs(bar) + abs(scores[MEANS, i])))
        rivals += int(i != guess and square * scores[SQUARES, i] >= gap * gap)
    # A row that ties with the guess is a rival, too: among equals the first must win, not the last best.
    if rivals == 0:
        return guess, bar
    best, highest = guess, -math.inf
    for i in range(scores.shape[1]):
        upper = scores[MEANS, i] + factor * math.sqrt(scores[SQUARES, i])
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
        if not rough[i] + error < bar:  # NaN stays in
            mean, square = _score(state, rows, i)
            upper = mean + factor * math.sqrt(square)
            if upper > highest:
                best, highest = i, upper
    return best, highest


@compiled_large
def _rough_widths(state: Vector, rows: Matrix, bound: float, out: Vector) -> None:
    """Widths in single precision; the empty corner of the triangular whitener is skipped."""
    n, d = rows.shape
    half = d // 2
    # Single precision ends at 1e38, so both factors are scaled to at most 1; the end of the loop puts it back.
    size, scale = norm(whitener_of(state).reshape(-1)), 1.0 / bound
    single = (whitener_of(state) / size).astype(np.float32)
    # BLAS needs contiguous arrays, hence the copies here and in `left`.
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
def propose_new(settings: Vector, state: Vector, rows: Matrix, scores: Matrix, beta: float) -> tuple[int, float]:
    """The optimistic row and its UCB; for row r that breaks the bound D or is not finite, (-1 - r, 0)."""
    bad = first_bad_row(rows, settings[FEATURE_BOUND])
    if bad >= 0:
        return -1 - bad, 0.0
    if state[COUNT] > 0.0 and min(rows.shape) >= SCREEN_FROM:
        return screened(settings, state, rows, beta)
    score_rows(state, rows, scores)
    return optimistic(settings, state, scores, beta)


def new_scores(actions: int) -> Matrix:
    """Room for the scores of so many actions."""
    return np.zeros((SCORE_ROWS, actions))
