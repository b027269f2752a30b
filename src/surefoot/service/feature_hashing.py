"""Features as Personalizer's users send them (nested JSON with words) as rows of the experiment's dimension.

Each pair of a path and its value is a feature; those of the context are also crossed with each action's id and
features, so that they can change which action is best. Features are hashed to one of `dim` places, with a sign, and
rows are scaled to length 1 (or to feature_bound, if that is less). The guarantee assumes a linear model over these;
more dimensions mean fewer collisions.

>>> rows = hashed([{"time": "morning"}], [("a", [{"size": 2}]), ("b", [{"size": 3}])], dim=8, bound=1.0)
>>> rows.shape, [round(float(length), 6) for length in np.linalg.norm(rows, axis=1)]
((2, 8), [1.0, 1.0])
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from surefoot.arrays import Matrix
from surefoot.errors import InputError

MOST_FEATURES = 100_000  # of one request, crossed ones included
DEEPEST = 8


def hashed(context: Sequence[Any], actions: Sequence[tuple[str, Sequence[Any]]], *, dim: int, bound: float) -> Matrix:
    """One row per action."""
    around = list(_flat("c", list(context), 0))
    rows = np.zeros((len(actions), dim))
    work = 0
    for row, (name, features) in zip(rows, actions, strict=True):
        own = [(f"id={name}", 1.0), *_flat("a", list(features), 0)]
        work += len(own) * (1 + len(around))
        # Counted before they are made: a small request can cross into very many.
        if work > MOST_FEATURES:
            raise InputError(f"`features` must be at most {MOST_FEATURES:,} for all actions, crossed with the context.")
        for word, value in own:
            _add(row, word, value)
            for other, weight in around:
                _add(row, f"{word}&{other}", value * weight)
        length = float(np.linalg.norm(row))
        if not math.isfinite(length):
            raise InputError("`features` must be numbers that can be multiplied, but these are too large.")
        if length > 0:
            # A little shorter, since rounding must not carry a row beyond the bound.
            row *= min(1.0, bound) * (1 - 1e-12) / length
    return rows


def _add(row: Any, word: str, value: float) -> None:
    place, sign = _place(word, row.size)
    row[place] += sign * value


@lru_cache(100_000)
def _place(word: str, dim: int) -> tuple[int, float]:
    # Python's own hash differs from process to process, and features must not.
    number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    # The lowest bit is the sign, by which collisions cancel on average; the place must not depend on it.
    return (number >> 1) % dim, 1.0 if number & 1 else -1.0


def _flat(path: str, value: Any, depth: int) -> Iterator[tuple[str, float]]:
    """A number is a feature of its path, a word or a boolean one of path and value; lists and objects hold others."""
    if depth > DEEPEST:
        raise InputError(f"`features` must not be nested more than {DEEPEST} deep.")
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _flat(f"{path}.{key}", entry, depth + 1)
    elif isinstance(value, list):
        for entry in value:
            yield from _flat(path, entry, depth + 1)
    # Before numbers, for a bool is an int.
    elif isinstance(value, (bool, str)):
        yield f"{path}={value}", 1.0
    elif isinstance(value, (int, float)):
        yield path, float(value)
