"""The likelihood set over plain arms: its event holds, its bounds are the best there are, its proofs are true."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import surefoot
from surefoot.errors import AssumptionError, ConfigError, ProofError, StateError
from surefoot.safety.facts import Box
from surefoot.safety.likelihood import LIKELIHOOD, Tangent
from tests.policies.safe_runs import most_allowed
from tests.policies.test_likelihood import DELTA, DRAWS, click, loss_at

WORLDS = [(0.4, 0.5, 0.6), (0.0, 1.0, 0.5), (0.02, 0.05, 0.004), (0.97, 0.3, 1.0)]
FIVE = (0.05, 0.075, 0.05, 0.035, 0.025)


def clicks(arms: int, **given: Any) -> surefoot.ConservativeUCB:
    told: dict[str, Any] = {"arms": arms, "alpha": 0.1, "delta": 0.001, "reward_bounds": (0.0, 1.0)}
    return surefoot.ConservativeUCB(**{**told, **given})


def played(policy: Any, means: Any, rounds: int, seed: int) -> list[Any]:
    """Rewards of any kind within the bounds; the decisions."""
    rng, decisions = np.random.default_rng(seed), []
    low, high = policy.settings["reward_bounds"]
    for number in range(rounds):
        decision = policy.decide(baseline=0)
        decisions.append(decision)
        draw = list(DRAWS.values())[number % len(DRAWS)]
        policy.observe(decision, low + (high - low) * draw(rng, means[decision.action]))
    return decisions


def forecast_loss(arms: Any, rewards: Any) -> float:
    """The loss of the forecasts, as docs/mathematics.md has them."""
    sums, counts = np.zeros(max(arms) + 1), np.zeros(max(arms) + 1)
    trust, spent, total = np.full(3, 1 / 3), 0.0, 0.0
    for t, (arm, y) in enumerate(zip(arms, rewards, strict=True)):
        rate = (total + 0.5) / (t + 1)
        own, cautious = ((sums[arm] + told) / (counts[arm] + told / rate) for told in (0.5, 4.0))
        nearby = min(max(cautious, rate / 4), min(4 * rate, 1 - (1 - rate) / 4))
        said = np.clip([own, rate if total < 4 else nearby, rate], 1e-6, 1 - 1e-6)
        p = trust @ said
        spent -= y * math.log(p) + (1 - y) * math.log(1 - p)
        trust = trust * said**y * (1 - said) ** (1 - y)
        trust = (1 - 1 / (t + 3)) * trust / trust.sum() + 1 / (t + 3) / 3
        sums[arm] += y
        counts[arm] += 1
        total += y
    return spent


def test_the_loss_that_is_allowed_is_that_of_forecasts_made_before_their_rewards() -> None:
    rng, policy = np.random.default_rng(1), clicks(4, delta=0.03)
    arms, rewards = rng.integers(4, size=400), rng.random(400) * (rng.random(400) < 0.2)
    for arm, reward in zip(arms, rewards, strict=True):
        policy.learn_logged(np.eye(4)[arm], reward)
    known = policy.likelihood
    assert known is not None
    assert known.allowed == pytest.approx(forecast_loss(arms, rewards) + math.log(1 / 0.03), rel=1e-12)
    assert known.successes.sum() == pytest.approx(rewards.sum())
    assert known.successes.sum() + known.failures.sum() == pytest.approx(400)


def least_by_solver(question: Any, known: Any, ranges: Any) -> float:
    """The least <mu, question> over the set, straight from its definition."""
    counts = np.zeros((question.size, 2))
    counts[known.rows.argmax(axis=1)] = np.c_[known.successes, known.failures]

    def room(means: Any) -> float:
        e = np.clip(known.scale * (means - known.low), 1e-12, 1 - 1e-12)
        return float(known.allowed + counts[:, 0] @ np.log(e) + counts[:, 1] @ np.log(1 - e))

    rates = (counts[:, 0] + 1e-3) / (counts.sum(axis=1) + 2e-3)
    start, best = known.low + rates / known.scale, math.inf
    size = float(np.abs(question).max())
    for share in (1.0, 0.7, 0.4):
        found = minimize(
            lambda means: means @ question / size,
            np.clip(share * start, *np.array(ranges).T),
            bounds=ranges,
            constraints={"type": "ineq", "fun": room},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        if found.success and room(found.x) > -1e-6:
            best = min(best, float(found.x @ question))
    return best


@pytest.mark.parametrize("known", [None, 0.3])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-0.5, 1.5)], ids=str)
def test_the_bound_is_the_least_over_the_set(bounds: tuple[float, float], known: float | None) -> None:
    policy = clicks(4, alpha=0.3, delta=0.1, reward_bounds=bounds, baseline_reward=known)
    low, high = bounds
    means = [(mean - low) / (high - low) for mean in (0.3, 0.6, 0.2, 0.1)]
    rng, tight = np.random.default_rng(5), 0
    for round_ in range(300):
        before = policy.likelihood
        decision = policy.decide(baseline=0)
        found, proof = decision.certificate.guaranteed, decision.certificate.proof
        if round_ % 12 == 11 and any(piece.fact.name == LIKELIHOOD for piece in proof.pieces):
            ranges = [(max(low, 0.0), high) if known is None else (known, known), *[bounds] * 3]
            best = least_by_solver(proof.question, before, ranges)
            size = 1.0 + float(np.abs(proof.question).sum())
            assert found <= best + 1e-6 * size
            assert found >= best - 2e-3 * size
            tight += 1
        policy.observe(decision, low + (high - low) * click(rng, means[decision.action]))
    assert tight >= 15


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("means", WORLDS, ids=str)
def test_the_truth_stays_in_the_set_at_all_times(kind: str, means: tuple[float, ...]) -> None:
    """Arms follow the rewards before them, and whoever stops may look: the worst moment of a run counts."""
    missed = runs_without_the_truth(kind, means, runs=250, rounds=40)
    assert missed <= most_allowed(250, DELTA)


@pytest.mark.long
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("means", WORLDS, ids=str)
def test_the_truth_stays_in_the_set_in_many_longer_runs(kind: str, means: tuple[float, ...]) -> None:
    missed = runs_without_the_truth(kind, means, runs=2_000, rounds=150)
    assert missed <= most_allowed(2_000, DELTA)


def runs_without_the_truth(kind: str, means: tuple[float, ...], *, runs: int, rounds: int, slack: float = 0.0) -> int:
    rng, missed = np.random.default_rng([19, list(DRAWS).index(kind), round(1000 * means[0])]), 0
    for _ in range(runs):
        policy, last = clicks(3, delta=DELTA), 0.0
        rows, rewards, allowed = [], [], []
        for round_ in range(rounds):
            arm = 0 if last > means[0] else int(rng.integers(3)) if round_ % 2 else 1
            last = DRAWS[kind](rng, means[arm])
            policy.core.learn(arm, last)
            rows.append(np.eye(3)[arm])
            rewards.append(last)
            allowed.append(policy.core.likelihood[2])
        losses = loss_at(np.array(means), np.array(rows), np.array(rewards))
        missed += bool((losses > np.array(allowed) - slack).any())
    return missed


def test_the_runs_can_tell_a_set_that_is_too_small() -> None:
    """Without ln(1/delta) far more of the same runs miss the truth than are allowed."""
    small = runs_without_the_truth("clicks", WORLDS[0], runs=60, rounds=40, slack=math.log(1 / DELTA))
    assert small > most_allowed(60, DELTA)


@pytest.mark.parametrize("given", [{}, {"baseline_reward": 0.05}, {"reward_bounds": (0.0, 2.0)}], ids=str)
def test_every_proof_is_granted_by_the_policys_own_set_and_no_better_one_is(given: dict[str, Any]) -> None:
    policy, rng, touched = clicks(5, alpha=0.3, delta=0.05, **given), np.random.default_rng(4), 0
    low, high = policy.settings["reward_bounds"]
    for number in range(600):
        decision = policy.decide(baseline=0)
        if number % 20 == 0:
            certificate = decision.certificate
            proof = certificate.proof
            known = policy.likelihood
            assert known is not None
            facts: list[Any] = [known, Box(low, high), *(p.fact for p in proof.pieces if p.fact.name != LIKELIHOOD)]
            surefoot.check(proof, facts=facts)
            # What is left of a 1e-9 that others may forecast otherwise, and of rounding.
            assert certificate.guaranteed <= proof.value <= certificate.guaranteed + 1e-9 * (1 + number)
            assert decision.source == "baseline" or proof.value >= 0
            for fact in (piece.fact for piece in proof.pieces):
                if isinstance(fact, Tangent):
                    touched += 1
                    better = Tangent(fact.normal, fact.level + 1e-6 * (1 + abs(fact.level)), fact.name, fact.point)
                    assert not known.grants(better)
        policy.observe(decision, low + (high - low) * click(rng, FIVE[decision.action]))
    assert touched >= 10


def test_a_share_alpha_is_free_from_the_first_round_on() -> None:
    """Without a single reward nothing is known, and nothing can be lost that the promise does not grant."""
    policy, tried = clicks(4), 0
    for round_ in range(1, 3_001):
        decision = policy.decide(baseline=0)
        tried += decision.action != 0
        assert tried <= 0.1 * round_
        if decision.source == "learner" and decision.action != 0:
            assert decision.certificate.guaranteed == decision.certificate.proof.value == 0.0
            surefoot.check(decision.certificate.proof)
        policy.observe(decision, 0.0)
    assert tried >= 299


def test_rare_clicks_let_the_learner_in_where_intervals_never_do() -> None:
    kept = {}
    for name, bounds in {"set": (0.0, 1.0), "intervals": None}.items():
        policy, rng = clicks(5, reward_bounds=bounds, noise=0.5), np.random.default_rng(2)
        kept[name] = 0
        for _ in range(12_000):
            decision = policy.decide(baseline=0)
            kept[name] += decision.source == "baseline"
            policy.observe(decision, click(rng, FIVE[decision.action]))
    assert kept["set"] < 7_000
    assert kept["intervals"] >= 10_800  # all but the free share


def test_a_known_default_arm_needs_no_rewards_of_its_own() -> None:
    """Its mean is told, so its rewards enter no loss; those of the others do."""
    policy = clicks(3, baseline_reward=0.05)
    played(policy, (0.05, 0.1, 0.02), 400, seed=0)
    known = policy.likelihood
    assert known is not None
    assert set(known.rows.argmax(axis=1)) == {1, 2}


def test_a_saved_policy_goes_on_to_the_bit() -> None:
    policy = clicks(4, baseline_reward=0.1)
    played(policy, (0.1, 0.2, 0.05, 0.3), 150, seed=3)
    for again in (type(policy).from_state(policy.state()), pickle.loads(pickle.dumps(policy))):
        one, two = (
            played(each, (0.1, 0.2, 0.05, 0.3), 100, seed=4) for each in (pickle.loads(pickle.dumps(policy)), again)
        )
        assert [d.certificate.guaranteed for d in one] == [d.certificate.guaranteed for d in two]
        assert [d.action for d in one] == [d.action for d in two]


def test_a_damaged_state_is_refused() -> None:
    policy = clicks(3)
    played(policy, (0.1, 0.2, 0.05), 30, seed=3)
    state = policy.state()
    for damaged in (state["likelihood"][:-1], np.append(state["likelihood"], 0.0), -1.0 - state["likelihood"]):
        with pytest.raises(StateError):
            surefoot.ConservativeUCB.from_state({**state, "likelihood": damaged})


@pytest.mark.parametrize("arm", [0, 1])
def test_a_reward_beyond_the_bounds_raises_the_alarm(arm: int) -> None:
    policy = clicks(2, alpha=0.4)
    decision = policy.decide(baseline=0)
    while decision.action != arm:
        policy.observe(decision, 0.0)
        decision = policy.decide(baseline=0)
    policy.observe(decision, 1.5)
    assert policy.alarm is not None
    assert policy.alarm.kind == "reward"
    after = policy.decide(baseline=0)
    assert (after.source, after.certificate.guaranteed) == ("baseline", -math.inf)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"reward_bounds": (1.0, 0.0)}, ConfigError, "`low < high` must hold in reward_bounds"),
        ({"reward_bounds": (0.0,)}, ConfigError, r"must be \(low, high\)"),
        ({"reward_bounds": (-2.0, -1.0)}, ConfigError, "`high >= 0` must hold"),
        ({"baseline_reward": 1.5}, AssumptionError, "must lie within reward_bounds"),
        ({"settle_after": 5, "default_reward": 2.0}, ConfigError, "`default_reward` must lie within"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        clicks(3, **given)


def test_noise_may_be_left_out() -> None:
    assert surefoot.ConservativeUCB(arms=2, alpha=0.1, delta=0.1).noise == 1.0
    assert clicks(2, reward_bounds=(0.0, 3.0)).noise == 1.5
    assert clicks(2, noise=0.2).noise == 0.2


def test_a_forged_proof_is_refused() -> None:
    policy = clicks(3, alpha=0.3, delta=0.05)
    decision = next(d for d in played(policy, (0.3, 0.5, 0.2), 200, seed=1)[::-1] if d.source == "learner")
    proof = decision.certificate.proof
    with pytest.raises(ProofError):
        surefoot.check(type(proof)(proof.question, proof.pieces, proof.value + 1e-6, proof.rest))


@pytest.mark.parametrize("row", [[0.2, 0.3, 0.5], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 2.0, 0.0]], ids=str)
def test_a_logged_row_is_one_arm(row: list[float]) -> None:
    policy = surefoot.ConservativeUCB(arms=3, alpha=0.2, delta=0.05, reward_bounds=(0.0, 1.0))
    with pytest.raises(surefoot.errors.InputError, match="1 at the arm"):
        policy.learn_logged(row, 1.0)
    policy.learn_logged([0.0, 1.0, 0.0], 1.0)
