"""From context columns to numbers: every context becomes a vector of length at most 1, whatever arrives later.

A number is moved into [0, 1] by the range it had in the log, and cut there; a label becomes 0s and a 1, or all 0s
where the log never saw it. Where a column has gaps in the log, a gap is a value of its own: a label among the others,
or beside a number a 1 that says that it is missing, so that its share of theta stands for what the number would have
been. A column of very many labels may be hashed: each label has one of a few buckets, whether the log saw it or not.
Divided by the root of the number of columns, no context is longer than 1, so that a bound on the features follows and
holds in production too.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, finite
from surefoot.errors import ConfigError, InputError
from surefoot.linear.context_keys import misspelt
from surefoot.linear.labels import GAP, is_gap_word, is_missing, label_of, text_of

MOST_LEVELS = 64
MOST_BUCKETS = 1024
SHOWN = 64  # keys of a context in a message


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """A numeric column and its range; with gaps, a second column says where there is none."""

    name: str
    low: float
    high: float
    has_gaps: bool = False

    @property
    def width(self) -> int:
        """One column, or two."""
        return 1 + self.has_gaps

    @property
    def names(self) -> list[str]:
        """What its columns are."""
        return [self.name, f"{self.name} is missing"][: self.width]

    def encode(self, values: ArrayLike) -> Matrix:
        """A column in [0, 1], 0 where it never varied; and one of 0 and 1 where there may be gaps."""
        numbers = np.asarray(values, dtype=np.float64).reshape(-1, 1)
        gaps, span = np.isnan(numbers), self.high - self.low
        moved: Matrix = np.clip((numbers - self.low) / span, 0.0, 1.0) if span > 0 else np.zeros_like(numbers)
        return np.hstack([np.where(gaps, 0.0, moved), gaps][: self.width]).astype(np.float64)


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A column of labels and those that are known."""

    name: str
    levels: tuple[str, ...]

    @property
    def width(self) -> int:
        """One column per level."""
        return len(self.levels)

    @property
    def has_gaps(self) -> bool:
        """Whether a gap is one of the levels."""
        return GAP in self.levels

    @property
    def names(self) -> list[str]:
        """What its columns are."""
        return [f"{self.name}={level}" for level in self.levels]

    def encode(self, values: Any) -> Matrix:
        """A 1 under the level, all 0s for one that is not known; the values are texts, None for a gap."""
        known, nowhere = _places_of(self.levels), len(self.levels)
        places = [known.get(text, known.get(label_of(text), nowhere)) for text in values]
        return np.eye(nowhere + 1, nowhere)[places]

    def refuses(self, text: str | None) -> bool:
        """Whether a text stands for a gap, and the log had none."""
        return label_of(text) == GAP and not self.has_gaps and text not in self.levels


@lru_cache(maxsize=256)
def _places_of(levels: tuple[str, ...]) -> dict[str | None, int]:
    """Where each level is, as it stands in a configuration, and by every other way to write it."""
    known: dict[str | None, int] = {level: place for place, level in enumerate(levels)}
    for place, level in enumerate(levels):
        label = label_of(text_of(level))
        if label != GAP:  # a country that is written NA is no gap
            known.setdefault(label, place)
    return known


@dataclass(frozen=True, slots=True)
class HashedColumn:
    """A column of very many labels, each in one of a few buckets; labels that share one share their part of theta.

    >>> HashedColumn("user_agent", 4).encode(np.array(["curl/8.5", "curl/8.6"]))
    array([[0., 0., 1., 0.],
           [0., 0., 0., 1.]])
    """

    name: str
    buckets: int

    def __post_init__(self) -> None:
        is_whole = isinstance(self.buckets, int) and not isinstance(self.buckets, bool)
        if not is_whole or not 2 <= self.buckets <= MOST_BUCKETS:
            raise ConfigError(
                f"`2 <= buckets <= {MOST_BUCKETS:,}` must hold for the hashed column {self.name!r}, but got "
                f"{self.buckets!r}. Each is a feature of its own; 64 will do for most."
            )

    @property
    def width(self) -> int:
        """One column per bucket."""
        return self.buckets

    @property
    def has_gaps(self) -> bool:
        """A gap is a label, and has its bucket."""
        return True

    @property
    def names(self) -> list[str]:
        """What its columns are."""
        return [f"{self.name} in bucket {place}" for place in range(self.buckets)]

    def encode(self, values: Any) -> Matrix:
        """A 1 under the label's bucket; the values are texts, None for a gap."""
        places = [bucket_of(label_of(text), self.buckets) for text in values]
        return np.eye(self.buckets)[places]


