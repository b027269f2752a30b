"""Sums over all rounds, kept with what rounding loses of them, so that a million terms leave no error behind."""

from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


class Sum:
    """A running sum of arrays or of numbers.  (Neumaier's, entry by entry)"""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self._total, self._lost = np.zeros(shape), np.zeros(shape)

    def add(self, term: Any) -> None:
        """Add one term."""
        both = self._total + term
        kept = both - self._total
        self._lost = self._lost + ((self._total - (both - kept)) + (term - kept))
        self._total = both

    @property
    def value(self) -> Any:
        """The sum."""
        return self._total + self._lost


class Total:
    """A running sum of numbers that may be infinite: one that is knows nothing, and stays so."""

    def __init__(self) -> None:
        self._sum, self._lost = 0.0, 0.0

    def add(self, term: float) -> None:
        """Add one number."""
        both = self._sum + term
        if abs(both) < float("inf"):
            kept = both - self._sum
            self._lost += (self._sum - (both - kept)) + (term - kept)
        self._sum = both

    @property
    def value(self) -> float:
        """The sum."""
        return self._sum + self._lost if abs(self._sum) < float("inf") else self._sum
