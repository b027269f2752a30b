"""The ledger's sums against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from surefoot.arrays import Matrix, Vector
from surefoot.linear.ridge import sized
from surefoot.safety.ledger import Ledger
from tests.linear.scoring import settings_with

EPS = Fraction(1, 2**53)
SCALE = 2**200


def exact_sums(rows: Matrix) -> list[Fraction]:
    """Column sums without any rounding: every float is a whole number of SCALE-ths."""
    totals = []
    for column in rows.T.tolist():
        ratios = [value.as_integer_ratio() for value in column]
        totals.append(Fraction(sum(top * (SCALE // bottom) for top, bottom in ratios), SCALE))
    return totals


def allowed(rows: Matrix) -> list[Fraction]:
    """What a compensated sum may be off by: one rounding of the result, and n roundings of the rounding errors."""
    sums, count = exact_sums(rows), len(rows)
    sizes = exact_sums(np.abs(rows))
    return [EPS * abs(total) + (count * EPS) ** 2 * size for total, size in zip(sums, sizes, strict=True)]


def assert_exact(found: Vector, rows: Matrix) -> None:
    for value, truth, slack in zip(found.tolist(), exact_sums(rows), allowed(rows), strict=True):
        assert abs(Fraction(value) - truth) <= slack


def wild(rng: np.random.Generator, shape: tuple[int, ...]) -> Matrix:
    """Numbers from 1e-12 to 1e12 of either sign."""
    rows: Matrix = rng.choice([-1.0, 1.0], size=shape) * 10.0 ** rng.uniform(-12, 12, size=shape)
    return rows


@pytest.mark.parametrize("dim", [1, 3])
def test_the_sums_of_a_hundred_thousand_rounds_are_exact(dim: int) -> None:
    rng = np.random.default_rng(dim)
    count = 100_000
    is_learner = rng.random(count) < 0.5
    actions, baselines = wild(rng, (count, dim)), wild(rng, (count, dim))
    rewards = 10.0 ** rng.uniform(-12, 12, size=count)
    ledger = Ledger(dim=dim)
    learner, conserve = ledger.core.book_learner, ledger.core.book_baseline
    for t, reward in enumerate(rewards.tolist()):
        if is_learner[t]:
            learner(actions[t], baselines[t], reward)
        else:
            conserve(baselines[t], reward)
    assert_exact(ledger.played, actions[is_learner])
    assert_exact(ledger.displaced, baselines[is_learner])
    assert_exact(ledger.conserved, baselines[~is_learner])
    assert_exact(np.array([ledger.displaced_reward]), rewards[is_learner][:, None])
    assert_exact(np.array([ledger.conserved_reward]), rewards[~is_learner][:, None])
    assert ledger.learner_rounds == is_learner.sum()
    assert ledger.baseline_rounds == count - is_learner.sum()


def test_a_small_term_survives_a_large_one_that_comes_and_goes() -> None:
    ledger = Ledger(dim=2)
    for played in ([1e16, 1.0], [1.0, 1e-16], [-1e16, 1.0], [1.0, -1e-16]):
        ledger.core.book_learner(np.array(played), np.array(played[::-1]), 0.0)
    assert ledger.played.tolist() == [2.0, 2.0]
    assert ledger.displaced.tolist() == [2.0, 2.0]


def test_a_hundred_thousand_tenths_add_up_to_their_exact_sum() -> None:
    ledger = Ledger(dim=1)
    conserve, row = ledger.core.book_baseline, np.array([0.1])
    for _ in range(100_000):
        conserve(row, 0.1)
    expected = float(100_000 * Fraction(0.1))
    assert ledger.conserved.tolist() == [expected]
    assert ledger.conserved_reward == expected
    assert sum([0.1] * 100_000) != expected  # a plain sum would not do


def test_each_round_goes_where_it_belongs() -> None:
    ledger = Ledger(dim=2)
    ledger.core.book_learner(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 0.5)
    ledger.core.book_baseline(np.array([5.0, 6.0]), 0.25)
    ledger.core.book_baseline(np.array([7.0, 8.0]), 0.125)
    assert ledger.played.tolist() == [1.0, 2.0]
    assert ledger.displaced.tolist() == [3.0, 4.0]
    assert ledger.conserved.tolist() == [12.0, 14.0]
    assert (ledger.displaced_reward, ledger.conserved_reward) == (0.5, 0.375)
    assert (ledger.learner_rounds, ledger.baseline_rounds) == (1, 2)


def test_a_new_ledger_is_empty() -> None:
    ledger = Ledger(dim=2)
    assert not ledger.core.save().any()
    assert (ledger.learner_rounds, ledger.baseline_rounds) == (0, 0)


def test_the_gate_sees_the_sums_with_the_proposal_added_exactly() -> None:
    rng = np.random.default_rng(5)
    played, displaced, conserved = (wild(rng, (2000, 2)) for _ in range(3))
    core = sized("CLUCB2", 2)(2, settings_with())
    for t in range(1999):
        core.ledger.book_learner(played[t], displaced[t], 0.0)
    for row in conserved:
        core.ledger.book_baseline(row, 0.0)
    posed = core.pose(played[-1], displaced[-1])
    sums = posed.played, posed.conserved, posed.displaced
    for found, rows in zip(sums, (played, conserved, displaced), strict=True):
        for value, truth, slack, newest in zip(
            found.tolist(), exact_sums(rows), allowed(rows), np.abs(rows[-1]).tolist(), strict=True
        ):
            assert abs(Fraction(value) - truth) <= 2 * slack + 4 * EPS * Fraction(newest)
