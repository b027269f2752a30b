"""Linear programs: the largest <direction, x> where matrix x <= limits, solved by Clarabel.

An interior-point solver stops close to the optimum. Which inequalities bind it knows long before, and solving those
leaves an error of rounding only.
"""

from typing import Literal, NamedTuple

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.linear.cone import TOLERANCE, SparseColumns

ACCURATE = 1e-9  # how far, relative to the limits, an answer may violate one or its value be off the dual's

LARGEST = 1e100  # of a dual's weight: where there is no answer they may be of any size, or NaN


class Answer(NamedTuple):
    """The best point, or why there is none."""

    status: Literal["solved", "empty", "unbounded", "failed"]
    x: Vector
    solver_status: str


def maximise(direction: Vector, matrix: Matrix, limits: Vector, *, equalities: int = 0) -> Answer:
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
    found = _solve(direction / steepness, rows, levels, equalities)
    # A ray that goes up says nothing of whether there is a point to start from, and a narrow miss puzzles the solver.
    if found.status != "solved" and _least_excess(rows, levels, equalities) > ACCURATE:
        return found._replace(status="empty")
    if found.status == "failed":
        levels[equalities:] += ACCURATE
        found = _solve(direction / steepness, rows, levels, equalities)
    return found._replace(x=size * found.x)


def _solve(direction: Vector, matrix: Matrix, limits: Vector, equalities: int) -> Answer:
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
    said = str(solution.status)
    if solution.status == clarabel.SolverStatus.PrimalInfeasible:
        return Answer("empty", x, said)
    if solution.status == clarabel.SolverStatus.DualInfeasible:
        return Answer("unbounded", x, said)
    binding = weights > np.array(solution.s)
    binding[:equalities] = True
    for point in (_on(matrix[binding], limits[binding], x), x):
        if _is_optimal(point, weights, direction, matrix, limits, equalities):
            return Answer("solved", point, said)
    return Answer("failed", x, said)


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
