"""Cuts: half-spaces by which the search for a proof uses a fact that is not linear.

For any direction g, a fact says <theta, g> >= lower(g): a linear fact. Asked about a theta that it rules out, a set or
a fact of one's own gives the direction whose half-space rules it out, too.
"""

import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from surefoot.arrays import Vector
from surefoot.errors import InputError
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.facts import Fact

OUTSIDE = 1e-7  # how far outside a set, relative to its size, the minimiser may lie


class Cut(NamedTuple):
    """The linear fact <theta, normal> >= level, which the owner gives."""

    owner: Fact
    normal: Vector
    level: float


@runtime_checkable
class Separable(Protocol):
    """A fact that the search can use beyond its bound of the question itself."""

    def lower(self, q: Any, /) -> float:
        """As every fact."""
        ...

    def separate(self, theta: Vector, /) -> Any:
        """A direction g with <theta, g> < lower(g), or None where the fact allows this theta."""
        ...


def cut_at(known: Any, theta: Vector) -> Cut | None:
    """A half-space that a fact gives and theta violates; None where the fact allows theta."""
    if isinstance(known, Ball):
        length = float(np.linalg.norm(theta))
        normal = -theta / length if length > 0 else theta
        return Cut(known, normal, known.lower(normal)) if length > known.radius * (1 + OUTSIDE) else None
    if isinstance(known, Ellipsoid):
        return _tangent(known, theta)
    return _own(known, theta)


def _tangent(known: Ellipsoid, theta: Vector) -> Cut | None:
    inverse = np.linalg.inv(known.whitener)
    moved = inverse.T @ (theta - known.center)
    length = float(np.linalg.norm(moved))
    if length <= known.radius * (1 + OUTSIDE):
        return None
    normal = -inverse @ moved / length
    # Of length 1: the normals of a flat ellipsoid may have any size.
    normal /= np.linalg.norm(normal)
    return Cut(known, normal, known.lower(normal))


def _own(known: Any, theta: Vector) -> Cut | None:
    returned = known.separate(theta.copy())
    if returned is None:
        return None
    direction = np.asarray(returned, dtype=np.float64)
    length = float(np.linalg.norm(direction))
    if direction.shape != theta.shape or not math.isfinite(length) or length == 0.0:
        raise InputError(
            f"`separate` of the {known.name} must return {theta.size} finite numbers that are not all 0, or None, but "
            f"returned {returned!r:.80}."
        )
    normal = direction / length
    level = float(known.lower(normal))
    if not math.isfinite(level):
        raise InputError(
            f"`lower` of the {known.name} must bound the direction that its `separate` gives, but it says {level}."
        )
    # One that does not separate would come back for ever.
    is_outside = float(theta @ normal) < level - OUTSIDE * max(abs(level), float(np.linalg.norm(theta)))
    return Cut(known, normal, level) if is_outside else None
