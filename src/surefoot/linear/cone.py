"""The least <theta, q> over sets ||F (theta - center)|| <= 1 and inequalities <theta, normal> >= level.

A second-order cone program, solved by Clarabel. Its dual is a split of q: a piece for each set, a weight for each
inequality. How accurate the solver was never matters to those who compute the bound from the split.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surefoot.arrays import Matrix, Vector

TOLERANCE = 1e-11


class SparseColumns:
    """A matrix by the entries of its columns that are not zero: what Clarabel asks of one of SciPy's.

    Parameters
    ----------
    matrix : ndarray of shape (rows, columns)
        The matrix, zeros included.

    Examples
    --------
    >>> SparseColumns(np.array([[0.0, 2.0], [3.0, 4.0]])).data
    array([3., 2., 4.])
    """

    has_canonical_format = True  # rows in order, each once

    def __init__(self, matrix: Matrix) -> None:
        columns, self.indices = np.nonzero(matrix.T)
        self.data: Vector = matrix[self.indices, columns]
        self.indptr = np.searchsorted(columns, np.arange(matrix.shape[1] + 1))
        self.shape = matrix.shape


class Minimum(NamedTuple):
    """The minimiser, each set's piece of q, each inequality's weight; whether no theta satisfies all of them."""

    theta: Vector
    pieces: list[Vector]
    weights: Vector
    is_empty: bool
    status: str


def minimise(
    q: Vector,
    factors: Sequence[Vector],
    centers: Sequence[Vector],
    normals: Sequence[Vector] = (),
    levels: Sequence[float] = (),
) -> Minimum:
    """Solve the program; q should be of length 1 or so."""
    # Here, since only CLUCB2's nested sets and exact proofs need it.
    import clarabel

    d = q.size
    # Clarabel asks that limits - rows x lie in the cone: here (1, F (x - center)), and <x, normal> - level.
    rows = [np.vstack([np.zeros((1, d)), -factor]) for factor in factors] + [-normal[None] for normal in normals]
    limits = [np.concatenate([[1.0], -factor @ center]) for factor, center in zip(factors, centers, strict=True)]
    limits += [np.array([-level]) for level in levels]
    cones = [clarabel.SecondOrderConeT(d + 1)] * len(factors)
    if normals:
        cones.append(clarabel.NonnegativeConeT(len(normals)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    problem = clarabel.DefaultSolver(
        SparseColumns(np.zeros((d, d))), q, SparseColumns(np.vstack(rows)), np.concatenate(limits), cones, settings
    )
    solution = problem.solve()
    # In the order of the cones: d + 1 numbers per set, of which the first only bounds the others' length.
    duals = np.array(solution.z)
    of_sets = duals[: len(factors) * (d + 1)].reshape(-1, d + 1)
    pieces = [factor.T @ dual[1:] for factor, dual in zip(factors, of_sets, strict=True)]
    is_empty = solution.status == clarabel.SolverStatus.PrimalInfeasible
    return Minimum(np.array(solution.x), pieces, duals[of_sets.size :], is_empty, str(solution.status))
