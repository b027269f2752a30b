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
from surefoot.compiled import compiled, compiled_sum

EPS = 2.0**-53  # unit roundoff of float64
RECENT = 64  # rows that wait before they enter V together
REFRESH_EVERY = 1024  # observations between two fresh factorisations
DRIFT_ALLOWED = 1e-8  # relative rounding error of a width at which a fresh factorisation is due at once

# The head of the array, then its blocks in this order: theta, whitener, step, moment, its carry, gram, its carry,
# recent rows, and the ridge.
DIM, COUNT, LOG_DET, DRIFT, FRESH_DRIFT, CONDITION, ENERGY, AGE, WAITING, FRESH_LOG_DET, HEAD = range(11)


@compiled
def theta_of(state: Vector) -> Vector:
    """The ridge estimate V^-1 b."""
    return state[HEAD : HEAD + int(state[DIM])]


@compiled
def whitener_of(state: Vector) -> Matrix:
    """M, with M^T M = V^-1."""
    d = int(state[DIM])
    return state[HEAD + d : HEAD + d + d * d].reshape(d, d)


@compiled
def step_of(state: Vector) -> Vector:
    """V^-1 x for the newest observation x, in the V before it: what a cache of widths needs to follow."""
    d = int(state[DIM])
    return state[HEAD + d + d * d : HEAD + 2 * d + d * d]


@compiled
def moment_of(state: Vector) -> Matrix:
    """Two rows: b, and the part of it that did not fit into a float."""
    d = int(state[DIM])
    start = HEAD + 2 * d + d * d
    return state[start : start + 2 * d].reshape(2, d)


@compiled
def gram_of(state: Vector) -> Matrix:
    """V without the recent rows, stacked on the part of it that did not fit into floats: 2d rows."""
    d = int(state[DIM])
    start = HEAD + 4 * d + d * d
    return state[start : start + 2 * d * d].reshape(2 * d, d)


@compiled
def recent_of(state: Vector) -> Matrix:
    """The rows that wait to enter V, WAITING of them filled."""
    d = int(state[DIM])
    start = HEAD + 4 * d + 3 * d * d
    return state[start : start + RECENT * d].reshape(RECENT, d)


@compiled
def two_sum(total: float, term: float) -> tuple[float, float]:
    """total + term as a float, and what that rounding lost.  (Knuth)"""
    both = total + term
    kept = both - total
    return both, (total - (both - kept)) + (term - kept)


@compiled
def two_product(x: float, y: float) -> tuple[float, float]:
    """x y as a float, and what that rounding lost.  (Dekker, with Veltkamp's splitting)"""
    product = x * y
    shifted = 134217729.0 * x
    x_high = shifted - (shifted - x)
    shifted = 134217729.0 * y
    y_high = shifted - (shifted - y)
    x_low, y_low = x - x_high, y - y_high
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


@compiled_sum
def norm(x: Vector) -> float:
    """Euclidean length."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return math.sqrt(total)


@compiled_sum
def whiten(state: Vector, x: Vector, out: Vector) -> float:
    """Write M x into `out` and return its squared length, x^T V^-1 x."""
    whitener = whitener_of(state)
    total = 0.0
    for i in range(x.size):
        entry = 0.0
        for j in range(i + 1):
            entry += whitener[i, j] * x[j]
        out[i] = entry
        total += entry * entry
    return total


@compiled_sum
def width(state: Vector, x: Vector) -> float:
    """||x||_{V^-1}, as the length of M x."""
    whitener = whitener_of(state)
    total = 0.0
    for i in range(x.size):
        entry = 0.0
        for j in range(i + 1):
            entry += whitener[i, j] * x[j]
        total += entry * entry
    return math.sqrt(total)


@compiled
def absorb(state: Vector, x: Vector, reward: float) -> tuple[float, float]:
    """Take in one observation.

    Returns (g, e): for any q, <theta, q> grows by e <step, q> and ||q||^2_{V^-1} falls by g <step, q>^2.
    """
    d = x.size
    _accumulate(state, x, reward)
    whitened = np.empty(d)
    leverage = whiten(state, x, whitened)
    surprise = reward
    theta = theta_of(state)
    for i in range(d):
        surprise -= theta[i] * x[i]
    _update_whitener(state, whitened)
    state[COUNT] += 1.0
    state[AGE] += 1.0
    state[LOG_DET] += np.log1p(leverage)
    # Each update adds rounding errors that the conditioning of M amplifies; that may have grown since it was measured,
    # at most as fast as the root of det V.
    condition = state[CONDITION] * math.exp(0.5 * (state[LOG_DET] - state[FRESH_LOG_DET]))
    state[DRIFT] += (d + 4.0) * EPS * condition * math.sqrt(1.0 + leverage)
    if state[AGE] >= REFRESH_EVERY or state[DRIFT] > max(DRIFT_ALLOWED, 2.0 * state[FRESH_DRIFT]):
        refresh(state)
    _estimate(state)
    return 1.0 / (1.0 + leverage), surprise / (1.0 + leverage)


@compiled
def _accumulate(state: Vector, x: Vector, reward: float) -> None:
    moment = moment_of(state)
    recent = recent_of(state)
    row = int(state[WAITING])
    for i in range(x.size):
        product, cut = two_product(reward, x[i])
        moment[0, i], lost = two_sum(moment[0, i], product)
        moment[1, i] += lost + cut
        recent[row, i] = x[i]
    state[WAITING] += 1.0
    if state[WAITING] == RECENT:
        fold(state)


@compiled
def fold(state: Vector) -> None:
    """Let the rows that wait enter V."""
    d = int(state[DIM])
    gram = gram_of(state)
    recent = recent_of(state)[: int(state[WAITING])]
    block = np.zeros((d, d))
    for k in range(recent.shape[0]):
        for i in range(d):
            for j in range(d):
                block[i, j] += recent[k, i] * recent[k, j]
    for i in range(d):
        for j in range(d):
            gram[i, j], lost = two_sum(gram[i, j], block[i, j])
            gram[d + i, j] += lost
    state[WAITING] = 0.0


@compiled
def _update_whitener(state: Vector, whitened: Vector) -> None:
    """Carlson's update of M for V + x x^T, given M x; leaves V^-1 x in `step`.  (Carlson 1973)"""
    whitener = whitener_of(state)
    step = step_of(state)
    step[:] = 0.0
    before = 1.0
    for i in range(whitened.size):
        entry = whitened[i]
        after = before + entry * entry
        shrink = np.sqrt(before / after)
        share = entry / before
        for j in range(i + 1):
            old = whitener[i, j]
            whitener[i, j] = shrink * (old - share * step[j])
            step[j] += entry * old
        before = after


