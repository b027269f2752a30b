"""Scores that follow a catalogue: those of a fresh solve; and the short list, which never misses the best row."""

import math

import numpy as np
import pytest

import surefoot
from surefoot.arrays import Matrix
from surefoot.errors import StateError
from surefoot.linear.catalogue import (
    BAR,
    FIRST,
    LIST_FROM,
    LISTED,
    REACH,
    TRAVEL,
    follow,
    learn_catalogue,
    propose,
    restored_scores,
)
from surefoot.linear.radius import radius_of
from surefoot.linear.ridge import REFRESH_EVERY, Ridge, absorb
from surefoot.linear.scores import LIST, new_scores
from tests.linear.scoring import EPS, fresh, learned, scored, settings_with


@pytest.mark.parametrize("dim", [1, 2, 4, 5, 20])
def test_the_scores_of_a_catalogue_follow_thousands_of_observations(dim: int) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(11, dim))
    columns = np.ascontiguousarray(rows.T)
    state = Ridge(dim=dim, ridge=0.3)
    scores = scored(state, rows)
    # Each step may lose a rounding error of what the square was at its largest, at the start.
    slack = 4 * REFRESH_EVERY * EPS * float((rows**2).sum(axis=1).max() / 0.3)
    for t in range(1, 2 * REFRESH_EVERY + 300):
        learn_catalogue(state.buffer, rng.normal(size=dim), rng.normal(), rows, columns, scores)
        if t < 5 or t % 97 == 0 or t % REFRESH_EVERY in (0, 1, REFRESH_EVERY - 1):
            means, squares = fresh(state, rows)
            np.testing.assert_allclose(scores[1], squares, rtol=1e-9, atol=slack)
            np.testing.assert_allclose(scores[0], means, rtol=1e-9, atol=1e-11)
            if t % REFRESH_EVERY == 0:  # computed anew, so the slack is gone
                np.testing.assert_allclose(scores[1], squares, rtol=1e-11)


@pytest.mark.parametrize("dim", [1, 3, 4, 13])
def test_following_one_observation_moves_the_scores_as_scoring_anew_does(dim: int) -> None:
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(7, dim))
    state = learned(dim, 20, seed=12)
    scores = scored(state, rows)
    for _ in range(50):
        gain, error = absorb(state.buffer, rng.normal(size=dim), rng.normal())
        follow(state.buffer, np.ascontiguousarray(rows.T), gain, error, scores)
        np.testing.assert_allclose(scores[:2], scored(state, rows)[:2], rtol=1e-10, atol=1e-13)


