"""Scores of many rows against numpy row by row; proposals against the argmax of the scores."""

import itertools
import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from surefoot.arrays import Matrix
from surefoot.core import native
from surefoot.errors import AssumptionError
from surefoot.linear.actions import LENGTH_TOLERANCE, Catalogue
from surefoot.linear.ridge import Ridge
from tests.linear.scoring import EPS, fresh, learned, policy_of, proposed, scored, settings_with

MANY = 64  # rows and features from which the exact scores are long sums

# ---------------------------------------------------------------------------------- scores


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 50])
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
        best, highest = proposed(settings, state, rows)
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
        best = proposed(settings, state, rows)[0]
        order = rng.permutation(3 * actions) % actions
        mixed = np.ascontiguousarray(rows[order])
        first = int(np.flatnonzero(order == best)[0])
        assert proposed(settings, state, mixed)[0] == first
        core = policy_of(settings, state)
        for hint in (0, first, int(np.flatnonzero(order == best)[-1]), len(order) - 1):
            core.ridge.favourite = hint  # the last best row must not win a tie
            assert core.propose(mixed, core.radius)[0] == first


@pytest.mark.parametrize("dim", [1, 2, 4, 5, 12, 13, 50])
@pytest.mark.parametrize("copies", [3, 5, 67])
def test_copies_of_one_row_have_one_score_so_that_the_first_is_taken(dim: int, copies: int) -> None:
    settings = settings_with()
    state = learned(dim, 100, seed=7)
    for row in np.random.default_rng(dim).normal(size=(200, dim)):
        rows = np.tile(row, (copies, 1))
        assert all((score == score[0]).all() for score in scored(state, rows))
        assert proposed(settings, state, rows)[0] == 0


# ---------------------------------------------------------------------------------- proposals


def same_choice(settings: Any, state: Ridge, rows: Matrix) -> int:
    """The proposal is the argmax of the scores, whichever row was best last; where rounding decides, one as good."""
    core = policy_of(settings, state)
    means, squares = scored(state, rows)
    uppers = means + core.radius * np.sqrt(squares)
    exact, size = int(np.argmax(uppers)), float(np.abs(means).max() + np.abs(uppers).max())
    best = -1
    for hint in (0, exact, len(rows) // 2, len(rows) - 1):
        core.ridge.favourite = hint
        best, claimed = core.propose(rows, core.radius)
        if best != exact:
            assert uppers[exact] - uppers[best] <= 4 * (rows.shape[1] + 4) * EPS * size
        assert claimed == pytest.approx(uppers[exact], rel=1e-9)
    return int(best)


@pytest.mark.parametrize("dim", [64, 65, 97])
def test_of_many_long_rows_the_best_is_proposed(dim: int) -> None:
    settings = settings_with(feature_bound=3.0)
    rng = np.random.default_rng(dim)
    for count in (1, 40, 200):
        state = learned(dim, count, seed=count)
        for _ in range(40):
            rows = rng.normal(size=(int(rng.integers(64, 300)), dim))
            rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) / 3.0)
            means, squares = fresh(state, rows)
            uppers = means + state.core.radius(settings) * np.sqrt(squares)
            best, highest = proposed(settings, state, rows)
            assert best == int(np.argmax(uppers))
            assert highest == pytest.approx(uppers.max(), rel=1e-11)


@pytest.mark.parametrize("apart", [0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-5])
def test_of_near_ties_the_best_is_proposed(apart: float) -> None:
    settings = settings_with(feature_bound=3.0)
    rng = np.random.default_rng(7)
    state = learned(64, 100, seed=7)
    for _ in range(40):
        row = rng.normal(size=64)
        row *= 2.5 / np.linalg.norm(row)
        same_choice(settings, state, row + apart * rng.normal(size=(128, 64)))


@pytest.mark.parametrize("copies", [67, 131])
@pytest.mark.parametrize("dim", [64, 65])
def test_of_many_copies_the_first_is_proposed(dim: int, copies: int) -> None:
    settings = settings_with(feature_bound=3.0)
    core = policy_of(settings, learned(dim, 100, seed=7))
    for number, row in enumerate(np.random.default_rng(dim).normal(size=(200, dim))):
        rows = np.tile(row * (2.5 / np.linalg.norm(row)), (copies, 1))
        core.ridge.favourite = number % copies
        assert core.propose(rows, core.radius)[0] == 0


def test_of_duplicated_rows_the_first_is_proposed() -> None:
    settings = settings_with(feature_bound=3.0)
    rng = np.random.default_rng(8)
    state = learned(64, 100, seed=8)
    for _ in range(40):
        distinct = rng.normal(size=(20, 64))
        distinct *= 2.5 / np.linalg.norm(distinct, axis=1, keepdims=True)
        order = rng.integers(0, 20, size=200)
        best = same_choice(settings, state, np.ascontiguousarray(distinct[order]))
        assert best == np.flatnonzero(order == order[best])[0]


@pytest.mark.parametrize("spread", [2, 4, 6])
@pytest.mark.parametrize("ridge", [0.3, 1e-6])
def test_of_badly_scaled_features_the_best_is_proposed(spread: int, ridge: float) -> None:
    scale = 10.0 ** np.linspace(-spread, spread, 64)
    rng = np.random.default_rng(spread)
    state = learned(64, 150, seed=9, ridge=ridge, scale=scale)
    for _ in range(40):
        rows = rng.normal(size=(100, 64)) * scale
        settings = settings_with(feature_bound=float(np.linalg.norm(rows, axis=1).max()) * 1.01, ridge=ridge)
        same_choice(settings, state, rows)


