"""The watch: the holdout's coin, what the bets are worth, what they catch, and how rarely they are wrong."""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

import surefoot
from surefoot.core.native import HORIZON, SHIFTS, Bets
from surefoot.errors import ConfigError, InputError
from tests.worlds import World

ARMS = surefoot.Catalogue(np.eye(2))
DELTA = 0.05
BEFORE = (0.3, 0.4)  # what the baseline and the learner's arm earn
WORLDS = {"rise to 0.6": (0.6, 0.4), "rise to 0.9": (0.9, 0.4), "fall to 0.1": (0.3, 0.1)}


def watched(**extra: Any) -> surefoot.SafeLUCB:
    given: dict[str, Any] = {"dim": 2, "alpha": 0.1, "delta": DELTA, "noise": 0.5, "theta_bound": math.sqrt(2)}
    given |= {"feature_bound": 1.0, "reward_range": (0.0, 1.0), "holdout": 0.02}
    return surefoot.SafeLUCB(**{**given, **extra})


class Run(NamedTuple):
    caught: int  # rounds decided when the alarm came; 0 if it did not
    kept: float  # the least of earned / ((1 - alpha) owed) at any round
    baseline_rounds: int
    earned: float


def play(policy: Any, after: tuple[float, float], seed: int, rounds: int = 20_000, change: int = 4_000) -> Run:
    """Two plain arms with rewards 0 or 1, whose means change once."""
    luck = np.random.default_rng(seed).random(rounds)
    earned = owed = 0.0
    kept = math.inf
    for round_ in range(rounds):
        means = BEFORE if round_ < change else after
        decision = policy.decide(ARMS, baseline=0)
        mean = means[decision.action]
        earned, owed = earned + mean, owed + means[0]
        kept = min(kept, earned / (0.9 * owed))
        policy.observe(decision, float(luck[round_] < mean))
    caught = policy.alarm.round if policy.alarm is not None else 0
    return Run(caught, kept, policy.ledger.baseline_rounds, earned)


