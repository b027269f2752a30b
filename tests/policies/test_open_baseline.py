"""A baseline that draws its action, or may play any of several that pay the same."""

from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import InputError
from surefoot.policies.open_baseline import DrawnBaseline, most_telling

THETA = np.array([0.3, 0.6, 0.45])
CHANCES = (0.5, 0.2, 0.3)


def policy(**given: Any) -> surefoot.SafeLUCB:
    told: dict[str, Any] = {"dim": 3, "alpha": 0.2, "delta": 0.05, "noise": 0.1, "theta_bound": 1.0}
    return surefoot.SafeLUCB(**told | {"feature_bound": 1.0, "reward_range": (0.0, 1.0), "seed": 5} | given)


def test_the_mean_row_is_booked_and_the_drawn_one_is_learned() -> None:
    learner, rng = policy(), np.random.default_rng(1)
    drawn, gram = [], np.zeros((3, 3))
    for _ in range(400):
        decision = learner.decide(np.eye(3), baseline=CHANCES)
        assert np.array_equal(decision.features, np.eye(3)[decision.action])
        assert 0 <= decision.certificate.proposal < 3
        if decision.source == "baseline":
            drawn.append(decision.action)
        gram[decision.action, decision.action] += 1.0
        learner.observe(decision, float(THETA[decision.action] + 0.1 * rng.standard_normal()))
    kept = learner.ledger.conserved
    assert np.allclose(kept, len(drawn) * np.array(CHANCES)), "the mean row of every baseline round"
    assert np.allclose(learner.ridge.gram - policy().ridge.gram, gram), "the rows that were played"
    # Draws keep their chances: four standard deviations each.
    for action, chance in enumerate(CHANCES):
        limit = 4.0 * np.sqrt(len(drawn) * chance * (1 - chance))
        assert abs(drawn.count(action) - chance * len(drawn)) <= limit


def test_the_floor_is_that_of_the_mean() -> None:
    """At delta 0.05 and 60 runs, more than 9 below the floor have a chance under 1 in 1,000."""
    below = 0
    for run in range(60):
        learner, rng = policy(seed=run), np.random.default_rng(run)
        earned = owed = 0.0
        is_below = False
        for _ in range(150):
            rows = rng.uniform(0.0, 0.55, (4, 3))
            chances = rng.dirichlet(np.ones(4))
            decision = learner.decide(rows, baseline=chances)
            mean = float(chances @ rows @ THETA)
            # A baseline round earns what the baseline earns, the luck of its draw aside.
            earned += mean if decision.source == "baseline" else float(rows[decision.action] @ THETA)
            owed += 0.8 * mean
            is_below |= earned < owed
            learner.observe(decision, float(rows[decision.action] @ THETA + 0.1 * rng.standard_normal()))
        below += is_below
    assert below <= 9


def asked(learner: surefoot.SafeLUCB, decision: surefoot.Decision) -> np.ndarray:
    """z + phi - (1 - alpha) (v + mean) + alpha w of the round that was just booked, whatever was drawn."""
    ledger, mean, row = learner.ledger, np.array(CHANCES), np.eye(3)[decision.certificate.proposal]
    is_learner = decision.source == "learner"
    played = ledger.played - row * is_learner
    displaced, conserved = ledger.displaced - mean * is_learner, ledger.conserved - mean * (not is_learner)
    return np.asarray(played + row - 0.8 * (displaced + mean) + 0.2 * conserved)


def test_certificates_of_a_drawn_baseline_are_checked() -> None:
    learner, rng = policy(), np.random.default_rng(3)
    for _ in range(60):
        decision = learner.decide(np.eye(3), baseline=CHANCES)
        surefoot.check(decision.certificate.proof)
        assert np.allclose(decision.certificate.proof.question, asked(learner, decision), rtol=1e-12, atol=1e-12)
        learner.observe(decision, float(THETA[decision.action] + 0.1 * rng.standard_normal()))


def test_the_most_telling_of_several_actions_is_played() -> None:
    """Rows 0 and 1 pay the same; with either of them at hand the learner is let in earlier than with one of them."""
    theta, rows = np.array([0.3, 0.3, 0.3]), np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.95, 0.3]])

    def kept(baseline: Any) -> int:
        count = 0
        for seed in range(3):
            learner, rng = policy(alpha=0.02, reward_range=None), np.random.default_rng(seed)
            for _ in range(1_000):
                decision = learner.decide(rows, baseline=baseline)
                count += decision.source == "baseline"
                learner.observe(decision, float(rows[decision.action] @ theta + 0.1 * rng.standard_normal()))
        return count

    assert kept({0, 1}) < 0.85 * min(kept(0), kept(1))  # 239 a run, of 308


