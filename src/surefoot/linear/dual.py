"""The `dual` confidence set: one event, read at every ridge a >= 0.  (Flynn et al. 2023, by duality)

On the event behind the `amm` radius, for all rounds at once and for *every* a >= 0, without a union bound,

    <theta, q> >= <theta_a, q> - sqrt(root(a)) ||q||_{V_a^-1},   V_a = X^T X + a I,   theta_a = V_a^-1 b,
    root(a) = sigma^2 (ln(det V / lambda^d) + 2 ln(1/delta)) + a B^2 + b^T V_a^-1 b - b^T V^-1 b,

and a = lambda is `amm`. The best a depends on q: a small one where q was explored, a large one where it was not. A
negative root says that no theta with ||theta|| <= B fits the data: they refute the assumptions.
"""

import math

import numpy as np

from surefoot.arrays import Vector
from surefoot.compiled import compiled, compiled_large
from surefoot.linear.ellipsoid import UNKNOWN, ellipsoid_support, widened
from surefoot.linear.exact import two_sum
from surefoot.linear.factor import cholesky, condition, invert
from surefoot.linear.radius import DELTA, NOISE, RIDGE, THETA_BOUND, amm_square
from surefoot.linear.ridge import DRIFT_USABLE, fresh_drift, gram_of
from surefoot.linear.ridge_layout import DRIFT, ENERGY, EPS, gram_at, log_det_of, moment_at

SHARES = (1.0, 0.001, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 100.0)  # a as a multiple of the ridge, amm first
NEGATIVE = 1e-6  # how far below zero, relative to the numbers it is made of, a root counts as a contradiction


@compiled
def _moved(state: Vector, at: int, gap: int, ridge: float, before: float) -> float:
    """A diagonal entry of V with another ridge, rounded once: beside the old ridge a small one would drown."""
    change, cut = two_sum(ridge, -before)
    moved, lost = two_sum(state[at], change)
    return float(moved + (lost + (cut + state[at + gap])))


@compiled
def _forget(out: Vector, to: int, d: int) -> None:
    """Center 0 and whitener I: with a radius beyond all bounds, a set that says nothing."""
    for i in range(d + d * d):
        out[to + i] = 0.0
    for i in range(d):
        out[to + d + i * d + i] = 1.0


@compiled_large
def choose_dual(settings: Vector, state: Vector, q: Vector, at: int, d: int, out: Vector, to: int) -> float:
    """Write center and whitener of the set that bounds <theta, q> best into `out`, and return its radius.

    q stands in its array from `at` on. Returns -1 if the data refute the assumptions, and a radius beyond all bounds if
    rounding may have done too much at every ridge.
    """
    # This is what stands there if rounding rules out every ridge below.
    _forget(out, to, d)
    if not state[DRIFT] <= DRIFT_USABLE:
        return UNKNOWN
    gram = gram_of(state)
    moment = state[moment_at(d) : moment_at(d) + d] + state[moment_at(d) + d : moment_at(d) + 2 * d]
    log_det = log_det_of(state)
    # Ridge and bound 0 leave the part that is the same at every a; each a adds its own a B^2.
    event = amm_square(log_det, settings[DELTA], settings[NOISE], 0.0, 0.0)
    # Rounding moves ln det V by d drift at the last factorisation, and by 2 drift for each unit that it grew since.
    event_error = settings[NOISE] ** 2 * state[DRIFT] * (d + 1.0 + 2.0 * log_det)
    lower, inverse, best, chosen = np.zeros((d, d)), np.zeros((d, d)), -np.inf, UNKNOWN
    trial = np.zeros(d + d * d)
    for share in SHARES:
        ridge = share * settings[RIDGE]
        shifted = gram.copy()
        for i in range(d):
            shifted[i, i] = _moved(state, gram_at(d) + i * d + i, d * d, ridge, settings[RIDGE])
        if not cholesky(shifted, lower):
            continue
        inverse[:] = 0.0
        invert(lower, inverse)
        drift = fresh_drift(d, condition(inverse, lower))
        if not drift <= DRIFT_USABLE:
            continue
        whitened = np.dot(inverse, moment)
        energy = np.dot(whitened, whitened)
        size = event + ridge * settings[THETA_BOUND] ** 2 + energy + state[ENERGY]
        # The energies nearly cancel: subtracted first, they do not lose digits to the larger terms.
        root = event + ridge * settings[THETA_BOUND] ** 2 + (energy - state[ENERGY])
        error = 4.0 * (drift + state[DRIFT]) * (energy + state[ENERGY]) + event_error + 8.0 * EPS * size
        # With its error added, since an alarm must come from the data and never from rounding.
        if root + error < -NEGATIVE * size:
            _forget(out, to, d)
            return -1.0
        radius = widened(math.sqrt(max(0.0, root) + error), drift, energy, d)
        trial[:d] = np.dot(whitened, inverse)
        trial[d:] = inverse.reshape(-1)
        mean, spread = ellipsoid_support(trial, 0, radius, q, at, d)
        if mean - spread > best:
            best, chosen = mean - spread, radius
            out[to : to + d + d * d] = trial
    return chosen
