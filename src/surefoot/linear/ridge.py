"""The ridge state: everything the observations say of theta, in one flat array that compiled code shares.

With V = ridge I + sum x x^T and b = sum x y it keeps V and b exact (compensated sums; the newest rows x wait in a
short buffer and enter V together), and beside them M, the *whitener*: lower triangular with M^T M = V^-1, so that a
width ||q||_{V^-1} = ||M q|| is a sum of squares and never negative. One observation costs O(d^2) (Carlson's
square-root update); at fixed intervals, and whenever the bound on its rounding error is used up, M is computed afresh
from V.

Greek and matrix names: V gram, M whitener, L its inverse (V = L L^T).
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart, compiled_large, compiled_sum
from surefoot.linear.exact import add, two_product, two_sum
from surefoot.linear.factor import cholesky, condition, invert
from surefoot.linear.ridge_layout import (
    AGE,
    CONDITION,
    COUNT,
    DIM,
    DRIFT,
    ENERGY,
    EPS,
    FRESH_DRIFT,
    FRESH_LOG_DET,
    GROWTH,
    HEAD,
    RECENT,
    SHORT,
    SURPRISES,
    WAITING,
    gram_at,
    gram_ridge,
    log_det_of,
    moment_at,
    new_state,
    recent_at,
    scratch_at,
    step_at,
    theta_of,
    whitener_at,
    whitener_of,
)

REFRESH_EVERY = 1024  # observations between two fresh factorisations
DRIFT_ALLOWED = 1e-8  # relative rounding error of a width at which a fresh factorisation is due at once
DRIFT_USABLE = 1e-3  # beyond this relative error a width is not worth its name


@compiled
def norm(x: Vector) -> float:
    """Euclidean length."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return math.sqrt(total)


def _whiten(state: Vector, x: Vector, d: int, out: int) -> float:
    """Write M x into the state at `out` and return its squared length, x^T V^-1 x."""
    row = whitener_at(d)
    total = 0.0
    for i in range(d):
        entry = 0.0
        for j in range(i + 1):
            entry += state[row + j] * x[j]
        state[out + i] = entry
        total += entry * entry
        row += d
    return total


_whiten_short, _whiten_long = compiled(_whiten), compiled_sum(_whiten)


@compiled
def whiten(state: Vector, x: Vector, d: int, out: int) -> float:
    """Write M x into the state at `out` and return its squared length, x^T V^-1 x."""
    return _whiten_short(state, x, d, out) if d < SHORT else _whiten_long(state, x, d, out)


@compiled_sum
def width(state: Vector, x: Vector) -> float:
    """||x||_{V^-1}, as the length of M x."""
    d = x.size
    row = whitener_at(d)
    total = 0.0
    for i in range(d):
        entry = 0.0
        for j in range(i + 1):
            entry += state[row + j] * x[j]
        total += entry * entry
        row += d
    return math.sqrt(total)


@compiled_apart
def absorb(state: Vector, x: Vector, reward: float) -> tuple[float, float]:
    """Take in one observation.

    Returns (g, e): for any q, <theta, q> grows by e <step, q> and ||q||^2_{V^-1} falls by g <step, q>^2.
    """
    # The same code twice: where the compiler knows the dimension, the paper's, it unrolls every loop.
    return _absorb(state, x, reward, 4) if x.size == 4 else _absorb(state, x, reward, x.size)


@compiled
def _absorb(state: Vector, x: Vector, reward: float, d: int) -> tuple[float, float]:
    leverage = whiten(state, x, d, scratch_at(d))
    surprise, size = reward, abs(reward)
    for i in range(d):
        term = state[HEAD + i] * x[i]
        surprise -= term
        size += abs(term)
    # Before theta and M change: what counts is the error of the prediction made without this reward.
    _book_surprise(state, x, surprise, size, leverage, d)
    _accumulate(state, x, reward, d)
    _update_whitener(state, d)
    state[COUNT] += 1.0
    state[AGE] += 1.0
    state[GROWTH] *= 1.0 + leverage
    # Each update adds rounding errors that the conditioning of M amplifies; that may have grown since it was measured,
    # at most as fast as the root of det V.
    state[DRIFT] += (d + 4.0) * EPS * state[CONDITION] * math.sqrt(state[GROWTH] * (1.0 + leverage))
    if state[AGE] >= REFRESH_EVERY or state[DRIFT] > max(DRIFT_ALLOWED, 2.0 * state[FRESH_DRIFT]):
        refresh(state)
    if d < SHORT:
        _estimate_short(state, d)
    else:
        _estimate_long(state, d)
    return 1.0 / (1.0 + leverage), surprise / (1.0 + leverage)


