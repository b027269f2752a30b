"""From context columns to numbers: every context becomes a vector of length at most 1, whatever arrives later.

A number is moved into [0, 1] by the range it had in the log, and cut there; a label becomes 0s and a 1, or all 0s where
the log never saw it. Divided by the root of the number of columns, no context is longer than 1, so that a bound on the
features follows and holds in production too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from surefoot.arrays import Matrix, Vector, finite
from surefoot.errors import ConfigError, InputError

MOST_LEVELS = 64


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """A numeric column and its range."""

    name: str
    low: float
    high: float

    width = 1

    def encode(self, values: pl.Series) -> Matrix:
        """One column in [0, 1]; a column that never varied is 0."""
        numbers = values.cast(pl.Float64).to_numpy().reshape(-1, 1)
        span = self.high - self.low
        moved: Matrix = np.clip((numbers - self.low) / span, 0.0, 1.0) if span > 0 else np.zeros_like(numbers)
        return moved


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A column of labels and those that are known."""

    name: str
    levels: tuple[str, ...]

    @property
    def width(self) -> int:
        """One column per level."""
        return len(self.levels)

    def encode(self, values: pl.Series) -> Matrix:
        """A 1 under the level, all 0s for one that is not known."""
        shown = values.cast(pl.String)
        return np.stack([(shown == level).fill_null(False).to_numpy() for level in self.levels], axis=1).astype(float)


@dataclass(frozen=True, slots=True)
class Encoder:
    """Context columns in their order.

    >>> encoder = Encoder((NumericColumn("age", 20.0, 60.0), CategoricalColumn("plan", ("basic", "pro"))))
    >>> encoder.encode_one({"age": 30, "plan": "pro"}).round(4)
    array([0.1768, 0.    , 0.7071])
    """

    parts: tuple[NumericColumn | CategoricalColumn, ...]

    @property
    def dim(self) -> int:
        """Length of an encoded context."""
        return sum(part.width for part in self.parts)

    @property
    def names(self) -> list[str]:
        """What every entry of an encoded context is."""
        named = [
            [part.name] if isinstance(part, NumericColumn) else [f"{part.name}={level}" for level in part.levels]
            for part in self.parts
        ]
        return [name for names in named for name in names]

    def encode(self, contexts: pl.DataFrame) -> Matrix:
        """Every row of a table, (rows, dim)."""
        if not self.parts:
            return np.zeros((contexts.height, 0))
        columns = [part.encode(contexts[part.name]) for part in self.parts]
        encoded: Matrix = np.hstack(columns) / math.sqrt(len(self.parts))
        return np.ascontiguousarray(encoded)

    def encode_one(self, context: Mapping[str, Any]) -> Vector:
        """One context as it comes in production: a value under each column's name."""
        for part in self.parts:
            if part.name not in context:
                raise InputError(f"`context` must have a value for {part.name!r}, but got {sorted(context)}.")
            if isinstance(part, NumericColumn):
                finite(part.name, context[part.name], hint="The log had numbers there.")
        row: dict[str, list[Any]] = {
            part.name: [context[part.name] if isinstance(part, NumericColumn) else _label(context[part.name])]
            for part in self.parts
        }
        encoded: Vector = self.encode(pl.DataFrame(row))[0]
        return encoded


class ColumnRanges:
    """What a first pass over the log has seen of its contexts, from which an encoder is made."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float] | set[str]] = {}

    def look_at(self, contexts: pl.DataFrame) -> None:
        """Take in some rows."""
        for name, values in contexts.to_dict().items():
            if values.len() == 0:
                continue
            if values.dtype == pl.String:
                levels = self._seen.setdefault(name, set())
                assert isinstance(levels, set)
                levels.update(values.unique().to_list())
                _few(name, levels)
            else:
                numbers = values.to_numpy()
                low, high = self._seen.get(name, (math.inf, -math.inf))
                assert isinstance(low, float)
                assert isinstance(high, float)
                self._seen[name] = (min(low, float(numbers.min())), max(high, float(numbers.max())))

    def encoder(self) -> Encoder:
        """The encoder for all that was seen."""
        parts: list[NumericColumn | CategoricalColumn] = []
        for name, seen in self._seen.items():
            parts.append(
                CategoricalColumn(name, tuple(sort_labels(seen)))
                if isinstance(seen, set)
                else NumericColumn(name, *seen)
            )
        return Encoder(tuple(parts))


def _label(value: Any) -> str:
    """A label as the log's reader writes it: 2.0 and 2 are the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _few(name: str, levels: set[str]) -> None:
    if len(levels) > MOST_LEVELS:
        raise ConfigError(
            f"A column of labels must have at most {MOST_LEVELS} different ones, but {name!r} has more. "
            "Group the rare ones, or leave the column out of the context."
        )


def sort_labels(labels: Sequence[str] | set[str]) -> list[str]:
    """By number where all are whole numbers, else by name."""
    if all(label.lstrip("-").isdigit() for label in labels):
        return sorted(labels, key=int)
    return sorted(labels)