def test_a_catalogue_follows_the_same_row_again_and_again_without_a_negative_square() -> None:
    rows = np.array([[3.0, 1.0], [3.0, 1.0 + 1e-9], [1.0, -3.0]])
    state = Ridge(dim=2, ridge=1e-6)
    scores = scored(state, rows)
    for _ in range(500):
        learn_catalogue(state.buffer, rows[0], 0.1, rows, np.ascontiguousarray(rows.T), scores)
        assert (scores[1] >= 0).all()
    means, squares = fresh(state, rows)
    np.testing.assert_allclose(scores[1], squares, rtol=1e-6, atol=600 * EPS * 10 / 1e-6)
    np.testing.assert_allclose(scores[0], means, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------------------- the short list


def long_run(
    dim: int, actions: int, noise: float, *, rounds: int = 2_500, is_restless: bool = False
) -> tuple[int, int]:
    """Proposals for a catalogue, each checked against a fresh solve; rounds with a list, and lists made.

    What is proposed is played; or, restless, any row, with rewards that turn round again and again.
    """
    rng = np.random.default_rng(dim + actions)
    rows = rng.normal(size=(actions, dim)) / math.sqrt(dim)
    columns, theta = np.ascontiguousarray(rows.T), rng.normal(size=dim) / math.sqrt(dim)
    settings, state = settings_with(noise=noise), Ridge(dim=dim, ridge=0.3)
    scores, with_list, made = scored(state, rows), 0, 0
    for t in range(rounds):
        beta, had_list = radius_of(settings, state.buffer), scores[LIST, LISTED]
        bounds = scores[LIST, BAR], scores[LIST, REACH]
        best, highest = propose(settings, state.buffer, rows, True, scores, beta)
        if t > 0:
            means, squares = fresh(state, rows)
            uppers = means + beta * np.sqrt(squares)
            assert uppers[best] >= uppers.max() - 1e-8 * abs(uppers).max()
            assert highest == pytest.approx(uppers[best], rel=1e-7, abs=1e-9)
        with_list += had_list > 0
        made += scores[LIST, LISTED] > 0 and bounds != (scores[LIST, BAR], scores[LIST, REACH])
        row = int(rng.integers(actions)) if is_restless else best
        turn = -20.0 if is_restless and t % 300 > 270 else 1.0
        reward = float(rows[row] @ theta * turn + noise * rng.normal())
        learn_catalogue(state.buffer, rows[row], reward, rows, columns, scores)
    return with_list, made


@pytest.mark.parametrize("dim", [1, 2, 4, 7])
@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize("is_restless", [False, True])
def test_the_best_row_is_on_the_short_list_in_every_round(dim: int, noise: float, is_restless: bool) -> None:
    with_list, made = long_run(dim, 100, noise, is_restless=is_restless)
    assert with_list > 0
    assert made > 0


def test_without_enough_actions_all_rows_follow() -> None:
    assert long_run(3, LIST_FROM - 1, 0.1, rounds=300) == (0, 0)


def test_the_list_is_given_up_where_theta_has_moved_too_far_or_the_best_has_fallen() -> None:
    rows = np.random.default_rng(0).normal(size=(80, 2))
    state, settings = learned(2, 4_096, seed=0), settings_with()
    beta = radius_of(settings, state.buffer)
    for broken in (TRAVEL, BAR):
        scores = scored(state, rows)
        best, _ = propose(settings, state.buffer, rows, True, scores, beta)
        assert scores[LIST, LISTED] > 0
        outside = next(i for i in range(80) if i not in scores[LIST, FIRST:])
        scores[0, outside] = 1e3  # no list would let it in, a fresh scoring puts it right
        assert propose(settings, state.buffer, rows, True, scores, beta)[0] == best
        scores[LIST, broken] = 1e3
        assert propose(settings, state.buffer, rows, True, scores, beta)[0] == best
        np.testing.assert_allclose(scores[0], fresh(state, rows)[0], rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------------------- saved and restored


def played(rounds: int) -> tuple[surefoot.LUCB, surefoot.Catalogue, Matrix]:
    rng = np.random.default_rng(5)
    rows = np.abs(rng.normal(size=(96, 3)))
    rows /= np.linalg.norm(rows, axis=1).max()
    policy = surefoot.LUCB(dim=3, delta=0.01, noise=0.05, ridge=0.3, theta_bound=1.0, feature_bound=1.0)
    catalogue, rewards = surefoot.Catalogue(rows), rng.normal(size=2 * rounds) * 0.05
    go_on(policy, catalogue, rewards[:rounds])
    return policy, catalogue, rewards[rounds:]


def go_on(policy: surefoot.LUCB, catalogue: surefoot.Catalogue, rewards: Matrix) -> list[int]:
    actions = []
    for noise in rewards:
        decision = policy.decide(catalogue)
        policy.observe(decision, float(catalogue.rows[decision.action] @ [0.5, 0.3, 0.1] + noise))
        actions.append(decision.action)
    return actions


def test_a_policy_restored_in_the_middle_of_a_list_goes_on_to_the_bit() -> None:
    policy, catalogue, rewards = played(1_500)
    saved = policy.state()
    assert saved["catalogue_scores"][LIST, LISTED] > 0
    copy = surefoot.Policy.from_state(saved)
    assert isinstance(copy, surefoot.LUCB)
    assert go_on(copy, catalogue, rewards) == go_on(policy, catalogue, rewards)
    np.testing.assert_array_equal(copy.state()["catalogue_scores"], policy.state()["catalogue_scores"])


def test_scores_saved_before_there_were_short_lists_are_taken_as_they_are() -> None:
    policy, catalogue, rewards = played(200)
    saved = policy.state()
    saved["catalogue_scores"] = saved["catalogue_scores"][:LIST]
    copy = surefoot.Policy.from_state(saved)
    assert isinstance(copy, surefoot.LUCB)
    assert go_on(copy, catalogue, rewards) == go_on(policy, catalogue, rewards)


@pytest.mark.parametrize("place", [LISTED, FIRST, FIRST + 2])
@pytest.mark.parametrize("value", [-1.0, 0.5, 96.0, 1e300, math.nan, math.inf])
def test_a_short_list_that_cannot_be_one_is_refused(place: int, value: float) -> None:
    scores = new_scores(96)
    scores[LIST, :8] = 3, 0.1, 2.0, 1.0, 5, 17, 95, 0
    np.testing.assert_array_equal(restored_scores(scores, 96), scores)
    scores[LIST, place] = value
    with pytest.raises(StateError, match="catalogue_scores"):
        restored_scores(scores, 96)
    with pytest.raises(StateError, match="shape"):
        restored_scores(scores[:2], 96)
