"""What a first pass over a log sees of its context columns: from their ranges and labels an encoder is made."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from surefoot.errors import ConfigError
from surefoot.linear.encoding import (
    MOST_LEVELS,
    CategoricalColumn,
    Column,
    Encoder,
    HashedColumn,
    NumericColumn,
    label_of,
)


class ColumnRanges:
    """What a first pass over the log has seen of its contexts, from which an encoder is made.

    Of a column that is `hashed` into so many buckets nothing needs to be remembered.
    """

    def __init__(self, hashed: Mapping[str, int] | None = None) -> None:
        self._seen: dict[str, tuple[float, float] | set[str] | HashedColumn] = {}
        self._gaps: set[str] = set()
        self._hashed = {name: HashedColumn(name, buckets) for name, buckets in (hashed or {}).items()}

    def look_at(self, contexts: pl.DataFrame) -> None:
        """Take in some rows."""
        for name, values in contexts.to_dict().items():
            if values.len() == 0:
                continue
            if name in self._hashed:
                self._seen[name] = self._hashed[name]
            elif values.dtype == pl.String:
                levels = self._seen.setdefault(name, set())
                assert isinstance(levels, set)
                levels.update(label_of(text) for text in values.unique().to_list())
                _few(name, levels)
            else:
                numbers = values.to_numpy()
                self._gaps |= {name} if np.isnan(numbers).any() else set()
                range_ = self._seen.get(name, (math.inf, -math.inf))
                assert isinstance(range_, tuple)
                low, high = range_
                # A column of nothing but gaps has no range, and its number is 0 throughout.
                least, most = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
                self._seen[name] = (float(np.fmin(low, least)), float(np.fmax(high, most)))

    def join(self, other: "ColumnRanges") -> None:
        """Take in what was seen in other rows."""
        self._gaps |= other._gaps
        for name, there in other._seen.items():
            here = self._seen.setdefault(name, there)
            if isinstance(here, set) and isinstance(there, set):
                here |= there
                _few(name, here)
            elif isinstance(here, tuple) and isinstance(there, tuple):
                self._seen[name] = (float(np.fmin(here[0], there[0])), float(np.fmax(here[1], there[1])))

    def encoder(self) -> Encoder:
        """The encoder for all that was seen."""
        return Encoder(tuple(self._part(name, seen) for name, seen in self._seen.items()))

    def _part(self, name: str, seen: tuple[float, float] | set[str] | HashedColumn) -> Column:
        if isinstance(seen, HashedColumn):
            return seen
        if isinstance(seen, set):
            return CategoricalColumn(name, tuple(sort_labels(seen)))
        return _numeric(name, seen, name in self._gaps)


def _numeric(name: str, seen: tuple[float, float], has_gaps: bool) -> NumericColumn:
    low, high = seen if math.isfinite(seen[0]) else (0.0, 0.0)
    return NumericColumn(name, low, high, has_gaps)


def _few(name: str, levels: set[str]) -> None:
    if len(levels) > MOST_LEVELS:
        raise ConfigError(
            f"A column of labels must have at most {MOST_LEVELS} different ones, but {name!r} has more. "
            f"Hash them (`--hash {name}:64`, `Columns(hashed=...)`), group the rare ones, or leave the column out."
        )


def sort_labels(labels: Sequence[str] | set[str]) -> list[str]:
    """By number where all are whole numbers, else by name."""
    if all(label.lstrip("-").isdigit() for label in labels):
        return sorted(labels, key=int)
    return sorted(labels)
