"""The lift and its interval: true at all times at once, whenever somebody looks, and silent where nothing is known."""

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import binom
from typer.testing import CliRunner

import surefoot
from surefoot.cli.commands import app
from surefoot.experiment import Experiment
from surefoot.experiment.snapshots import differing
from surefoot.experiment.status import LedgerBounds, ledger_earnings, ledger_lift
from surefoot.linear.ellipsoid import Ball
from surefoot.rounds import Answer

DELTA, RUNS, ROUNDS, NOISE, DIM = 0.2, 60, 160, 0.1, 3
MOST = int(binom.isf(1e-6, RUNS, DELTA))
TOLD: dict[str, Any] = {"dim": DIM, "alpha": 0.2, "delta": DELTA, "theta_bound": 1.0, "feature_bound": 1.0}
POLICIES: dict[str, Callable[[], Any]] = {
    "SafeLUCB": lambda: surefoot.SafeLUCB(noise=NOISE, ridge=0.3, **TOLD),
    "residual": lambda: surefoot.SafeLUCB(noise=NOISE, ridge=0.3, radius="residual", **TOLD),
    "CLUCB2": lambda: surefoot.CLUCB2(noise=NOISE, ridge=0.3, nesting="latest", **TOLD),
    "CLUCB": lambda: surefoot.CLUCB(noise=NOISE, ridge=0.3, **TOLD),
}


def play(policy: Any, seed: int, look: Callable[[Any, float, float], bool]) -> bool:
    """Whether `look`, which is told what was truly earned beyond the baseline and in all, was ever true."""
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0.1, 0.5, DIM)
    above = earned = 0.0
    for _ in range(ROUNDS):
        rows = rng.dirichlet(np.ones(DIM), 4)
        means = rows @ theta
        known = {"baseline_reward": float(means[0])} if policy.needs_baseline_reward else {}
        decision = policy.decide(rows, baseline=0, **known)
        above, earned = above + means[decision.action] - means[0], earned + means[decision.action]
        policy.observe(decision, float(means[decision.action] + NOISE * rng.normal()))
        if look(policy, above, earned):
            return True
    return False


def is_wrong(policy: Any, above: float, earned: float) -> bool:
    """Whether an interval does not hold what is true."""
    found = ledger_earnings(policy)
    surplus = earned - (1 - TOLD["alpha"]) * (earned - above)
    held = [(found.reward, earned), (found.surplus, surplus)]
    lift = ledger_lift(policy)
    if lift is not None:
        held.append(((lift.low, lift.high), above / lift.decisions))
    # What is known exactly has no width: the sum here is rounded otherwise.
    return not all(low - 1e-9 <= value <= high + 1e-9 for (low, high), value in held)


def is_wrong_by_one_look(policy: Any, above: float, earned: float) -> bool:
    """The interval that would hold if somebody looked once, at a time set beforehand, without a ridge."""
    vector = policy.ledger.played - policy.ledger.displaced
    if not policy.ledger.learner_rounds or policy.ridge.count < DIM:
        return False
    width = math.sqrt(vector @ np.linalg.inv(policy.ridge.gram) @ vector)
    return bool(abs(policy.ridge.theta @ vector - above) > NormalDist().inv_cdf(1 - DELTA / 2) * NOISE * width)


@cache
def wrong_runs(name: str) -> int:
    return sum(play(POLICIES[name](), seed, is_wrong) for seed in range(RUNS))


@pytest.mark.parametrize("name", POLICIES)
def test_the_intervals_hold_at_every_round_of_as_many_runs_as_they_promise(name: str) -> None:
    assert wrong_runs(name) <= MOST


def test_an_interval_for_one_look_would_be_caught() -> None:
    # Or the test above could not fail.
    runs = sum(play(POLICIES["SafeLUCB"](), seed, is_wrong_by_one_look) for seed in range(RUNS))
    assert runs > MOST


def test_the_lift_is_proved_once_there_is_enough_to_go_by() -> None:
    policy = surefoot.SafeLUCB(noise=NOISE, **TOLD)
    rng = np.random.default_rng(3)
    for _ in range(2000):
        decision = policy.decide(np.eye(DIM), baseline=0)
        policy.observe(decision, (0.3, 0.6, 0.1)[decision.action] + NOISE * rng.normal())
    lift = ledger_lift(policy)
    assert lift is not None
    assert lift.is_paying
    assert not lift.is_costing
    assert lift.low <= lift.estimate <= lift.high
    assert lift.estimate == pytest.approx(0.3, abs=0.03)


