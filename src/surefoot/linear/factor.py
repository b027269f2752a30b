"""Triangular factors: V = L L^T, the inverse of L, and how much the two amplify rounding."""

import math

import numpy as np

from surefoot.arrays import Matrix
from surefoot.compiled import compiled_apart, compiled_large, compiled_sum


@compiled_sum
def cholesky(gram: Matrix, lower: Matrix) -> bool:
    """Write L into `lower`; false where V is not positive definite in floating point."""
    for j in range(gram.shape[0]):
        for i in range(j, gram.shape[0]):
            entry = gram[i, j]
            for k in range(j):
                entry -= lower[i, k] * lower[j, k]
            if i == j:
                if not entry > 0.0:  # NaN fails as well
                    return False
                lower[j, j] = np.sqrt(entry)
            else:
                lower[i, j] = entry / lower[j, j]
    return True


@compiled_apart
def invert(lower: Matrix, inverse: Matrix) -> None:
    """Write the inverse of L into `inverse`, which must be zero."""
    for i in range(lower.shape[0]):
        # The innermost loop runs along rows, which lie in memory in one piece.
        for k in range(i):
            for j in range(k + 1):
                inverse[i, j] -= lower[i, k] * inverse[k, j]
        for j in range(i):
            inverse[i, j] /= lower[i, i]
        inverse[i, i] = 1.0 / lower[i, i]


@compiled_large
def condition(inverse: Matrix, lower: Matrix) -> float:
    """A bound on the spectral norm of |M||L|: the root of its largest row sum times its largest column sum."""
    d = lower.shape[0]
    rows, columns = np.zeros(d), np.zeros(d)  # row sums of |L|, column sums of |M|; in loops, which compile quickly
    for i in range(d):
        for j in range(i + 1):
            rows[i] += abs(lower[i, j])
            columns[j] += abs(inverse[i, j])
    most_row, most_column = 0.0, 0.0
    for i in range(d):
        row, column = 0.0, 0.0
        for j in range(i + 1):
            row += abs(inverse[i, j]) * rows[j]
        for j in range(i, d):
            column += columns[j] * abs(lower[j, i])
        most_row, most_column = max(most_row, row), max(most_column, column)
    return math.sqrt(most_row * most_column)
