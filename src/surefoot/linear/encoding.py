"""From context columns to numbers: every context becomes a vector of length at most 1, whatever arrives later.

A number is moved into [0, 1] by the range it had in the log, and cut there; a label becomes 0s and a 1, or all 0s
where the log never saw it. Where a column has gaps in the log, a gap is a value of its own: a label among the others,
or beside a number a 1 that says that it is missing, so that its share of theta stands for what the number would have
been. A column of very many labels may be hashed: each label has one of a few buckets, whether the log saw it or not.
Divided by the root of the number of columns, no context is longer than 1, so that a bound on the features follows and
holds in production too.
"""

import datetime
import difflib
import hashlib
import math
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arrays import Matrix, Vector, finite
from surefoot.errors import ConfigError, InputError

GAP = "(missing)"  # the label of a gap
GAP_WORDS = frozenset(("", "na", "n/a", "nan", "null", "none"))  # what programs write where there is nothing
MOST_DIGITS = sys.int_info.default_max_str_digits  # more of a whole number Python does not write
TOO_LONG = f"A label must have at most {MOST_DIGITS:,} digits where it is a number, but got more. Send it as text."
NO_TEXT = "A label must be text that UTF-8 can hold, but got {!r:.60}. Decode it where it comes from, or leave it out."
HALVES = re.compile("[\ud800-\udfff]")  # of a pair that is one character in UTF-16
WHOLE = re.compile(r"(-?\d+)\.0+", re.ASCII)  # a whole number with decimals


def text_of(value: Any) -> str | None:
    """A value as text, None where there is none.

    >>> text_of(2.0), text_of(" 2.0 "), text_of(True), text_of(float("nan"))
    ('2', '2', 'true', None)
    """
    if type(value) is not str:
        if is_missing(value):
            return None
        value = _written(value)
    text: str = value.strip()
    if not text.isascii() and HALVES.search(text):
        raise InputError(NO_TEXT.format(text))
    whole = WHOLE.fullmatch(text)
    text = text if whole is None else whole[1]
    return "0" if text == "-0" else text


def label_of(text: str | None) -> str:
    """The label that a text stands for, where no list of labels says otherwise.

    >>> label_of("True"), label_of("NA"), label_of("Pro")
    ('true', '(missing)', 'Pro')
    """
    if text is None or (small := text.lower()) in GAP_WORDS:
        return GAP
    return small if small in ("true", "false") else text


