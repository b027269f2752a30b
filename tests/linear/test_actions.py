"""Action sets against dense sampling, multi-start search, and vertices by Qhull or by hand."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import HalfspaceIntersection

from surefoot.arrays import Matrix, Vector
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.linear.actions import ActionSet, Catalogue, EuclideanBall, Polytope, RowSet, Vertices
from surefoot.linear.ellipsoid import Ball, Ellipsoid


def some_ellipsoid(dim: int, rng: np.random.Generator, *, away: float = 1.0) -> Ellipsoid:
    root = rng.normal(size=(dim, dim + 1))
    whitener = np.linalg.cholesky(root @ root.T + 0.01 * np.eye(dim)) * 10.0 ** rng.uniform(-1, 0.5)
    return Ellipsoid(center=away * rng.normal(size=dim), whitener=whitener, radius=0.7, observations=3)


def uppers(points: Matrix, known: Ball | Ellipsoid) -> Vector:
    """max <theta, x> over the set, for every row x, in numpy."""
    if isinstance(known, Ball):
        return np.asarray(known.radius * np.linalg.norm(points, axis=1))
    return np.asarray(points @ known.center + known.radius * np.linalg.norm(points @ known.whitener.T, axis=1))


# ---------------------------------------------------------------------------------- Euclidean ball


def searched(ball: EuclideanBall, known: Ellipsoid, rng: np.random.Generator, *, starts: int = 60) -> float:
    """The best of many local searches over the sphere: each moves to the maximiser of the tangent until it stays."""
    dim = ball.center.size
    units = np.vstack([rng.normal(size=(starts, dim)), np.eye(dim), -np.eye(dim)])
    precision = known.whitener.T @ known.whitener
    for _ in range(2000):
        points = ball.center + ball.radius * units / np.linalg.norm(units, axis=1, keepdims=True)
        lengths = np.linalg.norm(points @ known.whitener.T, axis=1, keepdims=True)
        moved = known.center + known.radius * (points @ precision) / np.maximum(lengths, 1e-300)
        if np.allclose(moved, units, rtol=1e-15, atol=0.0):
            break
        units = moved
    points = ball.center + ball.radius * units / np.linalg.norm(units, axis=1, keepdims=True)
    return float(uppers(points, known).max())


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_centered_ball_is_solved_exactly(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for away in (0.0, 1e-8, 0.1, 1.0, 10.0) * 4:
        ball = EuclideanBall(center=np.zeros(dim), radius=2.5)
        known = some_ellipsoid(dim, rng, away=away)
        best = ball.optimistic(known)
        assert best.gap == 0.0
        assert best.method == "trust region"
        assert best.upper == known.upper(best.features)
        assert np.linalg.norm(best.features) == pytest.approx(2.5, rel=1e-12)
        assert searched(ball, known, rng) <= best.upper + 1e-9


def test_a_centered_ball_under_a_round_set_around_zero_has_no_best_direction_and_still_an_optimum() -> None:
    known = Ellipsoid(center=np.zeros(3), whitener=0.5 * np.eye(3), radius=2.0, observations=1)
    best = EuclideanBall(center=np.zeros(3), radius=0.3).optimistic(known)
    assert best.upper == pytest.approx(0.3 * 2.0 * 0.5, rel=1e-12)
    assert best.gap == 0.0


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_ball_anywhere_is_never_beaten_by_a_search(dim: int) -> None:
    rng = np.random.default_rng(10 + dim)
    for shift in (1e-6, 0.1, 1.0, 10.0) * 2:
        ball = EuclideanBall(center=shift * rng.normal(size=dim), radius=10.0 ** rng.uniform(-1, 1))
        known = some_ellipsoid(dim, rng, away=10.0 ** rng.uniform(-2, 1))
        best = ball.optimistic(known)
        assert np.linalg.norm(best.features - ball.center) == pytest.approx(ball.radius, rel=1e-9)
        assert best.upper == known.upper(best.features)
        assert best.gap >= 0.0
        assert searched(ball, known, rng) <= best.upper + 1e-9 * max(1.0, best.upper)


def test_a_ball_in_the_plane_is_never_beaten_by_a_dense_sample() -> None:
    rng = np.random.default_rng(20)
    angles = np.linspace(0.0, 2 * math.pi, 20_000)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for shift in (0.0, 0.3, 3.0) * 4:
        ball = EuclideanBall(center=shift * rng.normal(size=2), radius=1.7)
        known = some_ellipsoid(2, rng)
        values = uppers(ball.center + ball.radius * circle, known)
        best = ball.optimistic(known)
        assert values.max() <= best.upper + 1e-12
        assert best.upper - values.max() < 1e-5 * best.upper


def two_peaks(dim: int, rng: np.random.Generator) -> tuple[EuclideanBall, Ellipsoid]:
    """A thin ellipsoid, and a ball shifted so that the two ends of the ellipsoid are almost equally good."""
    axis = rng.normal(size=dim)
    axis /= np.linalg.norm(axis)
    gram = 1e6 * np.eye(dim) - (1e6 - 1.0) * np.outer(axis, axis)  # length 1 along the axis, 1e-3 across
    whitener = np.asarray(np.linalg.inv(np.linalg.cholesky(gram)), dtype=np.float64)
    center, radius, size = rng.normal(size=dim), 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-1, 1)
    difference = np.linalg.norm(center - radius * axis) - np.linalg.norm(center + radius * axis)
    along = size * difference / (2 * radius) * (1 + 0.01 * rng.normal())
    shift = rng.normal(size=dim)
    shift += axis * (along - shift @ axis)
    known = Ellipsoid(center=center, whitener=whitener, radius=radius, observations=1)
    return EuclideanBall(center=shift, radius=size), known


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_what_the_optimum_of_a_ball_misses_is_within_its_gap(dim: int) -> None:
    rng = np.random.default_rng(30 + dim)
    gaps = []
    for _ in range(6):
        ball, known = two_peaks(dim, rng)
        best = ball.optimistic(known)
        gaps.append(best.gap)
        assert searched(ball, known, rng, starts=30) <= best.upper + best.gap + 1e-9
    assert max(gaps) > 1e-3  # or this was not the hard case


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_of_two_almost_equal_ends_the_ball_takes_the_better(dim: int) -> None:
    rng = np.random.default_rng(40 + dim)
    for _ in range(12):
        ball, known = two_peaks(dim, rng)
        best = ball.optimistic(known)
        assert searched(ball, known, rng, starts=10) <= best.upper + 1e-9 * max(1.0, best.upper)


@pytest.mark.parametrize("center", [[0.0, 0.0], [3.0, -4.0]])
def test_before_any_data_the_best_of_a_ball_is_its_longest_point(center: list[float]) -> None:
    ball = EuclideanBall(center=center, radius=2.0)
    best = ball.optimistic(Ball(0.3))
    assert np.linalg.norm(best.features) == pytest.approx(np.linalg.norm(center) + 2.0)
    assert best.upper == pytest.approx(0.3 * (np.linalg.norm(center) + 2.0), rel=1e-14)
    assert best.gap == 0.0
    assert ball.contains(best.features)


def test_a_ball_contains_what_is_within_its_radius() -> None:
    ball = EuclideanBall(center=[3.0, 4.0], radius=0.5)
    assert ball.contains(np.array([3.0, 4.5]))
    assert ball.contains(np.array([3.3, 4.4]))
    assert not ball.contains(np.array([3.3, 4.41]))
    assert ball.longest == pytest.approx(5.5)


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_a_ball_without_a_size_is_refused(radius: float) -> None:
    with pytest.raises(ConfigError, match="`radius > 0` must hold and be finite"):
        EuclideanBall(center=[0.0, 0.0], radius=radius)


def test_a_ball_around_a_point_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match=r"`center` must be finite, but entry \(1,\) is nan"):
        EuclideanBall(center=[0.0, math.nan], radius=1.0)


# ---------------------------------------------------------------------------------- rows and vertices


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_best_of_some_rows_is_the_one_with_the_largest_upper_bound(dim: int) -> None:
    rng = np.random.default_rng(50 + dim)
    for _ in range(20):
        rows = rng.normal(size=(8, dim))
        for known in (Ball(1.3), some_ellipsoid(dim, rng)):
            best = RowSet(rows).optimistic(known)
            assert best.features.tolist() == rows[int(np.argmax(uppers(rows, known)))].tolist()
            assert best.upper == pytest.approx(uppers(rows, known).max(), rel=1e-12)
            assert RowSet(np.vstack([rows, rows])).optimistic(known).upper == best.upper


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_no_mixture_of_vertices_beats_the_best_vertex(dim: int) -> None:
    rng = np.random.default_rng(60 + dim)
    for _ in range(10):
        corners = rng.normal(size=(7, dim))
        mixtures = rng.dirichlet(np.full(7, 0.3), size=5000) @ corners
        for known in (Ball(1.3), some_ellipsoid(dim, rng)):
            best = Vertices(corners).optimistic(known)
            assert uppers(mixtures, known).max() <= best.upper + 1e-12
            assert best.upper == pytest.approx(uppers(corners, known).max(), rel=1e-12)
            assert best.method == "vertices"
            assert best.gap == 0.0


@pytest.mark.parametrize("scale", [1e-8, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9])
def test_vertices_contain_their_mixtures_and_nothing_visibly_outside(scale: float) -> None:
    square = Vertices(scale * np.array([[4.0, 4.0], [4.0, 2.0], [2.0, 4.0], [2.0, 2.0]]))
    for inside in ([3.0, 3.0], [4.0, 4.0], [2.0, 3.0], [3.9, 2.1]):
        assert square.contains(scale * np.array(inside))
    for outside in ([4.001, 3.0], [1.999, 1.999], [0.0, 0.0], [40.0, 3.0], [3.0, 4.1]):
        assert not square.contains(scale * np.array(outside))


def test_rows_contain_themselves_only() -> None:
    rows = RowSet([[1.0, 2.0], [0.1, 0.2]])
    assert rows.contains(np.array([0.1, 0.2]))
    assert not rows.contains(np.array([0.1, 0.2 + 1e-12]))
    assert not rows.contains(np.array([1.0, 0.2]))
    assert rows.longest == pytest.approx(math.sqrt(5.0))


@pytest.mark.parametrize("kind", [RowSet, Catalogue, Vertices])
def test_rows_that_are_no_rows_are_refused(kind: type[RowSet] | type[Vertices]) -> None:
    with pytest.raises(
        InputError, match=r"`rows` must hold at least one action and one feature, but got shape \(0, 2\)"
    ):
        kind(np.zeros((0, 2)))
    with pytest.raises(InputError, match=r"`rows` must be finite, but entry \(1, 0\) is inf"):
        kind([[1.0], [math.inf]])
    with pytest.raises(InputError, match=r"`rows` must have 2 dimension\(s\), but got shape \(3,\)"):
        kind([1.0, 2.0, 3.0])


# ---------------------------------------------------------------------------------- polytopes


def random_polytope(dim: int, faces: int, rng: np.random.Generator) -> tuple[Matrix, Vector]:
    """A box cut by random planes around the origin."""
    planes = rng.normal(size=(faces - 2 * dim, dim))
    planes /= np.linalg.norm(planes, axis=1, keepdims=True)
    matrix = np.vstack([np.eye(dim), -np.eye(dim), planes])
    return matrix, np.concatenate([np.full(2 * dim, 2.0), rng.uniform(0.5, 2.0, size=len(planes))])


def corners_of(matrix: Matrix, limits: Vector) -> Matrix:
    """All vertices, by Qhull around the origin."""
    return np.asarray(
        HalfspaceIntersection(np.hstack([matrix, -limits[:, None]]), np.zeros(matrix.shape[1])).intersections
    )


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize(("dim", "faces"), [(2, 12), (3, 14), (4, 13)])
def test_the_best_of_a_polytope_is_its_best_vertex(dim: int, faces: int, scale: float) -> None:
    rng = np.random.default_rng(70 + dim)
    for _ in range(2):
        matrix, limits = random_polytope(dim, faces, rng)
        corners = scale * corners_of(matrix, limits)
        polytope = Polytope(matrix=matrix, limits=scale * limits)
        assert polytope.longest == pytest.approx(np.linalg.norm(corners, axis=1).max(), rel=1e-9, abs=0.0)
        for known in (Ball(1.3), some_ellipsoid(dim, rng), some_ellipsoid(dim, rng)):
            best = polytope.optimistic(known)
            assert best.method == "vertex enumeration"
            assert best.gap == 0.0
            assert best.upper == pytest.approx(uppers(corners, known).max(), rel=1e-9, abs=0.0)
            assert best.upper == known.upper(best.features)
            assert polytope.contains(best.features)


def test_no_sampled_point_of_a_polytope_beats_its_optimum() -> None:
    rng = np.random.default_rng(75)
    for _ in range(4):
        matrix, limits = random_polytope(2, 9, rng)
        points = rng.uniform(-2, 2, size=(50_000, 2))
        points = points[(points @ matrix.T <= limits).all(axis=1)]
        known = some_ellipsoid(2, rng)
        best = Polytope(matrix=matrix, limits=limits).optimistic(known)
        assert uppers(points, known).max() <= best.upper + 1e-12
        assert best.upper - uppers(points, known).max() < 0.1


def test_a_polytope_of_one_dimension_is_an_interval() -> None:
    known = Ellipsoid(center=np.array([-1.0]), whitener=np.array([[1.0]]), radius=0.3, observations=1)
    best = Polytope(matrix=[[2.0], [-1.0]], limits=[5.0, 0.5]).optimistic(known)
    assert best.features.tolist() == [-0.5]
    assert best.upper == pytest.approx(0.5 + 0.15)


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("dim", [1, 3])
def test_the_vertices_of_a_box_are_exact_at_every_scale(dim: int, scale: float) -> None:
    size = scale / 3
    box = Polytope(matrix=np.vstack([np.eye(dim), -np.eye(dim)]), limits=np.full(2 * dim, size))
    rng = np.random.default_rng(dim)
    corners = size * np.array(list(itertools.product([1.0, -1.0], repeat=dim)))
    assert box.longest == pytest.approx(size * math.sqrt(dim), rel=1e-11, abs=0.0)
    for _ in range(3):
        known = some_ellipsoid(dim, rng)
        best = box.optimistic(known)
        assert best.upper == pytest.approx(uppers(corners, known).max(), rel=1e-11, abs=0.0)
        np.testing.assert_allclose(np.abs(best.features), size, rtol=1e-11)


def test_the_relaxation_is_an_upper_bound_within_its_gap() -> None:
    rng = np.random.default_rng(80)
    matrix, limits = random_polytope(4, 40, rng)  # 91,390 choices of four faces: too many to try
    corners = corners_of(matrix, limits)
    polytope = Polytope(matrix=matrix, limits=limits)
    assert polytope.longest >= np.linalg.norm(corners, axis=1).max()
    gaps = []
    sets: list[Ball | Ellipsoid] = [Ball(1.3), *(some_ellipsoid(4, rng) for _ in range(5))]
    for known in sets:
        best = polytope.optimistic(known)
        truth = float(uppers(corners, known).max())
        assert best.method == "l1 relaxation"
        assert best.upper == known.upper(best.features)
        assert polytope.contains(best.features)
        assert best.upper <= truth + 1e-9
        assert truth <= best.upper + best.gap + 1e-9
        gaps.append(best.gap)
    assert max(gaps) > 0.0


def test_a_polytope_contains_what_satisfies_every_inequality() -> None:
    triangle = Polytope(matrix=[[-1.0, 0.0], [0.0, -1.0], [1.0, 2.0]], limits=[0.0, 0.0, 3.0])
    for inside in ([0.0, 0.0], [3.0, 0.0], [1.0, 1.0], [0.5, 0.2]):
        assert triangle.contains(np.array(inside))
    for outside in ([-1e-6, 0.0], [1.0, 1.00001], [3.0, 3.0]):
        assert not triangle.contains(np.array(outside))


def test_a_polytope_may_be_flat_or_a_point() -> None:
    known = Ellipsoid(center=np.array([1.0, 2.0]), whitener=np.eye(2), radius=0.5, observations=1)
    box = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    segment = Polytope(matrix=[[1.0, 1.0], [-1.0, -1.0], *box], limits=[1.0, -1.0, 1.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(segment.optimistic(known).features, [0.0, 1.0], atol=1e-12)
    point = Polytope(matrix=box, limits=[0.3, 0.7, -0.3, -0.7])
    np.testing.assert_allclose(point.optimistic(known).features, [0.3, 0.7], rtol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "limits"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0]),
        ([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0]),
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 1.0]),
    ],
)
def test_an_unbounded_polytope_is_refused(matrix: list[list[float]], limits: list[float]) -> None:
    with pytest.raises(
        InputError, match=r"A polytope must be bounded, but this one is not\. Add limits, such as a box\."
    ):
        Polytope(matrix=matrix, limits=limits)


@pytest.mark.parametrize(
    ("matrix", "limits"),
    [
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [-1.0, -1.0, 1.0, 1.0]),
        ([[1.0, 0.0], [-1.0, 0.0]], [-1.0, -1.0]),
        ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [-1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_a_polytope_without_a_point_is_refused(matrix: list[list[float]], limits: list[float]) -> None:
    with pytest.raises(InputError, match="must have a solution, but no point satisfies it"):
        Polytope(matrix=matrix, limits=limits)


@pytest.mark.parametrize("gap", [1e-6, 1e-7, 1e-8])
def test_a_polytope_that_only_just_has_no_point_is_refused_for_that_reason(gap: float) -> None:
    with pytest.raises(InputError, match="must have a solution, but no point satisfies it"):
        Polytope(matrix=[[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], limits=[0.0, -gap, 1.0, 1.0])


def test_a_polytope_whose_parts_do_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="`matrix` and `limits` must have as many rows, but got 2 and 3"):
        Polytope(matrix=np.eye(2), limits=np.ones(3))
    for shape in ((3, 0), (0, 2)):
        with pytest.raises(InputError, match="`matrix` must hold at least one inequality"):
            Polytope(matrix=np.zeros(shape), limits=np.ones(shape[0]))


# ---------------------------------------------------------------------------------- in common


@pytest.mark.parametrize(
    "actions",
    [
        Catalogue([[3.0, 4.0], [1.0, 1.0]]),
        Vertices([[3.0, 4.0], [1.0, 1.0]]),
        EuclideanBall(center=[0.0, 2.0], radius=3.0),
        Polytope(matrix=[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], limits=[3.0, 4.0, 0.0, 0.0]),
    ],
    ids=lambda actions: type(actions).__name__,
)
def test_a_set_that_reaches_beyond_the_bound_is_refused_and_says_by_how_much(actions: ActionSet) -> None:
    actions.check_length(5.0)
    actions.check_length(5.1)
    with pytest.raises(AssumptionError) as caught:
        actions.check_length(4.75)
    assert str(caught.value) == (
        f"Every feature vector must satisfy `||phi|| <= feature_bound`, but this {type(actions).__name__} reaches "
        "length 5, which is 0.25 more than feature_bound=4.75. Rescale the features or declare a larger bound."
    )


def test_a_catalogue_is_known_by_its_numbers_and_its_shape() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    digest = Catalogue(rows).digest
    assert Catalogue(rows.tolist()).digest == digest
    assert Catalogue(np.asfortranarray(rows)).digest == digest
    others = [rows[::-1], rows.T, rows.reshape(1, 4), rows.reshape(4, 1), rows[:1], np.nextafter(rows, 9.0)]
    assert len({digest, *(Catalogue(other).digest for other in others)}) == 7


def test_a_catalogue_keeps_its_own_rows() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    catalogue = Catalogue(rows)
    rows[0, 0] = 9.0
    assert catalogue.rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert catalogue.columns.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert catalogue.columns.flags.c_contiguous