def test_a_misspecification_widens_by_what_it_may_do_in_each_round() -> None:
    plain, bent = (surefoot.SafeLUCB(noise=NOISE, misspecification=eps, **TOLD) for eps in (0.0, 0.01))
    for policy in (plain, bent):
        for _ in range(40):
            policy.observe(policy.decide(np.eye(DIM), baseline=0, hold=True), 0.4)
    assert plain.ledger.baseline_rounds == bent.ledger.baseline_rounds == 40
    # The set is wider, too, and the ball, which holds both, is not.
    low, high = LedgerBounds(bent).less(0.0)
    ball = Ball(1.0).upper(bent.ledger.conserved)
    assert high == pytest.approx(min(ball, bent.confidence_set.upper(bent.ledger.conserved)) + 40 * 0.01)
    assert low < LedgerBounds(plain).less(0.0)[0]


def test_rounds_that_nobody_confirmed_count_at_their_worst_on_both_sides() -> None:
    policy = surefoot.SafeLUCB(noise=NOISE, reward_range=(0.0, 1.0), **TOLD)
    before = LedgerBounds(policy).less(1.0)
    policy.charge(3)
    after = LedgerBounds(policy).less(1.0)
    assert (before[0] - after[0], after[1] - before[1]) == pytest.approx((3.0, 3.0))


def test_the_likelihood_radius_claims_no_ellipsoid() -> None:
    policy = surefoot.SafeLUCB(reward_bounds=(0.0, 1.0), radius="likelihood", **TOLD)
    for _ in range(30):
        policy.observe(policy.decide(np.eye(DIM), baseline=0), 1.0)
    assert isinstance(policy.confidence_set, Ball)
    assert policy.confidence_set.radius == 1.0


@pytest.mark.parametrize(
    "policy",
    [
        surefoot.LUCB(dim=DIM, delta=0.1, noise=0.5, ridge=1.0, theta_bound=1.0, feature_bound=1.0),
        surefoot.UCB(arms=DIM),
        surefoot.ConservativeUCB(arms=DIM, alpha=0.1, delta=0.1),
    ],
    ids=["LUCB", "UCB", "ConservativeUCB"],
)
def test_nothing_is_said_where_nothing_is_known(policy: Any) -> None:
    journal = surefoot.open_journal("memory:")
    shop = Experiment.create(journal, "shop", policy, mode="guarded")
    shop.reward(shop.decide(np.eye(DIM), baseline=0).decision_id, 0.5)
    status = shop.status()
    assert status.lift is None
    assert all(map(math.isnan, (*status.reward_interval, *status.surplus_interval)))


def test_nothing_is_said_while_the_alarm_is_on() -> None:
    policy = surefoot.SafeLUCB(noise=NOISE, **TOLD)
    policy.observe(policy.decide(np.eye(DIM), baseline=0), 0.4)
    policy.report_breach("features", "a row was too long")
    assert ledger_lift(policy) is None
    assert math.isnan(ledger_earnings(policy).reward[0])


def test_a_guards_lift_is_of_its_first_floor_and_is_its_own_interval() -> None:
    metrics = {"cost": surefoot.ceiling(0, 4, alpha=0.5), "sales": surefoot.floor(0, 2, alpha=0.1)}
    guard = surefoot.Guard(delta=0.1, metrics=metrics, seed=1)
    models = Experiment.create(surefoot.open_journal("memory:"), "models", guard, mode="guarded")
    assert models.status().lift is None
    for _ in range(60):
        answer = models.decide(baseline="old", proposal="new")
        models.reward(answer.decision_id, {"cost": 1.0, "sales": 1.5 if answer.source == "learner" else 1.0})
    status = models.status()
    assert status.lift is not None
    assert status.guard is not None
    assert status.lift.metric == "sales"
    assert status.lift.decisions == status.learner_rounds > 0
    sales = status.guard.metrics["sales"]
    assert (status.lift.low, status.lift.high) == (sales.lift_low, sales.lift_high)
    assert math.isnan(status.lift.estimate)
    assert status.lift.confidence == 0.95
    assert status.lift.kind == "floor"


def test_a_guard_estimates_no_lift_outside_of_its_interval_while_the_world_gets_better() -> None:
    # The proposal earns what the baseline earns, and has most of its rounds late, when both earn more.
    rounds, rng = 3000, np.random.default_rng(1)
    guard = surefoot.Guard(alpha=0.3, delta=0.05, seed=1)
    models = Experiment.create(surefoot.open_journal("memory:"), "models", guard, mode="guarded")
    for n in range(rounds):
        answer = models.decide(baseline="old", proposal="new")
        models.reward(answer.decision_id, float(rng.random() < 0.1 + 0.8 * n / rounds))
    status = models.status()
    assert status.lift is not None
    assert status.guard is not None
    assert status.lift.low < 0.0 < status.lift.high
    reward = status.guard.metrics["reward"]
    assert reward.learner_mean - reward.baseline_mean > status.lift.high
    assert math.isnan(status.lift.estimate)