@lru_cache(maxsize=1 << 16)
def bucket_of(label: str, buckets: int) -> int:
    """The bucket of a label: BLAKE2b of its UTF-8 with a digest of eight bytes, little-endian, modulo `buckets`.

    The same in every process, on every machine and in every version: what was learned of a bucket is about its labels.
    """
    digest = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % buckets


Column = NumericColumn | CategoricalColumn | HashedColumn


@dataclass(frozen=True, slots=True)
class Encoder:
    """Context columns in their order.

    >>> encoder = Encoder((NumericColumn("age", 20.0, 60.0), CategoricalColumn("plan", ("basic", "pro"))))
    >>> encoder.encode_one({"age": 30, "plan": "pro"}).round(4)
    array([0.1768, 0.    , 0.7071])
    """

    parts: tuple[Column, ...]

    @property
    def dim(self) -> int:
        """Length of an encoded context."""
        return sum(part.width for part in self.parts)

    @property
    def names(self) -> list[str]:
        """What every entry of an encoded context is."""
        return [name for part in self.parts for name in part.names]

    def encode(self, contexts: Any) -> Matrix:
        """Every row of a table, (rows, dim); the table gives a column by its name."""
        if not self.parts:
            return np.zeros((len(contexts), 0))
        columns = [part.encode(contexts[part.name]) for part in self.parts]
        encoded: Matrix = np.hstack(columns) / math.sqrt(len(self.parts))
        return np.ascontiguousarray(encoded)

    def encode_one(self, context: Mapping[str, Any], *, is_stored: bool = False) -> Vector:
        """One context as it comes in production: a value under each column's name.

        One that `is_stored` was taken when it came, perhaps by other rules: its keys and words for gaps are not
        judged again.
        """
        if not is_stored and (slip := misspelt(tuple(part.name for part in self.parts), context)):
            raise InputError(
                f"`context` must have its values under {', '.join(repr(part.name) for part in self.parts)}, but got "
                f"{slip[0]!r} instead. Did you mean {slip[1]!r} by {slip[0]!r}? "
                "Where there is no value, say so by None."
            )
        columns = {part.name: [_value(part, context, is_stored)] for part in self.parts}
        encoded: Vector = self.encode(columns)[0] if columns else np.zeros(0)
        return encoded


def _value(part: Column, context: Mapping[str, Any], is_stored: bool) -> Any:
    """A context's value for a column: a gap where the log had some, and refused where it had none."""
    given = context.get(part.name)
    is_number = isinstance(part, NumericColumn)
    if is_missing(given) or (is_number and part.has_gaps and is_gap_word(given)):
        if not part.has_gaps:
            keys = ", ".join(sorted(map(repr, context))[:SHOWN])
            raise _missing(
                part.name, f"got {given!r:.60}" if part.name in context else f"its keys are {keys or 'none'}"
            )
        return math.nan if is_number else None
    if is_number:
        return finite(part.name, given, hint="The log had numbers there.")
    text = text_of(given)
    if isinstance(part, CategoricalColumn) and not is_stored and part.refuses(text):
        raise _missing(part.name, f"got {given!r:.60}, which stands for a gap")
    return text


def _missing(name: str, told: str) -> InputError:
    return InputError(f"`context` must have a value for {name!r}, which the log always had, but {told}.")
