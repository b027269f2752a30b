"""A warm start: what the baseline earned before enters the confidence set, and not the ledger."""

from typing import Any, Literal

import numpy as np
import pytest

import surefoot
from surefoot.linear.ellipsoid import Ball
from surefoot.linear.nested import Nested
from tests.policies.safe_runs import GATES, RADII, Place, assert_within_delta, new_policy, play
from tests.worlds import Array

NESTINGS: tuple[Literal["exact", "latest"], ...] = ("exact", "latest")


def history(place: Place, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    rows = np.abs(rng.normal(size=(count, place.dim)))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return rows, rows @ place.theta + place.noise * rng.normal(size=count)


def test_a_warm_start_enters_the_set_and_not_the_ledger() -> None:
    rng = np.random.default_rng(28)
    place = Place(rng)
    policy = new_policy(place, radius="residual", gate="facts", facts="none", constraint="cumulative")
    rows, rewards = history(place, rng, 30)
    policy.warm_start(rows, rewards)
    gram = 0.5 * np.eye(3) + rows.T @ rows
    assert policy.ridge.count == 30
    assert policy.ridge.gram == pytest.approx(gram)
    assert policy.ridge.theta == pytest.approx(np.linalg.solve(gram, rows.T @ rewards))
    assert (policy.rounds, policy.pending) == (0, ())
    assert not policy.ledger.core.save().any()
    again = surefoot.SafeLUCB.from_state(policy.state())
    assert again.decide(place.rows, baseline=0).action == policy.decide(place.rows, baseline=0).action


def test_the_guarantee_holds_after_a_warm_start_and_the_learner_comes_in_earlier() -> None:
    rng = np.random.default_rng(29)
    cold, warm = [], []
    for index in range(300):
        place = Place(rng, kind=("plain", "changing", "adversarial")[index % 3])
        chosen = {"radius": RADII[index % 5], "gate": GATES[index // 5 % 3], "facts": "none"}
        policies = [new_policy(place, constraint="cumulative", **chosen) for _ in range(2)]
        policies[1].warm_start(*history(place, rng, 40))
        cold.append(play(policies[0], place, rounds=20))
        warm.append(play(policies[1], place, rounds=20))
    assert_within_delta({"cold": cold, "warm": warm})
    assert sum(o.learner_rounds for o in warm) > 1.5 * sum(o.learner_rounds for o in cold)


def test_a_warm_start_of_exact_clucb2_counts_from_the_first_decision_on() -> None:
    rng = np.random.default_rng(32)
    place = Place(rng)
    told: dict[str, Any] = {"delta": 0.05, "noise": place.noise, "ridge": 0.3, "theta_bound": 1.0, "feature_bound": 1.0}
    exact, latest = (surefoot.CLUCB2(dim=place.dim, alpha=0.3, nesting=nesting, **told) for nesting in NESTINGS)
    rows, rewards = history(place, rng, 60)
    for policy in (exact, latest):
        policy.warm_start(rows, rewards)
    ball, newest, nest = Ball(1.0), latest.confidence_set, exact.confidence_set
    assert isinstance(nest, Nested)
    for q in rng.normal(size=(20, place.dim)):
        best = max(ball.lower(q), newest.lower(q))
        assert best - 1e-12 <= nest.lower(q) <= place.theta @ q <= nest.upper(q)
    assert nest.lower(rows[0]) > ball.lower(rows[0]) + 0.1, "the history must have taught something"
    assert [known.observations for known in nest.ellipsoids()] == [60], "one set for all of it, however long it is"
    again = surefoot.CLUCB2.from_state(exact.state())
    decisions = [policy.decide(place.rows, baseline=0) for policy in (exact, again)]
    assert decisions[0].certificate.margin == decisions[1].certificate.margin
    bare = surefoot.CLUCB2(dim=place.dim, alpha=0.3, nesting="exact", **told).decide(place.rows, baseline=0)
    assert decisions[0].certificate.margin > bare.certificate.margin
    exact.observe(decisions[0], 0.4)
    nest = exact.confidence_set
    assert isinstance(nest, Nested)
    assert [known.observations for known in nest.ellipsoids()] == [60, 61]


@pytest.mark.parametrize("made", ["decided", "learned"])
def test_a_warm_start_is_refused_once_there_is_anything_to_add_it_to(made: str) -> None:
    rng = np.random.default_rng(30)
    place = Place(rng)
    policy = new_policy(place, radius="amm", gate="facts", facts="none", constraint="cumulative")
    if made == "decided":
        policy.decide(place.rows, baseline=0)
    else:
        policy.warm_start(*history(place, rng, 3))
    before = policy.ridge.core.save()
    with pytest.raises(surefoot.errors.InputError, match=r"`warm_start` must come before the first decision, but"):
        policy.warm_start(*history(place, rng, 3))
    assert np.array_equal(policy.ridge.core.save(), before)


@pytest.mark.parametrize(
    ("rows", "rewards", "message"),
    [
        ([[0.1, 0.2, np.nan], [0.1, 0.1, 0.1]], [0.1, 0.2], r"`features` must be finite"),
        ([[0.1, 0.2, 0.3], [2.0, 0.1, 0.1]], [0.1, 0.2], r"row 1 has length 2.0"),
        ([[0.1, 0.2], [0.1, 0.1]], [0.1, 0.2], r"dim=3 columns, but got shape \(2, 2\)"),
        ([[0.1, 0.2, 0.3]], [0.1, 0.2], r"one number within .* for each of 1 rows, but got shape \(2,\)"),
        ([[0.1, 0.2, 0.3]], [np.inf], r"`rewards` must be finite"),
        ([[0.1, 0.2, 0.3]], [1e150], r"one number within"),
        (np.zeros((0, 3)), np.zeros(0), r"at least one row"),
    ],
)
def test_a_bad_history_changes_nothing(rows: Any, rewards: Any, message: str) -> None:
    place = Place(np.random.default_rng(31))
    policy = new_policy(place, radius="amm", gate="facts", facts="none", constraint="cumulative")
    before = policy.ridge.core.save()
    with pytest.raises(surefoot.errors.InputError, match=message):
        policy.warm_start(rows, rewards)
    assert np.array_equal(policy.ridge.core.save(), before)
    policy.warm_start([[0.1, 0.2, 0.3]], [0.1])
