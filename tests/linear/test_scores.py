"""Scores of many rows against numpy row by row; the quick paths against the exact one."""

import math
from contextlib import nullcontext

import numpy as np
import pytest

from surefoot.arrays import Matrix, Vector
from surefoot.errors import AssumptionError
from surefoot.linear.actions import Catalogue
from surefoot.linear.radius import radius_of
from surefoot.linear.ridge import Ridge
from surefoot.linear.ridge_layout import SHORT
from surefoot.linear.scores import (
    LENGTH_TOLERANCE,
    SCREEN_FROM,
    first_bad_row,
    new_scores,
    optimistic,
    propose_new,
    screened,
)
from tests.linear.scoring import EPS, fresh, learned, scored, settings_with

# ---------------------------------------------------------------------------------- score_rows


@pytest.mark.parametrize("dim", [1, 2, 4, 5, SHORT - 1, SHORT, 50])
@pytest.mark.parametrize("ridge", [0.3, 2.5])
def test_scores_are_the_means_and_squared_widths_of_a_fresh_solve(dim: int, ridge: float) -> None:
    state = learned(dim, 3 * dim, seed=dim, ridge=ridge)
    rows = np.random.default_rng(1).normal(size=(17, dim))
    scores = scored(state, rows)
    means, squares = fresh(state, rows)
    np.testing.assert_allclose(scores[0], means, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(scores[1], squares, rtol=1e-10)


@pytest.mark.parametrize("dim", [1, 2, 50])
def test_before_any_observation_squares_are_plain_lengths(dim: int) -> None:
    rows = np.random.default_rng(2).normal(size=(6, dim))
    scores = scored(Ridge(dim=dim, ridge=0.3), rows)
    np.testing.assert_array_equal(scores[0], np.zeros(6))
    np.testing.assert_allclose(scores[1], (rows**2).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
@pytest.mark.parametrize("count", [0, 1, 80])
def test_the_optimistic_row_has_the_largest_upper_bound(dim: int, count: int) -> None:
    settings = settings_with()
    state = learned(dim, count, seed=dim)
    for seed in range(20):
        rows = np.random.default_rng(seed).normal(size=(9, dim))
        best, highest = optimistic(settings, state.buffer, scored(state, rows), radius_of(settings, state.buffer))
        if count == 0:
            uppers = 1.3 * np.linalg.norm(rows, axis=1)
        else:
            means, squares = fresh(state, rows)
            log_ratio = math.log((1 + (count + 1) * 100.0 / 0.3) / 0.01)
            uppers = means + (0.5 * math.sqrt(dim * log_ratio) + math.sqrt(0.3) * 1.3) * np.sqrt(squares)
        assert best == int(np.argmax(uppers))
        assert highest == pytest.approx(uppers.max(), rel=1e-10)


@pytest.mark.parametrize("dim", [2, 5, 13, 50, 64])
@pytest.mark.parametrize("count", [0, 30])
def test_the_first_of_equal_rows_is_the_optimistic_one(dim: int, count: int) -> None:
    settings = settings_with()
    state = learned(dim, count, seed=3)
    rng = np.random.default_rng(dim)
    for actions in (3, 7, 50, 130):
        rows = rng.normal(size=(actions, dim)) / math.sqrt(dim)
        best = int(optimistic(settings, state.buffer, scored(state, rows), radius_of(settings, state.buffer))[0])
        order = rng.permutation(3 * actions) % actions
        mixed = np.ascontiguousarray(rows[order])
        first = int(np.flatnonzero(order == best)[0])
        assert optimistic(settings, state.buffer, scored(state, mixed), radius_of(settings, state.buffer))[0] == first
        beta = radius_of(settings, state.buffer)
        assert propose_new(settings, state.buffer, mixed, new_scores(len(mixed)), beta)[0] == first


@pytest.mark.parametrize("dim", [1, 2, 4, 5, 12, 13, 50])
@pytest.mark.parametrize("copies", [3, 5, 67])
def test_copies_of_one_row_have_one_score_so_that_the_first_is_taken(dim: int, copies: int) -> None:
    settings = settings_with()
    state = learned(dim, 100, seed=7)
    for row in np.random.default_rng(dim).normal(size=(200, dim)):
        scores = scored(state, np.tile(row, (copies, 1)))
        assert (scores[:2] == scores[:2, :1]).all()
        assert optimistic(settings, state.buffer, scores, radius_of(settings, state.buffer))[0] == 0


# ---------------------------------------------------------------------------------- screened


def same_choice(settings: Vector, state: Ridge, rows: Matrix) -> None:
    """The quick path takes the row of the exact path; where rounding decides between two, one just as good."""
    scores = scored(state, rows)
    exact, highest = optimistic(settings, state.buffer, scores, radius_of(settings, state.buffer))
    quick, claimed = screened(settings, state.buffer, rows, radius_of(settings, state.buffer))
    uppers = scores[0] + radius_of(settings, state.buffer) * np.sqrt(scores[1])
    size = float(np.abs(scores[0]).max() + np.abs(uppers).max())
    if quick != exact:
        assert uppers[exact] - uppers[quick] <= 4 * (rows.shape[1] + 4) * EPS * size
    assert claimed == pytest.approx(highest, rel=1e-9)


@pytest.mark.parametrize("dim", [64, 65, 97])
def test_screening_takes_the_same_row_as_the_exact_path(dim: int) -> None:
    settings = settings_with(feature_bound=3.0)
    rng = np.random.default_rng(dim)
    for count in (1, 40, 200):
        state = learned(dim, count, seed=count)
        for _ in range(40):
            rows = rng.normal(size=(int(rng.integers(64, 300)), dim))
            rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) / 3.0)
            exact = optimistic(settings, state.buffer, scored(state, rows), radius_of(settings, state.buffer))
            quick = screened(settings, state.buffer, rows, radius_of(settings, state.buffer))
            assert quick[0] == exact[0]
            assert quick[1] == pytest.approx(exact[1], rel=1e-11)


