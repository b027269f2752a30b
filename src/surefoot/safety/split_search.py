"""The search for a split over facts; how it climbs stands in `core/search.hpp`."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.core import native

# Facts beyond so many have the number OTHER + their place: the numbers between are the core's own kinds.
GIVEN: int = native.GIVEN
OTHER: int = native.OTHER
TANGENT: int = native.TANGENT
SPARE = 8  # working facts beyond the dimension: tangents of the ball, and facts that may be needed again


class WorkingFact(NamedTuple):
    """A fact of a split: its piece of the question is weight times normal."""

    kind: int
    level: float
    weight: float
    normal: Vector


class SplitFound(NamedTuple):
    """What a split proves, the rounding error of that, its facts, and the theta for which it is worst."""

    value: float
    error: float
    is_refuted: bool
    facts: list[WorkingFact]
    theta: Vector


def kind_of(place: int) -> int:
    """The number of a given fact."""
    return place if place < GIVEN else OTHER + place


def place_of(kind: int) -> int:
    """The place of a given fact, by its number."""
    return kind if kind < GIVEN else kind - OTHER


def search(
    center: Vector,
    whitener: Matrix,
    radius: float,
    bound: float,
    q: Vector,
    normals: Matrix,
    levels: Vector,
    *,
    rows: Matrix | None = None,
    low: float = -math.inf,
    high: float = math.inf,
    start: Sequence[WorkingFact] = (),
    room: int | None = None,
    target: float = math.inf,
    budget: int = 32,
) -> SplitFound:
    """Look for the split of <theta, q> that proves most, from `start` on.

    Over one ellipsoid, the ball of radius `bound`, facts <theta, normal> >= level, and actions `rows` whose mean lies
    in [low, high]; until it proves `target`, is optimal, or `budget` facts have joined.
    """
    actions = np.zeros((0, q.size)) if rows is None else rows
    places = q.size + SPARE if room is None else room
    normals, levels = (np.ascontiguousarray(x, dtype=np.float64) for x in (normals.reshape(-1, q.size), levels))
    value, error, is_refuted, facts, theta = native.search(
        center, whitener, radius, bound, q, actions, low, high, normals, levels, list(start), places, target, budget
    )
    return SplitFound(value, error, is_refuted, [WorkingFact(*fact) for fact in facts], theta)