def test_of_a_cost_less_is_what_pays() -> None:
    guard = surefoot.Guard(delta=0.1, metrics={"cost": surefoot.ceiling(0, 4, alpha=0.5, reserve=50)}, seed=1)
    models = Experiment.create(surefoot.open_journal("memory:"), "models", guard, mode="guarded")
    for _ in range(400):
        answer = models.decide(baseline="old", proposal="new")
        models.reward(answer.decision_id, {"cost": 0.0 if answer.source == "learner" else 4.0})
    lift = models.status().lift
    assert lift is not None
    assert lift.high < 0
    assert (lift.kind, lift.is_paying, lift.is_costing) == ("ceiling", True, False)
    worse = replace(lift, low=-lift.high, high=-lift.low)
    assert (worse.is_paying, worse.is_costing) == (False, True)


def shown(path: Path, name: str) -> str:
    """What the command line says of an experiment, in one line."""
    done = CliRunner().invoke(app, ["experiment", "status", str(path), name], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_the_command_line_says_what_a_larger_holdout_would_show(tmp_path: Path) -> None:
    path = tmp_path / "models.db"
    with surefoot.open_journal(path) as journal:
        for name, reserve in (("free", 500.0), ("bound", 0.0)):
            guard = surefoot.Guard(alpha=0.1, delta=0.1, reserve=reserve, goal="save", seed=1)
            models = Experiment.create(journal, name, guard, mode="guarded")
            answers = models.decide_all([{"baseline": "old", "proposal": "new"}] * 60)
            models.reward_all([(answer.decision_id, 0.5) for answer in answers if isinstance(answer, Answer)])
            says = "with min_holdout=0.1 the interval would be about half as wide" in shown(path, name)
            assert says == (models.status().learner_share > 0.9) == (name == "free")


def test_the_command_line_says_what_a_guards_lift_is_about(tmp_path: Path) -> None:
    guard = surefoot.Guard(delta=0.1, metrics={"cost": surefoot.ceiling(0, 4, alpha=0.5, reserve=50)}, seed=1)
    path = tmp_path / "models.db"
    with surefoot.open_journal(path) as journal:
        models = Experiment.create(journal, "models", guard, mode="guarded")
        assert "lift │ - │ what a proposal earns beyond the baseline; not known" in shown(path, "models")
        answers = [models.decide(baseline="old", proposal="new") for _ in range(40)]
        assert "lift │ - │ not proved yet that it pays: -4 to 4 in the cost of a proposal, 95% sure" in shown(
            path, "models"
        )
        for answer in answers:
            models.reward(answer.decision_id, {"cost": 0.0 if answer.source == "learner" else 4.0})
        for _ in range(400):
            answer = models.decide(baseline="old", proposal="new")
            models.reward(answer.decision_id, {"cost": 0.0 if answer.source == "learner" else 4.0})
        assert re.search(
            r"lift │ - │ it pays: proved at decision \d+; now -\S+ to -\S+ in the cost of a proposal, 95%",
            shown(path, "models"),
        )


def test_the_command_line_is_never_certain(tmp_path: Path) -> None:
    policy = surefoot.SafeLUCB(noise=NOISE, **TOLD | {"delta": 1e-5, "alpha": 0.9})
    with surefoot.open_journal(tmp_path / "shop.db") as journal:
        shop = Experiment.create(journal, "shop", policy, mode="guarded")
        for _ in range(200):
            answer = shop.decide(np.eye(DIM), baseline=0)
            shop.reward(answer.decision_id, (0.3, 0.6, 0.1)[answer.action])
        assert "a decision of the learner, 99.999% sure" in shown(tmp_path / "shop.db", "shop")


def test_a_proof_is_found_again_from_the_events_and_is_not_of_the_learner_after_a_restart() -> None:
    journal = surefoot.open_journal("memory:")
    policy = surefoot.SafeLUCB(noise=NOISE, **TOLD | {"alpha": 0.9})
    shop = Experiment.create(journal, "shop", policy, mode="guarded", reward_bounds=(0, 1), snapshot_every=150)
    for _ in range(200):
        answer = shop.decide(np.eye(DIM), baseline=0)
        shop.reward(answer.decision_id, (0.3, 0.6, 0.1)[answer.action])
    proof = shop.status().proof
    assert proof is not None
    assert proof.lift.is_paying
    assert 0 < proof.round < 150
    assert Experiment.open(journal, "shop").status().proof == proof
    assert list(differing(journal.view("shop"))) == []
    shop.reward(shop.decide(np.eye(DIM), baseline=0).decision_id, 7.0)
    shop.acknowledge("renew", reason="a till that counted wrongly")
    assert shop.status().proof is None
