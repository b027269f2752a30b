"""Single numbers: the checks that each passes once, where it enters; and shares as people read them.

The client needs them, and no NumPy.
"""

import math
from numbers import Integral
from typing import Any

from surefoot.errors import ConfigError, InputError

LARGEST = 1e100  # of a reward: beyond it, squares and products leave the floats


def positive(name: str, value: float, *, hint: str) -> float:
    """A finite number above zero, or a ConfigError that says what it means."""
    number = _number(name, value)
    if not (number > 0 and math.isfinite(number)):
        raise ConfigError(f"`{name} > 0` must hold and be finite, but got {name}={value!r}. {hint}")
    return number


def nonnegative(name: str, value: float, *, hint: str) -> float:
    """A finite number of at least zero, or a ConfigError that says what it means."""
    number = _number(name, value)
    if not (number >= 0 and math.isfinite(number)):
        raise ConfigError(f"`{name} >= 0` must hold and be finite, but got {name}={value!r}. {hint}")
    return number


def fraction(name: str, value: float, *, hint: str) -> float:
    """A number strictly between 0 and 1, or a ConfigError that says what it means."""
    number = _number(name, value)
    if not 0 < number < 1:
        raise ConfigError(f"`0 < {name} < 1` must hold, but got {name}={value!r}. {hint}")
    return number


def count(name: str, value: int, *, least: int = 1, hint: str) -> int:
    """A whole number of at least `least`, or a ConfigError that says what it means."""
    if isinstance(value, bool) or not isinstance(value, (int, Integral)) or value < least:  # True is one, too
        raise ConfigError(f"`{name}` must be a whole number >= {least}, but got {name}={value!r}. {hint}")
    return int(value)


def finite(name: str, value: Any, *, hint: str) -> float:
    """A finite number given at run time, or an InputError that says what it means."""
    # The usual case first: this runs on every decision and every reward.
    if type(value) is float and -LARGEST <= value <= LARGEST:
        return value
    try:
        number = _float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"`{name}` must be a number, but got {value!r}. {hint}") from None
    if not math.isfinite(number):
        raise InputError(f"`{name}` must be finite, but got {number}. {hint}")
    if abs(number) > LARGEST:
        raise InputError(f"`{name}` must lie within +-{LARGEST:g}, but got {number}. {hint}")
    return number


def _number(name: str, value: float) -> float:
    try:
        return _float(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"`{name}` must be a number, but got {name}={value!r}.") from None


def _float(value: Any) -> float:
    if isinstance(value, (str, bytes, bytearray)):  # which float() would read: a column that nobody converted
        raise TypeError
    return float(value)


def precisely(share: float) -> str:
    """A share in percent, with as many digits as tell it from 1: nothing is 100% certain.

    >>> precisely(0.95), precisely(0.999), precisely(0.99999)
    ('95%', '99.9%', '99.999%')
    """
    apart = abs(1.0 - share)
    digits = max(2, math.ceil(-math.log10(apart)) - 1) if apart else 2
    return f"{100 * share:.{digits}f}".rstrip("0").rstrip(".") + "%"