@pytest.mark.parametrize("runs", [4, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.parametrize("world", WORLDS)
def test_a_change_late_in_life_is_caught(world: str, runs: int, record_property: Any) -> None:
    made = [play(watched(seed=seed), WORLDS[world], seed) for seed in range(runs)]
    caught = [run.caught for run in made if run.caught > 4_000]
    record_property("kept", [min(run.kept for run in made), float(np.median([run.kept for run in made]))])
    record_property("rounds until it was caught", float(np.median(caught)) - 4_000)
    assert len(caught) >= 0.95 * runs
    assert all(run.caught == 0 or run.caught > 4_000 for run in made)


def test_the_alarm_says_what_was_seen_when_and_by_how_much() -> None:
    policy: Any = watched(seed=1)
    play(policy, WORLDS["fall to 0.1"], seed=1, rounds=5_000)
    assert (policy.alarm.kind, policy.responses) == ("drift", ("stay", "relearn", "renew"))
    assert "rewards of the learner lay on average 0.3" in policy.alarm.text
    assert "below what all earlier ones predict" in policy.alarm.text
    assert "at most 0.0045" in policy.alarm.text
    since = int(policy.alarm.text.split("since about round ")[1].split(",")[0])
    assert abs(since - 4_000) < 100
    decision = policy.decide(ARMS, baseline=0)
    assert (decision.source, decision.certificate.margin, decision.probability) == ("baseline", -math.inf, 1.0)


def test_a_restart_begins_new_bets_with_their_share_of_delta() -> None:
    policy = watched(seed=1, delta=0.1, watch_share=0.3, realised_share=0.2)
    spent = 0.0
    for _ in range(30):
        spent += policy.core.settings.delta + policy.core.settings.sum_delta  # of the set, and of the realised sum
        policy.observe(policy.decide(ARMS, baseline=0), 1.0)
        assert policy.state()["watch"][0] == 1.0
        policy.report_breach("drift", "a test")
        policy.acknowledge("renew")
        assert np.array_equal(policy.state()["watch"], Bets().save())
    assert spent == pytest.approx(0.7 * 0.1, rel=1e-8)


def false_alarms(world: str, runs: int, rounds: int, **extra: Any) -> int:
    alarms = 0
    for seed in range(runs):
        if world == "arms":
            policy = watched(seed=seed, holdout=0.05, **extra)
            alarms += play(policy, BEFORE, seed, rounds).caught > 0
            continue
        drawn = World(np.random.default_rng(seed), 3, 5, 0.3, changing=True, moving=True)
        policy = surefoot.SafeLUCB(
            alpha=0.3, holdout=0.05, seed=seed, **{**drawn.settings(ridge=0.3, delta=DELTA), **extra}
        )
        for _ in range(rounds):
            rows, baseline, means = drawn.round()
            decision = policy.decide(rows, baseline=baseline)
            policy.observe(decision, drawn.reward(float(means[decision.action])))
        alarms += policy.alarm is not None
    return alarms


@pytest.mark.parametrize(
    ("runs", "rounds"), [(12, 600), pytest.param(1_000, 3_000, marks=pytest.mark.long)], ids=["quick", "long"]
)
@pytest.mark.parametrize("world", ["arms", "contexts"])
def test_where_nothing_changes_false_alarms_keep_to_their_share(world: str, runs: int, rounds: int) -> None:
    delta, share = 0.5, 0.9
    alarms = false_alarms(world, runs, rounds, delta=delta, watch_share=share, restart_share=0.0)
    assert alarms <= int(binom.isf(1e-6, runs, share * delta))


@pytest.mark.parametrize(("scale", "is_kept"), [(1.0, True), (1.5, False)])
def test_bets_on_known_means_are_lost_as_often_as_they_should_be(scale: float, is_kept: bool) -> None:
    """Nothing is predicted here, so nothing is given away; noise beyond what was declared breaks the limit."""
    runs, delta, alarms = 400, 0.5, 0
    errors = scale * np.random.default_rng(2).normal(size=(runs, 500))
    for row in errors:
        bets = Bets()
        for round_, error in enumerate(row):
            bets.bet(bool(round_ % 3), error, round_ + 1.0)
            if bets.log_evidence(0.0, 1.0, 0.0, 1.0) >= math.log(1.0 / delta):
                alarms += 1
                break
    assert (alarms <= int(binom.isf(1e-6, runs, delta))) == is_kept


@pytest.mark.parametrize(("ridge", "noise"), [(0.3, 0.5), (2.5, 0.2)])
def test_the_evidence_never_exceeds_what_any_theta_leaves_of_the_bets(ridge: float, noise: float) -> None:
    """By brute force over all starts and thetas: sum of weighted likelihoods over that of the best theta."""
    rng, bound = np.random.default_rng(5), 1.0
    rows = rng.normal(size=(60, 2)) / 2.0
    rewards = rows @ [0.3, 0.6] + noise * rng.normal(size=60) + np.where(np.arange(60) > 40, 0.7, 0.0)
    learner = rng.random(60) < 0.6
    bets, errors, surprises = Bets(), np.zeros(60), 0.0
    gram, moment = ridge * np.eye(2), np.zeros(2)
    for i, (row, reward) in enumerate(zip(rows, rewards, strict=True)):
        errors[i] = reward - row @ np.linalg.solve(gram, moment)
        gram, moment = gram + np.outer(row, row), moment + reward * row
        surprises += errors[i] ** 2 * float(row @ np.linalg.solve(gram, row))
        bets.bet(bool(learner[i]), errors[i] / noise, float(i + 1))
    evidence = bets.log_evidence(surprises, noise, ridge, bound)
    wealth = 0.0
    for shift, side in itertools.product(SHIFTS, (False, True)):
        own = errors[learner == side] / noise
        for k in range(own.size):
            share = HORIZON / ((HORIZON + k) * (HORIZON + k + 1))
            wealth += share * math.exp(float(np.sum(shift * own[k:] - shift**2 / 2))) / (2 * len(SHIFTS))
    angles = np.linspace(0.0, 2.0 * np.pi, 200)
    thetas = [r * np.array([np.cos(a), np.sin(a)]) for r in np.linspace(0.0, bound, 30) for a in angles]
    best = min(float(np.sum((rewards - rows @ theta) ** 2)) for theta in thetas)
    exact = math.log(wealth) + (best - float(np.sum(errors**2))) / (2.0 * noise**2)
    assert evidence <= exact
    assert evidence > exact - ridge * bound**2 / (2.0 * noise**2) - 0.1


def test_the_coin_is_recorded_with_the_propensity_of_who_played() -> None:
    policy = watched(seed=7, holdout=0.2)
    rng, held, allowed = np.random.default_rng(7), 0, 0
    for _ in range(3_000):
        decision = policy.decide(ARMS, baseline=0)
        if decision.certificate.is_safe:
            allowed += 1
            held += decision.certificate.is_held_out
            assert (decision.source == "baseline") == (decision.draw < 0.2) == decision.certificate.is_held_out
            assert decision.probability == (0.2 if decision.source == "baseline" else 0.8)
        else:
            assert (decision.source, decision.probability) == ("baseline", 1.0)
            assert math.isnan(decision.draw)
        if decision.certificate.is_held_out:
            assert decision.certificate.explain().startswith("Played the baseline, by the holdout coin: action")
        policy.observe(decision, float(rng.random() < BEFORE[decision.action]))
    assert allowed > 1_000
    assert binom.ppf(1e-6, allowed, 0.2) <= held <= binom.isf(1e-6, allowed, 0.2)


def test_without_a_seed_the_coins_come_from_the_system() -> None:
    rows = np.array([[1.0, 0.0], [0.6, 0.0]])  # the learner may play at once: ten of something pay more than six of it
    pair = (watched(reward_range=(0.05, 1.0)), watched(reward_range=(0.05, 1.0)))
    first, second = ([policy.decide(rows, baseline=1).draw for _ in range(3)] for policy in pair)
    assert not any(map(math.isnan, first))
    assert first != second


def test_a_coin_that_cannot_have_fallen_like_this_is_not_recalled() -> None:
    policy = watched()
    for draw, source, action in ((0.5, "baseline", 0), (0.01, "learner", 1), (1.5, "learner", 1)):
        with pytest.raises(InputError, match="cannot have let the"):
            policy.recall(np.eye(2), baseline=0, action=action, source=source, draw=draw)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="this policy has none"):
        watched(holdout=None).recall(np.eye(2), baseline=0, action=1, source="learner", draw=0.5)
    assert policy.rounds == 0


def test_a_policy_without_a_holdout_is_what_it_was() -> None:
    policy = watched(holdout=None)
    assert not {"holdout", "watch_share", "seed"} & policy.settings.keys()
    assert "watch" not in policy.state()
    assert policy.holdout == 0.0
    assert watched(holdout=0.0).settings == policy.settings
    decision = policy.decide(ARMS, baseline=0)
    assert (decision.probability, str(decision.draw)) == (1.0, "nan")


@pytest.mark.parametrize("name", ["SafeLUCB", "CLUCB"])
def test_a_baseline_that_no_longer_earns_what_is_declared_is_caught(name: str) -> None:
    """Its rewards do not enter the confidence set, but they are bet on."""
    made: dict[str, Any] = {"SafeLUCB": watched, "CLUCB": clucb}
    policy, rng = made[name](holdout=0.1), np.random.default_rng(3)
    for round_ in range(600):
        decision = policy.decide(ARMS, baseline=0, baseline_reward=0.3, hold=True)
        policy.observe(decision, float(rng.random() < (0.3 if round_ < 300 else 0.7)))
    assert policy.ridge.count == 0
    assert (policy.alarm.kind, policy.alarm.round > 300) == ("drift", True)
    assert "rewards of the baseline lay on average 0.4" in policy.alarm.text


def clucb(**extra: Any) -> surefoot.CLUCB:
    return surefoot.CLUCB(
        dim=2, alpha=0.1, delta=DELTA, noise=0.5, ridge=0.5, theta_bound=1.5, feature_bound=1.0, **extra
    )


def test_settings_of_the_watch_are_checked() -> None:
    for extra in ({"holdout": 1.0}, {"holdout": -0.1}, {"watch_share": 0.0}, {"watch_share": 1.0}, {"seed": 0.5}):
        with pytest.raises(ConfigError, match=next(iter(extra))):
            watched(**extra)
    with pytest.raises(ConfigError, match="misspecification=0"):
        watched(misspecification=0.01)


def test_logged_rows_are_learned_beside_a_watch() -> None:
    policy = watched()
    policy.learn_logged([1.0, 0.0], 0.5)
    assert policy.ridge.count == 1
    with pytest.raises(InputError, match="2 entries, but got 4"):
        policy.learn_logged([1.0, 0.0, 0.0, 0.0], 0.5)