@compiled
def _book_surprise(state: Vector, x: Vector, surprise: float, size: float, leverage: float, d: int) -> None:
    """Add e^2 D^2 to SURPRISES, as large as rounding lets it be; `size` adds up what e is made of."""
    # The center is off by 2 drift sqrt(energy) in the norm of V, so <theta, x> by that times the width of x; a squared
    # width is off by 2 drift. The little more is for a width and an energy that are themselves off.
    drift = state[DRIFT]
    if drift <= DRIFT_USABLE:
        off = 2.0 * drift * (1.0 + 4.0 * drift) * math.sqrt(state[ENERGY] * leverage)
        share = (1.0 + 3.0 * drift + (d + 8.0) * EPS) * (leverage / (1.0 + leverage))
        # Where that would show in the radius, look closer; rows beyond what was seen are few, and have it largest.
        if leverage > 1.0 or not off <= 1e-4 * abs(surprise) + 1e-6 * size:
            off = min(_center_error(state, x), off)
    else:
        off, share = _center_error(state, x), 1.0
    most = abs(surprise) + off + (d + 4.0) * EPS * size
    state[SURPRISES] += most * most * share


@compiled_large
def _center_error(state: Vector, x: Vector) -> float:
    """By how much <theta, x> may be off, judged by what V theta misses of b, whatever the drift.

    With r = b - V theta it is <r, V^-1 x>, and no more than ||r|| ||x|| / ridge.
    """
    d = x.size
    gram, moment, total, reach = gram_of(state), moment_at(d), 0.0, 0.0
    for i in range(d):
        reach += math.sqrt(gram[i, i]) * abs(state[HEAD + i])
    for i in range(d):
        missed = state[moment + i] + state[moment + d + i]
        size = abs(missed)
        for j in range(d):
            term = gram[i, j] * state[HEAD + j]
            missed -= term
            size += abs(term)
        # V itself is off by (RECENT + 2) EPS at most, relative to the roots of its diagonal.
        most = abs(missed) + EPS * ((d + 4.0) * size + (RECENT + 2.0) * math.sqrt(gram[i, i]) * reach)
        total += most * most
    root = math.sqrt(gram_ridge(state))
    return float((math.sqrt(total) / root) * (norm(x) / root) * (1.0 + (d + 8.0) * EPS))


@compiled
def _accumulate(state: Vector, x: Vector, reward: float, d: int) -> None:
    moment = moment_at(d)
    row = recent_at(d) + int(state[WAITING]) * d
    for i in range(d):
        product, cut = two_product(reward, x[i])
        state[moment + i], lost = two_sum(state[moment + i], product)
        state[moment + d + i] += lost + cut
        state[row + i] = x[i]
    state[WAITING] += 1.0
    if state[WAITING] == RECENT:
        fold(state)


@compiled_apart
def fold(state: Vector) -> None:
    """Let the rows that wait enter V."""
    d, waiting = int(state[DIM]), int(state[WAITING])
    if d < SHORT:
        _fold_short(state, d, waiting)
    else:
        _fold_long(state, d, waiting)
    state[WAITING] = 0.0


@compiled
def _fold_short(state: Vector, d: int, waiting: int) -> None:
    gram, recent = gram_at(d), recent_at(d)
    for i in range(d):
        for j in range(i + 1):
            term = 0.0
            for k in range(waiting):
                term += state[recent + k * d + i] * state[recent + k * d + j]
            add(state, gram + i * d + j, term, d * d)
            if j < i:
                add(state, gram + j * d + i, term, d * d)


@compiled_large
def _fold_long(state: Vector, d: int, waiting: int) -> None:
    gram, recent = gram_at(d), recent_at(d)
    rows = state[recent : recent + waiting * d].reshape(waiting, d)
    # One product of matrices, for which BLAS needs contiguous arrays.
    block = np.dot(np.ascontiguousarray(rows.T), rows)
    for i in range(d):
        for j in range(d):
            add(state, gram + i * d + j, block[i, j], d * d)


@compiled
def _update_whitener(state: Vector, d: int) -> None:
    """Carlson's update of M for V + x x^T, given M x in the scratch; leaves V^-1 x in `step`.  (Carlson 1973)"""
    row, step, whitened = whitener_at(d), step_at(d), scratch_at(d)
    for j in range(d):
        state[step + j] = 0.0
    before = 1.0
    for i in range(d):
        entry = state[whitened + i]
        after = before + entry * entry
        shrink = math.sqrt(before / after)
        share = entry / before
        for j in range(i + 1):
            old = state[row + j]
            state[row + j] = shrink * (old - share * state[step + j])
            state[step + j] += entry * old
        before = after
        row += d


