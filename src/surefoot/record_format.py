"""How a record is written: canonical JSON, with numbers that read back to the bit."""

import math
from typing import Literal, TypeAlias

import msgspec

from surefoot.journal import canonical
from surefoot.journal.events import encode_sorted

Number: TypeAlias = float | Literal["inf", "-inf", "nan"]


class Record(msgspec.Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What an event holds: a tree, which the garbage collector need not search for cycles."""


def number(value: float) -> Number:
    """A float as JSON can tell it.

    >>> number(0.1), number(-math.inf), float(number(-math.inf))
    (0.1, '-inf', -inf)
    """
    if math.isfinite(value):
        return float(value)
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def encode(record: Record) -> bytes:
    """The payload of an event."""
    return canonical(record)


def encode_finite(record: Record) -> bytes:
    """The same where every number is known to be finite, and parts may be bytes (`msgspec.Raw`) already."""
    return encode_sorted(record)