@pytest.mark.parametrize("apart", [0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-5])
def test_screening_takes_the_same_row_among_near_ties(apart: float) -> None:
    settings = settings_with(feature_bound=3.0)
    rng = np.random.default_rng(7)
    state = learned(64, 100, seed=7)
    for _ in range(40):
        row = rng.normal(size=64)
        row *= 2.5 / np.linalg.norm(row)
        rows = row + apart * rng.normal(size=(128, 64))
        same_choice(settings, state, rows)


@pytest.mark.parametrize("copies", [67, 131])
@pytest.mark.parametrize("dim", [64, 65])
def test_screening_takes_the_first_of_many_copies(dim: int, copies: int) -> None:
    settings = settings_with(feature_bound=3.0)
    state = learned(dim, 100, seed=7)
    for row in np.random.default_rng(dim).normal(size=(200, dim)):
        rows = np.tile(row * (2.5 / np.linalg.norm(row)), (copies, 1))
        assert screened(settings, state.buffer, rows, radius_of(settings, state.buffer))[0] == 0


def test_screening_takes_the_first_of_duplicated_rows() -> None:
    settings = settings_with(feature_bound=3.0)
    rng = np.random.default_rng(8)
    state = learned(64, 100, seed=8)
    for _ in range(40):
        distinct = rng.normal(size=(20, 64))
        distinct *= 2.5 / np.linalg.norm(distinct, axis=1, keepdims=True)
        order = rng.integers(0, 20, size=200)
        rows = np.ascontiguousarray(distinct[order])
        best = screened(settings, state.buffer, rows, radius_of(settings, state.buffer))[0]
        assert best == np.flatnonzero(order == order[best])[0]
        same_choice(settings, state, rows)


@pytest.mark.parametrize("spread", [2, 4, 6])
@pytest.mark.parametrize("ridge", [0.3, 1e-6])
def test_screening_takes_the_same_row_for_badly_scaled_features(spread: int, ridge: float) -> None:
    scale = 10.0 ** np.linspace(-spread, spread, 64)
    rng = np.random.default_rng(spread)
    state = learned(64, 150, seed=9, ridge=ridge, scale=scale)
    for _ in range(40):
        rows = rng.normal(size=(100, 64)) * scale
        settings = settings_with(feature_bound=float(np.linalg.norm(rows, axis=1).max()) * 1.01, ridge=ridge)
        same_choice(settings, state, rows)


