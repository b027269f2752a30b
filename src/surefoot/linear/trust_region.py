"""The furthest theta of an ellipsoid: max of <theta, linear> + weight ||theta||, by eigenvalues and a scalar equation.

With theta = center + radius M^T u, ||u|| <= 1, and ||theta|| = min over s > 0 of (||theta||^2 / s + s) / 2, the problem
for a fixed s is a trust-region problem, which one eigendecomposition and a secular equation solve exactly
(Moré and Sorensen 1983). Its value is convex in s and never below the true one: the least of it is a bound, and the
difference to the point found is reported as the gap. For linear = 0 any s gives the optimum and the gap is 0.
"""

import math
from collections.abc import Callable

import numpy as np

from surefoot.arrays import Matrix, Vector

STEPS = 80  # bisection and golden-section steps; each stops earlier once the interval is a rounding error


def furthest(center: Vector, whitener: Matrix, radius: float, *, linear: Vector, weight: float) -> tuple[Vector, float]:
    """The theta of the ellipsoid with the largest <theta, linear> + weight ||theta||, and a bound on what it misses."""
    squares, vectors = np.linalg.eigh(whitener @ whitener.T)
    axes = radius * (vectors.T @ whitener)  # theta = center + u @ axes

    def solve(scale: float) -> tuple[float, Vector]:
        curvature = weight / scale
        pull = axes @ (linear + curvature * center)
        best, most = center, -math.inf
        for u in _trust_region(curvature * radius**2 * squares, pull):
            theta = center + u @ axes
            value = float(theta @ linear) + weight * (float(theta @ theta) / scale + scale) / 2
            if value > most:
                best, most = theta, value
        return most, best

    reach = float(np.linalg.norm(center)) + radius * math.sqrt(max(squares[-1], 0.0))
    # The minimum over s is taken at s = ||theta||, so no s beyond the reach is needed.
    scale = reach if not linear.any() else _golden(lambda s: solve(s)[0], reach * 1e-6, reach)
    bound, theta = solve(scale)
    # With a linear part the climb may end at a local maximum: start from the ends of every axis, too.
    starts = [theta] if not linear.any() else [theta, *(center + axes), *(center - axes)]
    tops = [_climb(start, center, axes, linear, weight) for start in starts]
    values = [float(top @ linear) + weight * float(np.linalg.norm(top)) for top in tops]
    best = int(np.argmax(values))
    gap = 0.0 if not linear.any() else max(0.0, bound - values[best])
    return tops[best], gap


def _trust_region(curvature: Vector, pull: Vector) -> list[Vector]:
    """All candidates for the maximiser of u.diag(curvature).u / 2 + pull.u over ||u|| <= 1, curvature ascending."""
    top = curvature[-1]
    # Equal top eigenvalues differ by rounding; the whole eigenspace must count as the top.
    is_top = curvature >= top * (1 - 1e-14)
    if np.abs(pull[is_top]).max() <= 1e-14 * (np.abs(pull).max() + top):
        rest = np.where(is_top, 0.0, pull / np.where(is_top, 1.0, top - curvature))
        if rest @ rest < 1:  # the hard case: the rest of the length goes along the top axis, to either side
            side = np.zeros_like(rest)
            side[-1] = math.sqrt(1 - rest @ rest)
            return [rest + side, rest - side]
    # ||u|| falls as the shift grows, and at shift = ||pull|| it is at most 1.
    low, high = 0.0, float(np.linalg.norm(pull))
    for _ in range(STEPS):
        shift = (low + high) / 2
        if np.linalg.norm(pull / (top - curvature + shift)) > 1:
            low = shift
        else:
            high = shift
    # `high`, for at low = 0 a denominator may be 0.
    u = pull / (top - curvature + high)
    unit: Vector = u / np.linalg.norm(u)
    return [unit]


def _climb(theta: Vector, center: Vector, axes: Matrix, linear: Vector, weight: float) -> Vector:
    """Polish: the objective is convex, so moving to the maximiser of its tangent never loses."""
    for _ in range(STEPS):
        length = float(np.linalg.norm(theta))
        slope = axes @ (linear + (weight / length) * theta) if length > 0 else axes @ linear
        size = float(np.linalg.norm(slope))
        if size == 0:
            return theta
        moved = center + (slope / size) @ axes
        if np.linalg.norm(moved - theta) <= 1e-15 * np.linalg.norm(moved):
            return moved
        theta = moved
    return theta


def _golden(function: Callable[[float], float], low: float, high: float) -> float:
    """The minimiser of a convex function on an interval."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(STEPS):
        if high - low <= 1e-13 * high:
            break
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = function(b)
    return (low + high) / 2
