"""Labels as text: one rule for log files, tables in memory and live contexts, so that a value means the same in all.

A CSV file knows nothing but text, Parquet and JSON have types, and a shop hands over what its language has. 2.0 and 2
are the same label, True is true, blanks around a label go, and a gap is a gap however it was written.
"""

import datetime
import re
import sys
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np

from surefoot.errors import InputError

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
