"""The array types of the package, and the checks that every number passes once, where it enters."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import InputError
from surefoot.scalars import LARGEST as LARGEST
from surefoot.scalars import count as count
from surefoot.scalars import finite as finite
from surefoot.scalars import fraction as fraction
from surefoot.scalars import nonnegative as nonnegative
from surefoot.scalars import positive as positive

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]

_FLOAT64 = np.dtype(np.float64)


def real_array(name: str, values: ArrayLike, *, ndim: int) -> NDArray[np.float64]:
    """A float64 array of `ndim` dimensions that the core can take, not yet checked for finiteness."""
    # The usual case first: this runs on every decision.
    if (
        type(values) is np.ndarray
        and values.dtype is _FLOAT64
        and values.ndim == ndim
        and values.flags.c_contiguous
        and values.flags.aligned
    ):
        return values
    try:
        if np.asarray(values).dtype.kind in "SU":  # NumPy would read numbers from text that nobody converted
            raise TypeError("its entries are text")
        array = np.require(values, dtype=np.float64, requirements=["C", "A"])
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
