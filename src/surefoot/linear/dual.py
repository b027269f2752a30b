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
from surefoot.compiled import compiled_large
from surefoot.linear.ellipsoid import DRIFT_USABLE, ellipsoid_support, widened
from surefoot.linear.factor import cholesky, condition, invert
from surefoot.linear.radius import DELTA, NOISE, RIDGE, THETA_BOUND, amm_square
from surefoot.linear.ridge import DRIFT, ENERGY, fresh_drift, gram_of, log_det_of, moment_at

SHARES = (1.0, 0.001, 0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 100.0)  # a as a multiple of the ridge, amm first
NEGATIVE = 1e-6  # how far below zero, relative to the numbers it is made of, a root counts as a contradiction


@compiled_large
def choose_dual(settings: Vector, state: Vector, q: Vector, at: int, d: int, out: Vector, to: int) -> float:
    """Write center and whitener of the set that bounds <theta, q> best into `out`, and return its radius.

    q stands in its array from `at` on. Returns -1 where the data refute the assumptions.
    """
    gram = gram_of(state)
    moment = state[moment_at(d) : moment_at(d) + d] + state[moment_at(d) + d : moment_at(d) + 2 * d]
    event = amm_square(log_det_of(state), settings[DELTA], settings[NOISE], 0.0, 0.0)
    lower, inverse, best, chosen = np.zeros((d, d)), np.zeros((d, d)), -np.inf, 1e300
    trial = np.zeros(d + d * d)
    for share in SHARES:
        ridge = share * settings[RIDGE]
        shifted = gram.copy()
        for i in range(d):
            shifted[i, i] += ridge - settings[RIDGE]
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
        root = event + ridge * settings[THETA_BOUND] ** 2 + (energy - state[ENERGY])
        if root < -NEGATIVE * size:
            return -1.0
        error = 4.0 * (drift + state[DRIFT]) * (energy + state[ENERGY])
        radius = widened(math.sqrt(max(0.0, root) + error), drift, energy, d)
        trial[:d] = np.dot(whitened, inverse)
        trial[d:] = inverse.reshape(-1)
        mean, spread = ellipsoid_support(trial, 0, radius, q, at, d)
        if mean - spread > best:
            best, chosen = mean - spread, radius
            out[to : to + d + d * d] = trial
    return chosen