@compiled_sum
def _estimate(state: Vector) -> None:
    """theta = M^T (M b), and the energy b^T V^-1 b."""
    d = int(state[DIM])
    whitener = whitener_of(state)
    theta = theta_of(state)
    moment = moment_of(state)
    total = np.empty(d)
    for i in range(d):
        total[i] = moment[0, i] + moment[1, i]
    whitened = np.empty(d)
    state[ENERGY] = whiten(state, total, whitened)
    theta[:] = 0.0
    for i in range(d):
        for j in range(i + 1):
            theta[j] += whitener[i, j] * whitened[i]


@compiled
def refresh(state: Vector) -> bool:
    """Compute M afresh from V and bound its error; where V is too ill-conditioned to factor, keep the old M."""
    d = int(state[DIM])
    fold(state)
    stacked = gram_of(state)
    gram = stacked[:d] + stacked[d:]
    state[AGE] = 0.0
    lower = np.zeros((d, d))
    if not _cholesky(gram, lower):
        state[FRESH_DRIFT] = state[DRIFT]
        return False
    inverse = np.zeros((d, d))
    _invert(lower, inverse)
    whitener_of(state)[:] = inverse
    log_det = 0.0
    for i in range(d):
        log_det += 2.0 * np.log(lower[i, i])
    state[LOG_DET] = state[FRESH_LOG_DET] = log_det - d * np.log(gram_ridge(state))
    state[CONDITION] = _condition(np.abs(inverse), np.abs(lower))
    # V itself is off by (RECENT + 2) EPS at most, L L^T by (d + 1) EPS, M L by d EPS, each relative to |M||L| twice.
    # (Higham 2002, theorem 10.3 and section 14.2)
    state[DRIFT] = (3.0 * d + RECENT + 8.0) * EPS * state[CONDITION] ** 2
    state[FRESH_DRIFT] = state[DRIFT]
    return True


@compiled
def gram_ridge(state: Vector) -> float:
    """The ridge, kept as the last number of the array."""
    return float(state[state.size - 1])


@compiled_sum
def _cholesky(gram: Matrix, lower: Matrix) -> bool:
    for j in range(gram.shape[0]):
        for i in range(j, gram.shape[0]):
            entry = gram[i, j]
            for k in range(j):
                entry -= lower[i, k] * lower[j, k]
            if i == j:
                if not entry > 0.0:
                    return False
                lower[j, j] = np.sqrt(entry)
            else:
                lower[i, j] = entry / lower[j, j]
    return True


@compiled
def _invert(lower: Matrix, inverse: Matrix) -> None:
    for i in range(lower.shape[0]):
        for k in range(i):
            for j in range(k + 1):
                inverse[i, j] -= lower[i, k] * inverse[k, j]
        for j in range(i):
            inverse[i, j] /= lower[i, i]
        inverse[i, i] = 1.0 / lower[i, i]


@compiled
def _condition(inverse: Matrix, lower: Matrix) -> float:
    """A bound on the spectral norm of |M||L|: the root of its largest row sum times its largest column sum."""
    rows = np.dot(inverse, lower.sum(axis=1))
    columns = np.dot(inverse.sum(axis=0), lower)
    return math.sqrt(rows.max() * columns.max())


def state_size(dim: int) -> int:
    """Length of the flat array of a ridge state."""
    return HEAD + 4 * dim + 3 * dim * dim + RECENT * dim + 1


def new_state(dim: int, ridge: float) -> Vector:
    """The flat array of a ridge state with no observation."""
    state = np.zeros(state_size(dim))
    state[DIM], state[CONDITION], state[-1] = dim, 1.0, ridge
    whitener_of.function(state)[:] = np.eye(dim) / np.sqrt(ridge)
    gram_of.function(state)[:dim] = np.eye(dim) * ridge
    state[DRIFT] = state[FRESH_DRIFT] = 4.0 * EPS
    return state


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
        return float(self.buffer[LOG_DET])

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
        stacked = gram_of.function(self.buffer)
        waiting = recent_of.function(self.buffer)[: int(self.buffer[WAITING])]
        total: Matrix = stacked[:d] + (stacked[d:] + waiting.T @ waiting)
        return total

    @property
    def moment(self) -> Vector:
        """b = sum x y."""
        total: Vector = moment_of.function(self.buffer).sum(axis=0)
        return total

    def observe(self, x: Vector, reward: float) -> None:
        """Take in one observation."""
        absorb(self.buffer, np.asarray(x, dtype=np.float64), float(reward))

    def width(self, q: Vector) -> float:
        """||q||_{V^-1}."""
        return float(width(self.buffer, np.asarray(q, dtype=np.float64)))
