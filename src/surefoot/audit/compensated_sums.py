"""Sums over all rounds, kept with what rounding loses of them, so that a million terms leave no error behind."""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


class CompensatedSum:
    """A running sum of arrays or of numbers.  (Neumaier's, entry by entry)"""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self._total, self._lost = np.zeros(shape), np.zeros(shape)

    def add(self, term: Any) -> None:
        """Add one term."""
        both = self._total + term
        kept = both - self._total
        self._lost = self._lost + ((self._total - (both - kept)) + (term - kept))
        self._total = both

    def add_product(self, x: Any, y: Any) -> None:
        """Add a product, with what its own rounding loses.  (Dekker, with Veltkamp's splitting)"""
        product = x * y
        x_high, y_high = _upper_half(x), _upper_half(y)
        x_low, y_low = x - x_high, y - y_high
        self.add(product)
        self._lost = self._lost + (((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low)

    @property
    def value(self) -> Any:
        """The sum."""
        return self._total + self._lost

    @property
    def parts(self) -> tuple[Any, Any]:
        """The sum as two numbers whose sum it is, to twice the digits."""
        return self._total, self._lost


def _upper_half(x: Any) -> Any:
    # 2^27 + 1 halves the 53 bits, so that products of the halves are exact.
    shifted = 134217729.0 * x
    return shifted - (shifted - x)


class UnboundedSum:
    """A running sum of numbers that may be infinite: one that is knows nothing, and stays so."""

    def __init__(self) -> None:
        self._sum, self._lost = 0.0, 0.0

    def add(self, term: float) -> None:
        """Add one number."""
        both = self._sum + term
        # inf - inf would be NaN, and of an infinite sum nothing is lost.
        if abs(both) < float("inf"):
            kept = both - self._sum
            self._lost += (self._sum - (both - kept)) + (term - kept)
        self._sum = both

    def take_back(self, term: float) -> None:
        """Undo an addition; of an infinite sum nothing can be taken back, and it goes on saying nothing."""
        if abs(term) < float("inf"):
            self.add(-term)

    @property
    def value(self) -> float:
        """The sum."""
        return self._sum + self._lost if abs(self._sum) < float("inf") else self._sum


@dataclass(frozen=True, slots=True)
class ExactNumbers:
    """Numbers without any rounding: whole ones, of which the last `bits` binary digits stand behind the point."""

    parts: list[int]
    bits: int

    def __add__(self, other: "ExactNumbers") -> "ExactNumbers":
        bits = max(self.bits, other.bits)
        ours, theirs = bits - self.bits, bits - other.bits
        return ExactNumbers([(a << ours) + (b << theirs) for a, b in zip(self.parts, other.parts, strict=True)], bits)

    def __matmul__(self, other: "ExactNumbers") -> float:
        """The inner product, rounded once."""
        total: int = sum(map(operator.mul, self.parts, other.parts))
        return total / (1 << self.bits + other.bits)

    def turned(self, matrix: "ExactNumbers") -> "ExactNumbers":
        """Minus a matrix, row after row, times this vector."""
        size = len(self.parts)
        rows = (matrix.parts[at : at + size] for at in range(0, size * size, size))
        return ExactNumbers([-sum(map(operator.mul, row, self.parts)) for row in rows], matrix.bits + self.bits)

    def floats(self) -> Vector:
        """The nearest floats."""
        return np.array([part / (1 << self.bits) for part in self.parts])


def whole(numbers: Vector) -> ExactNumbers:
    """Floats as they are."""
    ratios = [number.as_integer_ratio() for number in numbers.tolist()]
    bits = max((bottom.bit_length() for _, bottom in ratios), default=1)
    return ExactNumbers([top << bits - bottom.bit_length() for top, bottom in ratios], bits - 1)