def test_screening_survives_a_bound_far_above_the_rows_and_one_long_row() -> None:
    rng = np.random.default_rng(11)
    state = learned(64, 150, seed=10)
    for bound in (1e3, 1e12, 1e30):
        rows = rng.normal(size=(100, 64))
        same_choice(settings_with(feature_bound=bound), state, rows)
        rows[17] *= 50.0
        assert (
            screened(
                settings_with(feature_bound=bound),
                state.buffer,
                rows,
                radius_of(settings_with(feature_bound=bound), state.buffer),
            )[0]
            == 17
        )


# ---------------------------------------------------------------------------------- propose


@pytest.mark.parametrize("dim", [2, SCREEN_FROM])
@pytest.mark.parametrize("count", [0, 50])
def test_the_best_row_is_taken_whatever_the_path(dim: int, count: int) -> None:
    settings = settings_with(feature_bound=4.0)
    state = learned(dim, count, seed=5)
    rows = np.random.default_rng(6).normal(size=(SCREEN_FROM + 3, dim))
    rows *= 3.9 / np.linalg.norm(rows, axis=1).max()
    scores = scored(state, rows)
    expected = optimistic(settings, state.buffer, scores, radius_of(settings, state.buffer))
    beta = radius_of(settings, state.buffer)
    row, upper = propose_new(settings, state.buffer, rows, np.zeros_like(scores), beta)
    assert row == expected[0]
    assert upper == pytest.approx(expected[1], rel=1e-12)


def test_a_proposal_names_the_row_that_breaks_the_bound() -> None:
    state = learned(2, 5, seed=5)
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    assert propose_new(settings_with(), state.buffer, rows, new_scores(3), 1.0)[0] == -1 - 2


# ---------------------------------------------------------------------------------- first_bad_row


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 10.1, -1e200, 10 * (1 + 1e-11)])
def test_the_first_bad_row_is_found(dim: int, bad: float) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(9, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert first_bad_row(rows, 10.0) == -1
    for place in (4, 8):
        spoiled = rows.copy()
        spoiled[place] = 0.0
        spoiled[place, dim - 1] = bad
        assert first_bad_row(spoiled, 10.0) == place
        spoiled[2, 0] = math.nan
        assert first_bad_row(spoiled, 10.0) == 2


@pytest.mark.parametrize("bound", [1e-100, 0.3, 1.0, math.sqrt(2), 1e100])
@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_a_row_of_exactly_the_bound_is_good_and_a_visibly_longer_one_bad(dim: int, bound: float) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(40, dim))
    rows *= bound / np.linalg.norm(rows, axis=1, keepdims=True)
    assert first_bad_row(rows, bound) == -1
    assert first_bad_row(np.ascontiguousarray(rows[:1] * (1 + 1e-9)), bound) == 0


@pytest.mark.parametrize("bound", [1e-100, 1e100])  # the least and the largest that policies take
def test_a_bound_at_either_end_of_what_is_allowed_is_a_bound(bound: float) -> None:
    assert first_bad_row(np.array([[bound / 2, 0.0]]), bound) == -1
    assert first_bad_row(np.array([[bound * 2, 0.0]]), bound) == 0
    assert first_bad_row(np.array([[0.0, math.inf]]), bound) == 0


@pytest.mark.parametrize("share", [2e-13, 8e-13, 3e-12])
def test_rows_and_action_sets_are_held_to_the_same_tolerance(share: float) -> None:
    rows = np.array([[3.0 * (1 + share), 0.0]])
    is_long = share > LENGTH_TOLERANCE
    assert (first_bad_row(rows, 3.0) >= 0) == is_long
    with pytest.raises(AssumptionError) if is_long else nullcontext():
        Catalogue(rows).check_length(3.0)