def test_a_bound_far_above_the_rows_and_one_long_row_change_nothing() -> None:
    rng = np.random.default_rng(11)
    state = learned(64, 150, seed=10)
    for bound in (1e3, 1e12, 1e30):
        rows, settings = rng.normal(size=(100, 64)), settings_with(feature_bound=bound)
        same_choice(settings, state, rows)
        rows[17] *= 50.0
        assert proposed(settings, state, rows)[0] == 17


@pytest.mark.parametrize("dim", [2, 4, MANY])
@pytest.mark.parametrize("count", [0, 50])
def test_fresh_rows_and_a_catalogue_agree_on_the_best(dim: int, count: int) -> None:
    settings = settings_with(feature_bound=4.0)
    core = policy_of(settings, learned(dim, count, seed=5))
    rows = np.random.default_rng(6).normal(size=(MANY + 3, dim))
    rows *= 3.9 / np.linalg.norm(rows, axis=1).max()
    core.adopt(rows)
    *_, kept = core.decide(rows, True, -1, 0.0, 0.0, math.inf, native.FREE)
    row, upper = core.propose(rows, core.radius)
    assert row == kept.action
    assert upper == pytest.approx(kept.optimism, rel=1e-12)


def test_a_round_with_a_row_that_breaks_the_bound_is_not_decided() -> None:
    core = policy_of(settings_with(), learned(2, 5, seed=5))
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    assert core.decide(rows, False, -1, 0.0, 0.0, math.inf, native.FREE) is None
    assert core.decide_given(rows, False, 1, 0.0, 0.0, math.inf, native.FREE) is None
    assert core.propose(np.array([[1.0, 0.0], [math.nan, 1.0]]), core.radius) is None
    assert core.ledger.learner_rounds == 0


@pytest.mark.parametrize(("actions", "dim"), [(9, 4), (70, 4), (70, 66)])  # four rows at once, and a screen
def test_a_bad_row_is_named_wherever_it_stands(actions: int, dim: int) -> None:
    core = policy_of(settings_with(), learned(dim, 5, seed=5))
    rows = np.random.default_rng(dim).normal(size=(actions, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for place, bad in itertools.product((0, 3, 4, 7, actions - 1), (math.nan, math.inf, 11.0)):
        spoiled = rows.copy()
        spoiled[place, place % dim] = bad
        spoiled[actions - 1, 0] = math.nan
        assert core.decide(spoiled, False, -1, 0.0, 0.0, math.inf, native.FREE) is None
        assert native.first_bad_row(spoiled, core.settings.feature_bound) == place
    assert core.ledger.learner_rounds == 0
    assert core.decide(rows, False, -1, 0.0, 0.0, math.inf, native.FREE) is not None
    assert native.first_bad_row(rows, core.settings.feature_bound) is None


# ---------------------------------------------------------------------------------- first_bad_row


@pytest.mark.parametrize("dim", [3, 4, 8])
def test_the_first_round_with_a_bad_row_is_found(dim: int) -> None:
    features = np.random.default_rng(dim).normal(size=(3, 7, dim))
    features /= np.linalg.norm(features, axis=2, keepdims=True)
    assert native.first_long(features, 1.0) is None
    for round_, row in itertools.product(range(3), range(7)):
        spoiled = features.copy()
        spoiled[round_, row] *= 1.01
        spoiled[2, 6, 0] = math.nan
        assert native.first_long(spoiled, 1.0) == round_


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 10.1, -1e200, 10 * (1 + 1e-11)])
def test_the_first_bad_row_is_found(dim: int, bad: float) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(9, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert native.first_bad_row(rows, 10.0) is None
    for place in (4, 8):
        spoiled = rows.copy()
        spoiled[place] = 0.0
        spoiled[place, dim - 1] = bad
        assert native.first_bad_row(spoiled, 10.0) == place
        spoiled[2, 0] = math.nan
        assert native.first_bad_row(spoiled, 10.0) == 2


@pytest.mark.parametrize("bound", [1e-100, 0.3, 1.0, math.sqrt(2), 1e100])
@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_a_row_of_exactly_the_bound_is_good_and_a_visibly_longer_one_bad(dim: int, bound: float) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(40, dim))
    rows *= bound / np.linalg.norm(rows, axis=1, keepdims=True)
    assert native.first_bad_row(rows, bound) is None
    assert native.first_bad_row(np.ascontiguousarray(rows[:1] * (1 + 1e-9)), bound) == 0


@pytest.mark.parametrize("bound", [1e-100, 1e100])  # the least and the largest that policies take
def test_a_bound_at_either_end_of_what_is_allowed_is_a_bound(bound: float) -> None:
    assert native.first_bad_row(np.array([[bound / 2, 0.0]]), bound) is None
    assert native.first_bad_row(np.array([[bound * 2, 0.0]]), bound) == 0
    assert native.first_bad_row(np.array([[0.0, math.inf]]), bound) == 0


@pytest.mark.parametrize("share", [2e-13, 8e-13, 3e-12])
def test_rows_and_action_sets_are_held_to_the_same_tolerance(share: float) -> None:
    rows = np.array([[3.0 * (1 + share), 0.0]])
    is_long = share > LENGTH_TOLERANCE
    assert (native.first_bad_row(rows, 3.0) is not None) == is_long
    with pytest.raises(AssumptionError) if is_long else nullcontext():
        Catalogue(rows).check_length(3.0)
