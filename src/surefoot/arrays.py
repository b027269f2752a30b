"""The array types of the package, and the checks that every number passes once, where it enters."""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import ConfigError, InputError

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]

_FLOAT64 = np.dtype(np.float64)
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
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:  # True is an int
        raise ConfigError(f"`{name}` must be a whole number >= {least}, but got {name}={value!r}. {hint}")
    return int(value)


def finite(name: str, value: Any, *, hint: str) -> float:
    """A finite number given at run time, or an InputError that says what it means."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"`{name}` must be a number, but got {value!r}. {hint}") from None
    if not math.isfinite(number):
        raise InputError(f"`{name}` must be finite, but got {number}. {hint}")
    if abs(number) > LARGEST:
        raise InputError(f"`{name}` must lie within +-{LARGEST:g}, but got {number}. {hint}")
    return number


def real_array(name: str, values: ArrayLike, *, ndim: int) -> NDArray[np.float64]:
    """A float64 array of `ndim` dimensions that compiled code can take, not yet checked for finiteness."""
    # The usual case first: this runs on every decision.
    if type(values) is np.ndarray and values.dtype is _FLOAT64 and values.ndim == ndim and values.flags.carray:
        return values
    try:
        # Writeable, because numba would compile everything anew for a read-only array.
        array = np.require(values, dtype=np.float64, requirements=["C", "A", "W"])
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` must be an array of numbers, but could not be read as one: {error}.") from None
    if array.ndim != ndim or np.ndim(values) != ndim:
        raise InputError(f"`{name}` must have {ndim} dimension(s), but got shape {np.shape(values)}.")
    return array


def finite_array(name: str, values: ArrayLike, *, ndim: int) -> NDArray[np.float64]:
    """A C-contiguous float64 array of `ndim` dimensions in which every number is finite."""
    array = real_array(name, values, ndim=ndim)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"`{name}` must be finite, but entry {where} is {array[where]}. Drop or impute it first.")
    return array


def _number(name: str, value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"`{name}` must be a number, but got {name}={value!r}.") from None
