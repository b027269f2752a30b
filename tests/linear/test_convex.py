"""Linear programs against SciPy's simplex method, which shares no code with them."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csc_matrix

from surefoot.arrays import Matrix, Vector
from surefoot.linear.convex import SparseColumns, maximise


def boxed(dim: int, cuts: int, rng: np.random.Generator, *, whole: bool) -> tuple[Matrix, Vector]:
    """A box and a few cuts, some of which leave no point; whole numbers make vertices where many planes meet."""
    normals, levels = rng.normal(size=(cuts, dim)), rng.normal(size=cuts) + rng.choice([0.0, 1.0, 3.0])
    if whole:
        normals, levels = np.round(normals), np.round(levels)
    return np.vstack([normals, np.eye(dim), -np.eye(dim)]), np.append(levels, np.full(2 * dim, 2.0))


@pytest.mark.parametrize("scale", [1e-9, 0.3, 1e7])
@pytest.mark.parametrize("whole", [False, True])
def test_it_finds_the_best_point_or_that_there_is_none(scale: float, whole: bool) -> None:
    rng = np.random.default_rng(3)
    statuses = []
    for _ in range(150):
        dim = int(rng.integers(1, 12))
        matrix, limits = boxed(dim, int(rng.integers(1, 2 * dim + 2)), rng, whole=whole)
        direction = rng.normal(size=dim)
        expected = linprog(-direction, A_ub=matrix, b_ub=limits, bounds=(None, None))
        found = maximise(2.5 * direction, matrix, scale * limits)
        statuses.append(found.status)
        assert found.status == {0: "solved", 2: "empty"}[expected.status]
        if found.status == "solved":
            x = found.x / scale
            assert direction @ x == pytest.approx(-expected.fun, rel=1e-12, abs=1e-12)
            assert (matrix @ x <= limits + 1e-12).all()
    assert {"solved", "empty"} == set(statuses)


def test_equations_hold_as_such() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        matrix, limits = boxed(5, 4, rng, whole=False)
        direction = rng.normal(size=5)
        expected = linprog(
            -direction, A_ub=matrix[2:], b_ub=limits[2:], A_eq=matrix[:2], b_eq=limits[:2], bounds=(None, None)
        )
        found = maximise(direction, matrix, limits, equalities=2)
        assert found.status == {0: "solved", 2: "empty"}[expected.status]
        if found.status == "solved":
            np.testing.assert_allclose(matrix[:2] @ found.x, limits[:2], rtol=1e-12, atol=1e-12)
            assert direction @ found.x == pytest.approx(-expected.fun, rel=1e-12, abs=1e-12)


def test_a_ray_is_unbounded_only_where_it_starts_from_a_point() -> None:
    up, strip = np.array([0.0, 1.0]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert maximise(up, strip, np.array([1.0, 1.0])).status == "unbounded"
    assert maximise(up, strip, np.array([-1.0, -1.0])).status == "empty"
    assert maximise(up, strip, np.array([0.0, -1e-8])).status == "empty"


def test_limits_that_miss_each_other_by_rounding_still_have_a_point() -> None:
    rng = np.random.default_rng(6)
    for missed in (0.0, 1e-16, 1e-13, 1e-10):
        for _ in range(20):
            normal, x = rng.normal(size=4), rng.uniform(-0.3, 0.3, size=4)
            matrix = np.vstack([normal, -normal, np.eye(4), -np.eye(4)])
            limits = np.concatenate([[normal @ x, -(normal @ x) - missed], np.ones(8)])
            found = maximise(rng.normal(size=4), matrix, limits)
            assert found.status == "solved"
            assert (matrix @ found.x <= limits + 1e-8).all()


def test_the_solvers_matrices_are_as_scipys() -> None:
    rng = np.random.default_rng(5)
    for shape in ((3, 4), (1, 6), (5, 1), (4, 4)):
        dense = rng.normal(size=shape) * (rng.random(shape) < 0.4)
        ours, theirs = SparseColumns(dense), csc_matrix(dense)
        assert ours.data.tolist() == theirs.data.tolist()
        assert ours.indices.tolist() == theirs.indices.tolist()
        assert ours.indptr.tolist() == theirs.indptr.tolist()
        assert all(a <= b for a, b in pairwise(ours.indptr.tolist()))
        assert ours.shape == theirs.shape
