"""Scores that follow a catalogue: those of a fresh solve; and the short list, which never misses the best row."""

import math
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.arrays import Matrix, Vector
from surefoot.core import native
from surefoot.errors import StateError
from surefoot.linear.ridge import REFRESH_EVERY, Ridge
from surefoot.policies.linear_policy import BOUNDS, LIST, LIST_SHARE
from tests.linear.scoring import EPS, fresh, learned, policy_of, scored, settings_with

LIST_FROM = 48  # actions from which a short list pays (`core/catalogue.hpp`)
LISTED, FIRST = 0, BOUNDS  # places in the saved short list: its length, its first row


def keeping(state: Ridge, rows: Matrix, settings: Any = None) -> Any:
    """A policy of the core that keeps the scores of these rows."""
    core = policy_of(settings_with() if settings is None else settings, state)
    core.adopt(rows)
    return core


def kept(core: Any) -> tuple[Vector, Vector]:
    means, squares, *_ = core.catalogue_scores()
    return means, squares


def ridge_of(core: Any) -> Ridge:
    return Ridge(dim=core.ridge.dim, ridge=core.ridge.ridge, core=core.ridge)


def proposal(core: Any, rows: Matrix) -> tuple[int, float]:
    *_, evidence = core.decide(rows, True, -1, 0.0, 0.0, math.inf, native.FREE)
    return evidence.action, evidence.optimism


@pytest.mark.parametrize("dim", [1, 2, 4, 5, 20])
def test_the_scores_of_a_catalogue_follow_thousands_of_observations(dim: int) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(11, dim))
    core = keeping(Ridge(dim=dim, ridge=0.3), rows)
    # Each step may lose a rounding error of what the square was at its largest, at the start.
    slack = 4 * REFRESH_EVERY * EPS * float((rows**2).sum(axis=1).max() / 0.3)
    for t in range(1, 2 * REFRESH_EVERY + 300):
        core.learn(rng.normal(size=dim).tobytes(), rng.normal(), True)
        if t < 5 or t % 97 == 0 or t % REFRESH_EVERY in (0, 1, REFRESH_EVERY - 1):
            means, squares = fresh(ridge_of(core), rows)
            found = kept(core)
            np.testing.assert_allclose(found[1], squares, rtol=1e-9, atol=slack)
            np.testing.assert_allclose(found[0], means, rtol=1e-9, atol=1e-11)
            if t % REFRESH_EVERY == 0:  # computed anew, so the slack is gone
                np.testing.assert_allclose(found[1], squares, rtol=1e-11)


@pytest.mark.parametrize("dim", [1, 3, 4, 13])
def test_following_one_observation_moves_the_scores_as_scoring_anew_does(dim: int) -> None:
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(7, dim))
    core = keeping(learned(dim, 20, seed=12), rows)
    for _ in range(50):
        core.learn(rng.normal(size=dim).tobytes(), rng.normal(), True)
        np.testing.assert_allclose(kept(core), scored(ridge_of(core), rows), rtol=1e-10, atol=1e-13)


def test_a_catalogue_follows_the_same_row_again_and_again_without_a_negative_square() -> None:
    rows = np.array([[3.0, 1.0], [3.0, 1.0 + 1e-9], [1.0, -3.0]])
    core = keeping(Ridge(dim=2, ridge=1e-6), rows, settings_with(ridge=1e-6))
    for _ in range(500):
        core.learn(rows[0].tobytes(), 0.1, True)
        assert (kept(core)[1] >= 0).all()
    means, squares = fresh(ridge_of(core), rows)
    np.testing.assert_allclose(kept(core)[1], squares, rtol=1e-6, atol=600 * EPS * 10 / 1e-6)
    np.testing.assert_allclose(kept(core)[0], means, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------------------- the short list


def long_run(
    dim: int, actions: int, noise: float, *, rounds: int = 2_500, is_restless: bool = False
) -> tuple[int, int]:
    """Proposals for a catalogue, each checked against a fresh solve; rounds with a list, and lists made.

    What is proposed is played; or, restless, any row, with rewards that turn round again and again.
    """
    rng = np.random.default_rng(dim + actions)
    rows = rng.normal(size=(actions, dim)) / math.sqrt(dim)
    theta = rng.normal(size=dim) / math.sqrt(dim)
    core = keeping(Ridge(dim=dim, ridge=0.3), rows, settings_with(noise=noise))
    with_list, made = 0, 0
    for t in range(rounds):
        beta = core.radius
        _, _, before, _, *bounds = core.catalogue_scores()
        best, highest = proposal(core, rows)
        if t > 0:
            means, squares = fresh(ridge_of(core), rows)
            uppers = means + beta * np.sqrt(squares)
            assert uppers[best] >= uppers.max() - 1e-8 * abs(uppers).max()
            assert highest == pytest.approx(uppers[best], rel=1e-7, abs=1e-9)
        _, _, listed, _, *now = core.catalogue_scores()
        with_list += len(before) > 0
        made += len(listed) > 0 and bounds != now
        row = int(rng.integers(actions)) if is_restless else best
        turn = -20.0 if is_restless and t % 300 > 270 else 1.0
        reward = float(rows[row] @ theta * turn + noise * rng.normal())
        core.learn(rows[row].tobytes(), reward, True)
    return with_list, made


@pytest.mark.parametrize("dim", [1, 2, 4, 7])
@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize("is_restless", [False, True])
def test_the_best_row_is_on_the_short_list_in_every_round(dim: int, noise: float, is_restless: bool) -> None:
    with_list, made = long_run(dim, 100, noise, is_restless=is_restless)
    assert with_list > 0
    assert made > 0


@pytest.mark.parametrize("is_restless", [False, True])
def test_where_many_rows_could_become_best_a_list_leaves_less_room(is_restless: bool) -> None:
    with_list, made = long_run(40, 200, 0.01, rounds=600, is_restless=is_restless)
    assert with_list > 100
    assert made > 3


def test_rows_off_the_list_take_the_steps_that_they_missed() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 40))
    core = keeping(learned(40, 304, seed=3), rows)
    proposal(core, rows)
    listed = core.catalogue_scores()[2]
    assert 0 < len(listed) <= 200 // LIST_SHARE
    for missed in range(1, 21):  # as many as half of the dimensions
        core.learn(rows[listed[0]].tobytes(), 0.1 * missed, True)
        assert core.catalogue_missed == missed
        np.testing.assert_allclose(kept(core), scored(ridge_of(core), rows), rtol=1e-10, atol=1e-13)
    core.learn(rows[listed[0]].tobytes(), 0.1, True)
    assert core.catalogue_missed == -1
    means, squares = scored(ridge_of(core), rows)
    np.testing.assert_allclose(np.array(kept(core))[:, listed], [means[listed], squares[listed]], rtol=1e-10)
    assert not np.allclose(kept(core)[0], means, rtol=1e-10)


