"""Propensities: tested where declared, estimated where there are none; and a baseline that was drawn by chance."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from surefoot.errors import EvidenceError
from surefoot.replay import estimate_propensities, fit_baseline, read_log, replay
from surefoot.replay.doubts import is_set_aside
from surefoot.replay.estimates import Moments, WeightedMean
from surefoot.replay.evaluation import EvaluatorName
from surefoot.replay.log import ArrayLog
from surefoot.replay.propensities import Propensities
from surefoot.replay.replayed_policy import IMPORTANCE, REJECTION, Declared, ReplayedPolicy, problem_of
from surefoot.simulation.policy_specs import Spec
from tests.replay.test_cli import run

Array = NDArray[np.float64]
ODDS = np.array([0.5, 0.2, 0.3])
DECLARED = Declared(noise=0.5, theta_bound=1.5, baseline_reward=0.3, reward_bounds=(0.0, 1.0))
TIMID = Declared(noise=50.0, theta_bound=1.5, baseline_reward=0.3, reward_bounds=(0.0, 1.0))


def drawn_log(
    seed: int, rows: int = 3_000, *, by_context: bool = False, stated: bool = True
) -> tuple[ArrayLog, Array, Array]:
    """Three actions drawn by chance, the baseline what was drawn; with the means and the chances of all actions."""
    rng = np.random.default_rng([4, seed])
    x = rng.random(rows)
    features = np.zeros((rows, 3, 6))
    for action in range(3):
        features[:, action, 2 * action], features[:, action, 2 * action + 1] = 1.0, x
    means = features @ [0.2, 0.3, 0.5, -0.3, 0.3, 0.1]
    odds = np.tile(ODDS, (rows, 1))
    if by_context:
        odds = np.exp(2 * np.stack([x, 1 - x, np.zeros(rows)], axis=1))
        odds /= odds.sum(axis=1, keepdims=True)
    actions = (rng.random((rows, 1)) > np.cumsum(odds, axis=1)).sum(axis=1).clip(0, 2)
    at = np.arange(rows)
    rewards = (rng.random(rows) < means[at, actions]).astype(float)
    log = ArrayLog(
        features=features,
        actions=actions,
        rewards=rewards,
        baselines=actions,
        propensities=odds[at, actions] if stated else None,
    )
    log.follows_log = True
    return log, means, odds


def test_a_log_of_uneven_chances_does_not_pass_as_uniform() -> None:
    log, _, _ = drawn_log(0, 1_000)
    with pytest.raises(EvidenceError, match=r"'0' was played 1\.\d+ times as often as that"):
        replay(log, [Spec("LUCB")], declared=DECLARED, uniform=True)


@pytest.mark.parametrize("evaluator", ["rejection", "importance"])
def test_a_logged_baseline_earns_the_mean_of_all_rewards(evaluator: EvaluatorName) -> None:
    log, _, _ = drawn_log(1)
    (timid, free) = replay(log, [Spec("CLUCB2", alpha=0.01), Spec("LUCB")], declared=TIMID, evaluator=evaluator)
    mean = float(next(log.batches()).rewards.mean())
    for outcome in (timid, free):
        assert outcome.main["baseline"].value == pytest.approx(mean)
    assert timid.learner_rounds == 0
    assert (timid.main["gain"].low, timid.main["gain"].high) == (0, 0)
    assert free.learner_rounds > 0


@pytest.mark.parametrize("evaluator", ["rejection", "importance"])
def test_the_gain_over_a_logged_baseline_covers(evaluator: EvaluatorName) -> None:
    runs, hits = 60, Counter[str]()
    for seed in range(runs):
        log, means, odds = drawn_log(seed)
        (outcome,) = replay(log, [Spec("LUCB")], declared=DECLARED, evaluator=evaluator, seed=seed)
        chances = Propensities(log, evaluator, False, seed)
        mode = REJECTION if evaluator == "rejection" else IMPORTANCE
        player = ReplayedPolicy(Spec("LUCB"), problem_of(DECLARED, log), mode=mode)
        batch = chances.prepared(next(log.batches()))
        chosen = player.play(batch, batch.rewards, chances.usable(chances.of(batch))).chosen
        asked = chosen >= 0
        worth = means[np.arange(len(means)), np.maximum(chosen, 0)] - (odds * means).sum(axis=1)
        gain = outcome.main["gain"]
        hits["gain"] += gain.low <= worth[asked].mean() <= gain.high
    assert hits["gain"] >= binom.ppf(1e-4, runs, 0.93)


def test_a_logged_baseline_is_drawn_afresh_from_the_logged_distribution() -> None:
    log, _, _ = drawn_log(2, 30_000)
    chances = Propensities(log, "rejection", False, 0)
    batch = chances.prepared(next(log.batches()))
    for action in range(3):
        drawn = batch.baselines[batch.actions == action]
        shares = np.bincount(drawn, minlength=3) / drawn.size
        # Independent of what was logged: the same shares whatever that was, within five standard errors.
        assert np.all(np.abs(shares - ODDS) < 5 * np.sqrt(ODDS * (1 - ODDS) / drawn.size))


def test_a_logged_baseline_whose_chances_depend_on_the_context_needs_a_model() -> None:
    log, _, _ = drawn_log(3, by_context=True)
    with pytest.raises(EvidenceError, match="depend on the context"):
        replay(log, [Spec("LUCB")], declared=DECLARED)
    (outcome,) = replay(estimate_propensities(log), [Spec("LUCB")], declared=DECLARED)
    assert outcome.rounds > 0


def test_estimated_propensities_come_near_the_true_ones_and_no_row_explains_itself() -> None:
    log, _, odds = drawn_log(5, 20_000, by_context=True, stated=False)
    batch = next(log.batches())
    found = estimate_propensities(log).chances(batch, 0)
    # The model is right, so that its error is that of some six numbers from ten thousand rows.
    assert np.abs(found - odds).max() < 5 * np.sqrt(6 / 10_000)
    aside = is_set_aside(np.arange(len(batch)))
    changed = ArrayLog(
        features=batch.features,
        actions=np.where(aside, 2 - batch.actions, batch.actions),
        rewards=batch.rewards[:, 0],
        baselines=0,
    )
    other = estimate_propensities(changed).chances(batch, 0)
    np.testing.assert_array_equal(other[aside], found[aside])
    assert np.abs(other[~aside] - found[~aside]).max() > 0.05


def test_weighting_by_estimated_propensities_takes_out_what_the_context_put_in() -> None:
    """Action 0 is played where it pays: the mean of its rows is too high, and weighting by estimates mends it."""
    runs, hits, plain = 40, 0, 0
    for seed in range(runs):
        log, means, _ = drawn_log(seed, 4_000, by_context=True, stated=False)
        batch = next(log.batches())
        named = ArrayLog(features=batch.features, actions=batch.actions, rewards=batch.rewards[:, 0], baselines=0)
        found = fit_baseline(estimate_propensities(named), reward_bounds=(0.0, 1.0)).baseline_reward
        naive = fit_baseline(named, reward_bounds=(0.0, 1.0)).baseline_reward
        truth = float(means[:, 0].mean())
        hits += found.low <= truth <= found.high
        plain += naive.low <= truth <= naive.high
    assert hits >= binom.ppf(1e-4, runs, 0.93)
    assert plain < 0.7 * runs


def sampler_log(seed: int, rows: int = 4_000) -> ArrayLog:
    """In one row of 25 action 1 pays 1 instead of 0.2, and was hardly ever drawn there."""
    rng = np.random.default_rng([6, seed])
    rich = rng.random(rows) < 0.04
    chance = np.where(rich, 0.05, 0.5)
    actions = (rng.random(rows) < chance).astype(np.int64)
    means = np.where(actions == 1, np.where(rich, 1.0, 0.2), 0.1)
    rewards = (rng.random(rows) < means).astype(float)
    features = np.tile(np.eye(2), (rows, 1, 1))
    given = np.where(actions == 1, chance, 1 - chance)
    return ArrayLog(features=features, actions=actions, rewards=rewards, baselines=0, propensities=given)


class Always:
    """Plays row 1."""

    def decide(self, rows: Array, *, baseline: int, baseline_reward: float | None = None) -> SimpleNamespace:
        return SimpleNamespace(action=1, source="learner")

    def observe(self, decision: object, reward: float) -> None:
        pass


def test_a_few_tiny_propensities_do_not_throw_away_all_other_rows() -> None:
    runs, hits, gained = 40, 0, 0
    for seed in range(runs):
        policy = Spec(lambda _: Always(), name="always")
        (outcome,) = replay(sampler_log(seed), [policy], declared=DECLARED, seed=seed)
        assert outcome.rounds > 800  # a fifth of them, if all were thinned to the least
        reward, gain = outcome.main["reward"], outcome.main["gain"]
        hits += reward.low <= 0.96 * 0.2 + 0.04 <= reward.high
        gained += gain.low <= 0.96 * 0.1 + 0.04 * 0.9 <= gain.high
    assert min(hits, gained) >= binom.ppf(1e-4, runs, 0.9)  # eight rows carry a fifth of it: 93% asks for more of them


def test_a_mean_with_weights_of_one_is_the_plain_one_and_with_others_the_textbooks() -> None:
    rng = np.random.default_rng(0)
    values, weight = rng.random(700) + 5, rng.uniform(0.5, 4, size=700)
    plain, ones, uneven = Moments(), WeightedMean(), WeightedMean()
    for part in np.array_split(np.arange(700), 6):
        plain.add(values[part])
        ones.add(values[part], np.ones(part.size))
        uneven.add(values[part], weight[part])
    expected, found = plain.interval(0.9, (0.0, 10.0)), ones.interval(0.9, (0.0, 10.0))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    mean = float((weight * values).sum() / weight.sum())
    rows = weight.sum() ** 2 / (weight**2).sum()
    stderr = np.sqrt((weight**2 * (values - mean) ** 2).sum() * rows / (rows - 1)) / weight.sum()
    found = uneven.interval(0.9, (0.0, 10.0))
    assert found.value == pytest.approx(mean, rel=1e-12)
    assert found.high - found.value == pytest.approx(1.6448536 * stderr, rel=1e-6)


def test_a_short_log_and_a_table_of_labels_have_no_propensities_to_estimate() -> None:
    log, _, _ = drawn_log(0, 40, stated=False)
    with pytest.raises(EvidenceError, match="at least 30 rows in each half"):
        estimate_propensities(log)
    full = ArrayLog(features=np.ones((4, 2, 2)), actions=0, rewards=np.ones((4, 2)), baselines=0)
    with pytest.raises(EvidenceError, match="nothing was drawn"):
        estimate_propensities(full)


def test_the_command_estimates_and_says_what_that_costs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.random(2_000)
    action = np.where(rng.random(2_000) < 0.2 + 0.6 * x, "mail", "banner")
    reward = (rng.random(2_000) < 0.2 + 0.3 * (action == "mail")).astype(int)
    pl.DataFrame({"x": x, "action": action, "reward": reward}).write_csv(tmp_path / "log.csv")
    args = ("replay", str(tmp_path / "log.csv"), "--policy", "LUCB", "--estimate-propensities", "--json")
    for baseline in ("logged", "banner"):
        found = json.loads(run(*args, "--baseline", baseline))
        (doubt,) = [entry for entry in found["doubts"] if entry["assumption"].startswith("Propensities")]
        assert doubt["is_doubtful"]
        assert "intervals are too narrow by it" in doubt["seen"]
        assert found["policies"][0]["rounds"] > 100
    assert estimate_propensities(read_log(tmp_path / "log.csv", baseline="mail")).rows == 2_000
