"""The keys of a context: a misspelt column would count as a gap without a word.

What else a context brings is its own business, but a key that lies close to the name of a column that is absent is
taken for a slip of the pen. Names that differ in their digits alone are no slips: score_1 and score_2 are two columns.
"""

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        return _kept(absent, odd)
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


_kept = lru_cache(maxsize=1024)(_slip)


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
