"""Where the numbers of a ridge state stand in the one flat array that compiled code shares."""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_view
from surefoot.errors import StateError

EPS = 2.0**-53  # unit roundoff of float64
RECENT = 16  # rows that wait before they enter V together: few enough for BLAS to stay on this thread
SHORT = 8  # below this dimension plain loops beat those that add several terms at once

# The head of the array, then its blocks in this order: theta, whitener, step, moment and its carry, gram and its carry,
# recent rows, scratch, and the ridge. FAVOURITE is a hint, the row that was chosen last. Hot loops index the flat
# array: views would cost more than the arithmetic. SURPRISES is the sum of e^2 D^2: squared errors of prediction, each
# times the leverage of its row, and both as large as rounding lets them be.
(
    DIM, COUNT, FRESH_LOG_DET, GROWTH, DRIFT, FRESH_DRIFT, CONDITION, ENERGY, AGE, WAITING, FAVOURITE, SURPRISES, HEAD,
) = range(13)  # fmt: skip


@compiled
def whitener_at(d: int) -> int:
    """Where M starts; theta stands before it, from HEAD on."""
    return HEAD + d


@compiled
def step_at(d: int) -> int:
    """Where V^-1 x starts, for the newest observation x and the V before it: what a cache of widths follows."""
    return HEAD + d + d * d


@compiled
def moment_at(d: int) -> int:
    """Where b starts, and d further on the part of it that did not fit into floats."""
    return HEAD + 2 * d + d * d


@compiled
def gram_at(d: int) -> int:
    """Where V starts, without the recent rows, and d^2 further on the part of it that did not fit into floats."""
    return HEAD + 4 * d + d * d


@compiled
def recent_at(d: int) -> int:
    """Where the rows that wait to enter V start, WAITING of them filled."""
    return HEAD + 4 * d + 3 * d * d


@compiled
def scratch_at(d: int) -> int:
    """Where 2d numbers without meaning start."""
    return recent_at(d) + RECENT * d


@compiled_view
def theta_of(state: Vector) -> Vector:
    """The ridge estimate V^-1 b."""
    return state[HEAD : HEAD + int(state[DIM])]


@compiled_view
def whitener_of(state: Vector) -> Matrix:
    """M, with M^T M = V^-1."""
    d = int(state[DIM])
    return state[HEAD + d : HEAD + d + d * d].reshape(d, d)


@compiled
def log_det_of(state: Vector) -> float:
    """ln(det V / ridge^d): as it was at the last fresh factorisation, and what det V has grown by since."""
    return float(state[FRESH_LOG_DET] + math.log(state[GROWTH]))


@compiled
def gram_ridge(state: Vector) -> float:
    """The ridge, kept as the last number of the array."""
    return float(state[state.size - 1])


def state_size(dim: int) -> int:
    """Length of the flat array of a ridge state."""
    return HEAD + 6 * dim + 3 * dim * dim + RECENT * dim + 1


def new_state(dim: int, ridge: float) -> Vector:
    """The flat array of a ridge state with no observation."""
    state = np.zeros(state_size(dim))
    state[DIM], state[CONDITION], state[GROWTH], state[-1] = dim, 1.0, 1.0, ridge
    whitener_of.function(state)[:] = np.eye(dim) / np.sqrt(ridge)
    start = gram_at.function(dim)
    state[start : start + dim * dim] = (np.eye(dim) * ridge).ravel()
    state[DRIFT] = state[FRESH_DRIFT] = 4.0 * EPS
    return state


def check_state(state: Vector, *, dim: int, ridge: float) -> None:
    """Raise where a saved state cannot be one of this dimension and ridge: compiled code trusts these numbers."""
    counts = state[[COUNT, AGE, WAITING, FAVOURITE]]
    sound = state[DIM] == dim and state[-1] == ridge and 0 <= state[WAITING] < RECENT
    if not (sound and (counts >= 0).all() and (counts == np.floor(counts)).all()):
        raise StateError("`ridge` must be the state of a ridge regression with these settings, but it is not.")