def _estimate(state: Vector, d: int) -> None:
    """theta = M^T (M b), and the energy b^T V^-1 b."""
    moment, total = moment_at(d), scratch_at(d)
    for i in range(d):
        state[total + i] = state[moment + i] + state[moment + d + i]
        state[HEAD + i] = 0.0
    row, energy = whitener_at(d), 0.0
    for i in range(d):
        entry = 0.0
        for j in range(i + 1):
            entry += state[row + j] * state[total + j]
        energy += entry * entry
        for j in range(i + 1):
            state[HEAD + j] += state[row + j] * entry
        row += d
    state[ENERGY] = energy


_estimate_short, _estimate_long = compiled(_estimate), compiled_sum(_estimate)


@compiled_large
def refresh(state: Vector) -> bool:
    """Compute M afresh from V and bound its error; where V is too ill-conditioned to factor, keep the old M."""
    d = int(state[DIM])
    gram = gram_of(state)
    state[AGE] = 0.0
    lower = np.zeros((d, d))
    if not cholesky(gram, lower):
        # The next attempt then waits until the drift has doubled.
        state[FRESH_DRIFT] = state[DRIFT]
        return False
    inverse = np.zeros((d, d))
    invert(lower, inverse)
    log_det, root = 0.0, math.sqrt(gram_ridge(state))
    for i in range(d):
        log_det += 2.0 * math.log(lower[i, i] / root)  # a difference of logs would cancel
        for j in range(d):
            state[whitener_at(d) + i * d + j] = inverse[i, j]
    state[FRESH_LOG_DET] = log_det
    state[GROWTH] = 1.0
    state[CONDITION] = condition(inverse, lower)
    state[DRIFT] = state[FRESH_DRIFT] = fresh_drift(d, state[CONDITION])
    return True


@compiled_large
def gram_of(state: Vector) -> Matrix:
    """V, once the rows that wait have entered it."""
    d = int(state[DIM])
    fold(state)
    gram = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            at = gram_at(d) + i * d + j
            gram[i, j] = state[at] + state[at + d * d]
    return gram


@compiled
def fresh_drift(d: int, conditioning: float) -> float:
    """Bound on the relative rounding error of a width by a fresh factorisation.  (Higham 2002, th. 10.3, sec. 14.2)"""
    # V itself is off by (RECENT + 2) EPS at most, L L^T by (d + 1) EPS, M L by d EPS, each relative to |M||L| twice.
    return float((3.0 * d + RECENT + 8.0) * EPS * conditioning**2)


class Ridge:
    """The ridge state with names: views into one flat array, `buffer`, which compiled code shares.

    >>> ridge = Ridge(dim=2, ridge=0.5)
    >>> ridge.observe([1.0, 0.0], 3.0)
    >>> ridge.theta
    array([2., 0.])
    >>> round(ridge.width([1.0, 0.0]), 6)     # 1 / sqrt(0.5 + 1)
    0.816497
    """

    def __init__(self, *, dim: int, ridge: float) -> None:
        self.buffer = new_state(dim, ridge)

    @property
    def count(self) -> int:
        """Observations taken in."""
        return int(self.buffer[COUNT])

    @property
    def log_det(self) -> float:
        """ln(det V / ridge^d)."""
        return log_det_of(self.buffer)

    @property
    def drift(self) -> float:
        """Bound on the relative rounding error of a width."""
        return float(self.buffer[DRIFT])

    @property
    def theta(self) -> Vector:
        """The ridge estimate V^-1 b."""
        return theta_of.function(self.buffer)

    @property
    def whitener(self) -> Matrix:
        """M, with M^T M = V^-1."""
        return whitener_of.function(self.buffer)

    @property
    def gram(self) -> Matrix:
        """V = ridge I + sum x x^T."""
        d = int(self.buffer[DIM])
        parts = self.buffer[gram_at.function(d) : recent_at.function(d)].reshape(2, d, d)
        start = recent_at.function(d)
        waiting = self.buffer[start : start + d * int(self.buffer[WAITING])].reshape(-1, d)
        # The small parts first, so that none is lost beside the large sum.
        total: Matrix = parts[0] + (parts[1] + waiting.T @ waiting)
        return total

    @property
    def moment(self) -> Vector:
        """b = sum x y."""
        d = int(self.buffer[DIM])
        start = moment_at.function(d)
        total: Vector = self.buffer[start : start + 2 * d].reshape(2, d).sum(axis=0)
        return total

    def observe(self, x: Vector, reward: float) -> None:
        """Take in one observation."""
        absorb(self.buffer, np.asarray(x, dtype=np.float64), float(reward))

    def width(self, q: Vector) -> float:
        """||q||_{V^-1}."""
        return float(width(self.buffer, np.asarray(q, dtype=np.float64)))