def test_without_enough_actions_all_rows_follow() -> None:
    assert long_run(3, LIST_FROM - 1, 0.1, rounds=300) == (0, 0)


@pytest.mark.parametrize("broken", ["travel", "bar"])
def test_the_list_is_given_up_where_theta_has_moved_too_far_or_the_best_has_fallen(broken: str) -> None:
    rows = np.random.default_rng(0).normal(size=(80, 2))
    state = learned(2, 4_096, seed=0)
    core = keeping(state, rows)
    best, _ = proposal(core, rows)
    means, squares, listed, travel, reach, bar = core.catalogue_scores()
    assert listed
    outside = next(i for i in range(80) if i not in listed)
    means[outside] = 1e3  # no list would let it in, a fresh scoring puts it right
    core.restore_scores(means, squares, listed, travel, reach, bar)
    assert proposal(core, rows)[0] == best
    assert kept(core)[0][outside] == 1e3
    bounds = {"travel": travel, "reach": reach, "bar": bar, broken: 1e3}
    core.restore_scores(means, squares, listed, *bounds.values())
    assert proposal(core, rows)[0] == best
    np.testing.assert_allclose(kept(core)[0], fresh(state, rows)[0], rtol=1e-9, atol=1e-12)


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


@pytest.mark.parametrize("missed", [5, 25])  # of 20 that are kept
def test_a_policy_restored_behind_its_list_goes_on_as_one_that_was_never_saved(missed: int) -> None:
    rng = np.random.default_rng(6)
    rows = np.abs(rng.normal(size=(200, 40)))
    rows /= np.linalg.norm(rows, axis=1).max()
    catalogue, theta = surefoot.Catalogue(rows), np.abs(rng.normal(size=40)) / 7
    policy = surefoot.LUCB(dim=40, delta=0.01, noise=0.001, ridge=0.01, theta_bound=1.0, feature_bound=1.0)

    def play(policy: Any, rounds: int) -> list[int]:
        actions = []
        for _ in range(rounds):
            decision = policy.decide(catalogue)
            policy.observe(decision, float(rows[decision.action] @ theta))
            actions.append(decision.action)
        return actions

    play(policy, 1_024)  # scored anew; the next round makes a list
    play(policy, missed)
    assert policy.core.catalogue_missed == (missed if missed <= 20 else -1)
    saved = policy.state()
    length = int(saved["catalogue_scores"][LIST, LISTED])
    assert length > 0
    assert saved["catalogue_scores"][LIST, FIRST + length] == (missed + 1 if missed <= 20 else 0)
    copy = surefoot.Policy.from_state(saved)
    for rounds in (3, 300):
        assert play(copy, rounds) == play(policy, rounds)
        np.testing.assert_array_equal(copy.state()["catalogue_scores"], policy.state()["catalogue_scores"])


@pytest.mark.parametrize("value", [-1.0, 0.5, 1e300, math.nan, math.inf])
def test_a_short_list_that_missed_no_number_of_observations_is_refused(value: float) -> None:
    saved = played(3)[0].state()
    saved["catalogue_scores"][LIST, :8] = 3, 0.1, 2.0, 1.0, 5, 17, 95, value
    with pytest.raises(StateError, match="catalogue_scores"):
        surefoot.Policy.from_state(saved)


@pytest.mark.parametrize("place", [LISTED, FIRST, FIRST + 2])
@pytest.mark.parametrize("value", [-1.0, 0.5, 96.0, 1e300, math.nan, math.inf])
def test_a_short_list_that_cannot_be_one_is_refused(place: int, value: float) -> None:
    saved = played(3)[0].state()
    scores = saved["catalogue_scores"]
    scores[LIST, :8] = 3, 0.1, 2.0, 1.0, 5, 17, 95, 0
    np.testing.assert_array_equal(surefoot.Policy.from_state(saved).state()["catalogue_scores"], scores)
    scores[LIST, place] = value
    with pytest.raises(StateError, match="catalogue_scores"):
        surefoot.Policy.from_state(saved)
    with pytest.raises(StateError, match="shape"):
        surefoot.Policy.from_state({**saved, "catalogue_scores": scores[:2]})