def test_what_is_left_of_the_contrast_decides() -> None:
    rng = np.random.default_rng(7)
    learner, rows = policy(), rng.uniform(-0.5, 0.5, (6, 3))
    learner.warm_start(rng.uniform(-0.5, 0.5, (20, 3)), rng.uniform(0.0, 1.0, 20))
    before, radius = learner.ridge, 0.7
    proposal = rows[np.argmax([row @ before.theta + radius * before.width(row) for row in rows])]
    widths = {}
    for row in (0, 2, 3, 5):
        ridge = learner.ridge
        ridge.observe(rows[row], 0.0)
        widths[row] = ridge.width(proposal - 0.9 * rows[row])
    assert most_telling({5, 3, 2, 0}, rows, 0.9, before, radius) == min(widths, key=widths.__getitem__)


def test_a_seed_repeats_the_draws_after_a_restore() -> None:
    first = policy()
    for _ in range(10):
        first.observe(first.decide(np.eye(3), baseline=CHANCES), 0.4)
    second = surefoot.SafeLUCB.from_state(first.state())
    again = [[one.decide(np.eye(3), baseline=CHANCES, hold=True).action for _ in range(40)] for one in (first, second)]
    assert again[0] == again[1]
    assert len(set(again[0])) == 3


@pytest.mark.parametrize("coin", [0.0, 0.5, np.nextafter(1.0, 0.0)])
def test_nothing_without_a_chance_is_drawn(coin: float) -> None:
    assert DrawnBaseline(np.array([0.0, 0.5, 0.0, 0.5 + 1e-10, 0.0])).draw(coin) in (1, 3)


@pytest.mark.parametrize(
    ("baseline", "text"),
    [
        ((0.5, 0.5), "3 chances"),
        ((0.5, 0.6, 0.2), "add up to 1"),
        ((1.5, -0.5, 0.0), "at least 0"),
        ((0.5, float("nan"), 0.5), "must be finite"),
        ({0, 3}, "rows from 0 to 2"),
        ({True}, "rows from 0 to 2"),
        (set(), "at least one row"),
        ("012", "row index"),
    ],
)
def test_a_baseline_that_cannot_be_is_refused(baseline: Any, text: str) -> None:
    learner = policy()
    with pytest.raises(InputError, match=text):
        learner.decide(np.eye(3), baseline=baseline)
    assert learner.rounds == 0


def test_what_cannot_do_with_a_draw_says_so() -> None:
    exact = surefoot.CLUCB2(
        dim=3, alpha=0.2, delta=0.05, noise=0.1, theta_bound=1.0, feature_bound=1.0, ridge=1.0, nesting="exact"
    )
    for learner in (exact, policy(holdout=0.02)):
        with pytest.raises(InputError, match="must not be drawn"):
            learner.decide(np.eye(3), baseline=CHANCES)


@pytest.mark.parametrize("baseline", [CHANCES, np.array(CHANCES), {0, 1}], ids=str)
@pytest.mark.parametrize("source", ["learner", "baseline"])
def test_a_round_over_it_is_neither_voided_nor_recalled(baseline: Any, source: Any) -> None:
    learner = policy()
    decision = learner.decide(np.eye(3), baseline=CHANCES, hold=True)
    before = learner.state()
    with pytest.raises(InputError, match="must be the one row"):
        learner.void(decision, np.eye(3), baseline=baseline, action=decision.action, source=source, played=0)
    with pytest.raises(InputError, match="must be the one row"):
        learner.recall(np.eye(3), baseline=baseline, action=0, source=source)
    assert all(np.array_equal(before[name], value) for name, value in learner.state().items())


@pytest.mark.parametrize("hold", [True, False])
def test_a_round_over_it_is_not_voided_as_if_it_had_been_one_row(hold: bool) -> None:
    learner = policy()
    for _ in range(60):
        learner.observe(learner.decide(np.eye(3), baseline=CHANCES), 0.4)
    decision = learner.decide(np.eye(3), baseline=CHANCES, hold=hold)
    # A restored policy knows it as well as the first.
    for one in (learner, surefoot.SafeLUCB.from_state(learner.state())):
        before = one.state()
        today = 1 if decision.source == "learner" else decision.action
        told: Any = {"action": decision.action, "source": decision.source, "played": (today + 1) % 3}
        with pytest.raises(InputError, match="a baseline that draws"):
            one.void(decision.round, np.eye(3), baseline=today, **told)
        assert all(np.array_equal(before[name], value) for name, value in one.state().items())
    learner.observe(decision, 0.4)
    assert "pending_drawn" not in learner.state()