def is_missing(value: Any) -> bool:
    """Whether a value is none at all: None, NaN, or what pandas has in their place."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA, an array, a signalling NaN
        return type(value).__name__ == "NAType" or (isinstance(value, Decimal) and value.is_nan())


def is_gap_word(value: Any) -> bool:
    """Whether a value is a text that stands for a gap."""
    return isinstance(value, str) and value.strip().lower() in GAP_WORDS


def _written(value: Any) -> str:
    """What is no plain text, as a file would have it."""
    if isinstance(value, str):
        return str.__str__(value)  # an enumeration of texts would write its own name
    if isinstance(value, Enum):
        return _written(value.value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        # In as few digits as tell it from its neighbours, in the precision that it has.
        return str(int(value)) if np.isfinite(value) and value == int(value) else str(value)
    if isinstance(value, Decimal):
        return _digits(value) if value.is_finite() else str(value)
    if isinstance(value, (np.datetime64, datetime.datetime)):
        return str(value).replace("T", " ")
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(NO_TEXT.format(bytes(value))) from None
    if isinstance(value, (Mapping, Sequence, Set, np.ndarray)):
        raise InputError(f"A label must be one text, number or truth value, but got a {type(value).__name__}.")
    try:
        return str(value)
    except ValueError:  # a whole number of too many digits
        raise InputError(TOO_LONG) from None


def _digits(value: Decimal) -> str:
    """All digits of a number: `normalize` would round to those of the decimal context."""
    if max(value.adjusted(), -int(value.as_tuple().exponent)) >= MOST_DIGITS:
        raise InputError(TOO_LONG)
    text = format(value, "f")
    return text.rstrip("0").removesuffix(".") if "." in text else text


CLOSE = 0.8  # share of letters that a name and its slip have in common, by difflib
AT_ONCE = 4_096  # keys that are looked at together, for memory
MOST_COMPARED = 256  # keys that look near and are compared letter by letter, which takes time
FEW, SHORT = 64, 2_048  # keys and letters of a context whose judgement is kept
DIGITS, NO_LETTERS = re.compile(r"\d"), re.compile(r"[\W\d_]+")
ONES = np.array([place.bit_count() for place in range(256)])

Letters = NDArray[np.uint64]
Slip = tuple[str, str]  # the key that came, and the column that was meant


def misspelt(names: tuple[str, ...], keys: Collection[Any]) -> Slip | None:
    """The first column that a key is a slip of the pen for, if there is one.

    >>> misspelt(("age", "user_agent"), {"age": 30, "useragent": "curl"})
    ('useragent', 'user_agent')
    """
    absent = tuple(name for name in names if name not in keys)
    if not absent or len(keys) + len(absent) == len(names):
        return None
    known = set(names)
    odd = tuple(key for key in keys if isinstance(key, str) and key not in known)
    # The same keys come again and again, but what a stranger sends must not be kept whatever its size.
    if len(odd) <= FEW and sum(map(len, odd)) <= SHORT:
        return cached_slip(absent, odd)
    return _slip(absent, odd)


def _slip(absent: Sequence[str], odd: Sequence[str]) -> Slip | None:
    names = [name.lower() for name in absent]
    longest = max(map(len, names)) * (2 / CLOSE - 1)
    keys = [key for key in odd if len(key) <= longest]
    left = [MOST_COMPARED] * len(names)
    for begin in range(0, len(keys), AT_ONCE):
        block = [key.lower() for key in keys[begin : begin + AT_ONCE]]
        for which, near in enumerate(_near(names, block)):
            for place in near:
                if left[which] and not _is_another(block[place], names[which]):
                    left[which] -= 1
                    if difflib.SequenceMatcher(None, block[place], names[which]).ratio() >= CLOSE:
                        return keys[begin + place], absent[which]
    return None


cached_slip = lru_cache(maxsize=1024)(_slip)


def _is_another(key: str, name: str) -> bool:
    """Whether two names differ in their digits, and otherwise in nothing that can be read aloud."""
    return NO_LETTERS.sub("", key) == NO_LETTERS.sub("", name) and DIGITS.findall(key) != DIGITS.findall(name)


def _near(names: Sequence[str], keys: Sequence[str]) -> Iterator[NDArray[np.int64]]:
    """For every name the keys that may be close, by the letters that one has and the other has not."""
    lengths, letters = np.array([len(key) for key in keys]), _letters(keys)
    for name, own in zip(names, _letters(names), strict=True):
        least = CLOSE * (lengths + len(name)) / 2 - 1e-9  # letters in common, where they are close
        lacking, beyond = _count(own & ~letters), _count(letters & ~own)
        yield np.flatnonzero((lacking <= len(name) - least) & (beyond <= lengths - least))


def _letters(texts: Sequence[str]) -> Letters:
    """Which letters each text has, as bits: letters that share one make texts look nearer, never farther."""
    codes = np.array(texts).view(np.uint32).reshape(len(texts), -1).astype(np.uint64)
    bits = np.where(codes > 0, np.left_shift(np.uint64(1), codes & np.uint64(63)), np.uint64(0))
    return np.asarray(np.bitwise_or.reduce(bits, axis=1))


def _count(letters: Letters) -> NDArray[np.int64]:
    return np.asarray(ONES[letters.view(np.uint8).reshape(-1, 8)].sum(axis=1))


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
                "Pass None where there is no value."
            )
        columns = {part.name: [_value(part, context, is_stored)] for part in self.parts}
        encoded: Vector = self.encode(columns)[0] if columns else np.zeros(0)
        return encoded


def _value(part: Column, context: Mapping[str, Any], is_stored: bool) -> Any:
    """A context's value for a column: a gap where the log had some, and refused where it had none."""
    value = context.get(part.name)
    is_number = isinstance(part, NumericColumn)
    if is_missing(value) or (is_number and part.has_gaps and is_gap_word(value)):
        if not part.has_gaps:
            keys = ", ".join(sorted(map(repr, context))[:SHOWN])
            raise _missing(
                part.name, f"got {value!r:.60}" if part.name in context else f"its keys are {keys or 'none'}"
            )
        return math.nan if is_number else None
    if is_number:
        return finite(part.name, value, hint="The log had numbers there.")
    text = text_of(value)
    if isinstance(part, CategoricalColumn) and not is_stored and part.refuses(text):
        raise _missing(part.name, f"got {value!r:.60}, which stands for a gap")
    return text


def _missing(name: str, got: str) -> InputError:
    return InputError(f"`context` must have a value for {name!r}, which the log always had, but {got}.")
