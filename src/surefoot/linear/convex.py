"""Convex programs, solved by Clarabel: linear ones, and second-order cone programs.

`minimise` finds the least <theta, q> over sets ||F (theta - center)|| <= 1 and inequalities <theta, normal> >= level.
Its dual is a split of q: a piece for each set, a weight for each inequality. How accurate the solver was does not
matter to a caller who computes the bound from the split.

`maximise` finds the largest <direction, x> where matrix x <= limits. An interior-point solver stops close to the
optimum; which inequalities bind it knows long before, and solving those as equations leaves only rounding errors.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

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


ACCURATE = 1e-9  # how far, relative to the limits, an answer may violate one or its value be off the dual's

LARGEST = 1e100  # of a dual's weight: where there is no answer they may be of any size, or NaN


class Solution(NamedTuple):
    """The best point, or why there is none."""

    status: Literal["solved", "empty", "unbounded", "failed"]
    x: Vector
    solver_status: str


def maximise(direction: Vector, matrix: Matrix, limits: Vector, *, equalities: int = 0) -> Solution:
    """Solve the program; the first `equalities` rows hold as equations.

    An answer counts as solved where its constraints and the dual's value say so, whatever the solver thinks of it.

    Examples
    --------
    >>> maximise(np.array([1.0, 2.0]), np.array([[1.0, 1.0], [0.0, 1.0], [-1.0, 0.0]]), np.array([3.0, 1.0, 0.0])).x
    array([2., 1.])
    >>> maximise(np.array([1.0]), np.array([[-1.0]]), np.array([0.0])).status
    'unbounded'
    """
    # Rows of length 1, limits and direction around 1: tolerances then mean the same at every scale.
    lengths = np.linalg.norm(matrix, axis=1)
    lengths[lengths == 0.0] = 1.0
    size = float(np.abs(limits / lengths).max()) or 1.0
    steepness = float(np.linalg.norm(direction)) or 1.0
    rows, levels = matrix / lengths[:, None], limits / lengths / size
    answer = _solve(direction / steepness, rows, levels, equalities)
    # A ray that goes up says nothing of whether there is a point to start from, and a narrow miss puzzles the solver.
    if answer.status != "solved" and _least_excess(rows, levels, equalities) > ACCURATE:
        return answer._replace(status="empty")
    if answer.status == "failed":
        levels[equalities:] += ACCURATE
        answer = _solve(direction / steepness, rows, levels, equalities)
    return answer._replace(x=size * answer.x)


def _solve(direction: Vector, matrix: Matrix, limits: Vector, equalities: int) -> Solution:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    cones = [clarabel.ZeroConeT(equalities)] if equalities else []
    if len(limits) > equalities:
        cones.append(clarabel.NonnegativeConeT(len(limits) - equalities))
    d = direction.size
    problem = clarabel.DefaultSolver(
        SparseColumns(np.zeros((d, d))), -direction, SparseColumns(matrix), limits, cones, settings
    )
    solution = problem.solve()
    x, weights = np.array(solution.x), np.array(solution.z)
    status = str(solution.status)
    if solution.status == clarabel.SolverStatus.PrimalInfeasible:
        return Solution("empty", x, status)
    if solution.status == clarabel.SolverStatus.DualInfeasible:
        return Solution("unbounded", x, status)
    binding = weights > np.array(solution.s)
    binding[:equalities] = True
    for point in (_on(matrix[binding], limits[binding], x), x):
        if _is_optimal(point, weights, direction, matrix, limits, equalities):
            return Solution("solved", point, status)
    return Solution("failed", x, status)


def _least_excess(matrix: Matrix, limits: Vector, equalities: int) -> float:
    """By how much the best of all points violates some constraint; -1 where it need not come close to one."""
    both = np.vstack([matrix, -matrix[:equalities]])
    # The excess is a further unknown, taken off every row and at least -1, so that this program has a solution.
    rows = np.block([[both, -np.ones((len(both), 1))], [np.zeros(matrix.shape[1]), -1.0]])
    levels = np.concatenate([limits, -limits[:equalities], [1.0]])
    least = np.append(np.zeros(matrix.shape[1]), -1.0)
    return float(_solve(least, rows, levels, 0).x[-1])


def _on(rows: Matrix, levels: Vector, x: Vector) -> Vector:
    """The point nearest to x where all of these rows are equations."""
    return x + np.asarray(np.linalg.lstsq(rows, levels - rows @ x)[0], dtype=np.float64)


def _is_optimal(x: Vector, weights: Vector, direction: Vector, matrix: Matrix, limits: Vector, equalities: int) -> bool:
    """Whether x satisfies every constraint, and the dual shows that no other point is better."""
    if not np.abs(weights).max() <= LARGEST:
        return False
    excess = matrix @ x - limits
    excess[:equalities] = np.abs(excess[:equalities])
    missed = np.linalg.norm(matrix.T @ weights - direction) / (1.0 + np.linalg.norm(weights))
    off = abs(float(direction @ x - limits @ weights))
    scale = 1.0 + float(np.linalg.norm(x))
    return bool(excess.max() <= ACCURATE * scale and missed <= ACCURATE and off <= ACCURATE * scale)
