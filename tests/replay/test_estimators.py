"""Estimators on logs with known truth: intervals cover at their level, and questions without an answer are refused."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from surefoot.errors import EvidenceError, LogError
from surefoot.replay.estimates import ImportanceWeighting, Moments, robust_terms, weights
from surefoot.replay.evaluation import replay
from surefoot.replay.log import ArrayLog
from surefoot.replay.replayed_policy import Declared
from surefoot.simulation.policy_specs import Spec
from tests.replay.logs import linear_log, sharp

LEVEL = 0.9
RUNS = 300
# By chance alone, fewer than this many of the runs are covered once in 10,000 test suites.
LEAST = int(binom.ppf(1e-4, RUNS, LEVEL))
MOST = int(binom.ppf(1 - 1e-4, RUNS, LEVEL))


def covered(estimate: object, truth: float) -> bool:
    low, high = estimate.low, estimate.high  # type: ignore[attr-defined]
    return bool(low <= truth <= high)


@pytest.mark.parametrize("binary", [False, True], ids=["normal", "binary"])
def test_weighted_intervals_of_a_fixed_policy_cover_at_their_level(binary: bool) -> None:
    """The question: what would action 2 have earned, and the baseline, and the difference? Truth: their means."""
    hits = {(name, what): 0 for name in ("ips", "snips", "dr") for what in ("reward", "baseline", "gain")}
    for seed in range(RUNS):
        found, truth = _weighted(seed, binary)
        for key in hits:
            hits[key] += covered(found.estimate(*key, LEVEL), truth[key[1]])
    assert all(LEAST <= number <= MOST for number in hits.values()), hits


def _weighted(seed: int, binary: bool) -> tuple[ImportanceWeighting, dict[str, float]]:
    # The same contexts every time, so that the truth is one number: theta and rows come from seed 0.
    truth = linear_log(700, seed=0, chances=sharp)
    rng = np.random.default_rng([1, seed])
    batch, means = truth.log.batch, truth.means
    odds, at = sharp(means), np.arange(len(batch))
    actions = (rng.random((700, 1)) > np.cumsum(odds, axis=1)).sum(axis=1).clip(0, 3)
    noise = rng.normal(size=700)
    mean = means[at, actions]
    rewards = (rng.random(700) < mean).astype(float) if binary else mean + 0.2 * noise
    given, asked, base = odds[at, actions], np.full(700, 2), np.zeros(700, dtype=np.int64)
    weight = np.stack([weights(actions, asked, given), weights(actions, base, given)])
    # A reward model that is wrong on purpose: doubly robust estimates must not need it.
    model = 0.8 * means + 0.1
    robust = np.stack(
        [robust_terms(weight[i], rewards, model[at, d], model[at, actions]) for i, d in enumerate((asked, base))]
    )
    found = ImportanceWeighting(bounds=(0.0, 1.0) if binary else None)
    for part in (slice(0, 300), slice(300, 700)):
        found.add(weight[:, part], rewards[part], robust[:, part])
    reward, baseline = float(means[:, 2].mean()), float(means[:, 0].mean())
    return found, {"reward": reward, "baseline": baseline, "gain": reward - baseline}


@pytest.mark.parametrize("policy", ["LUCB", "CLUCB2"])
def test_shadow_intervals_cover_what_the_decisions_of_a_learner_are_worth(policy: str) -> None:
    """The truth differs from run to run: the mean reward of what this run's policy chose, averaged over its rounds."""
    spec = Spec(policy, alpha=None if policy == "LUCB" else 0.5)
    hits, runs = dict.fromkeys(("dr", "ips", "snips"), 0), 200
    least = int(binom.ppf(1e-4, runs, LEVEL))
    for seed in range(runs):
        truth = linear_log(500, seed=1_000 + seed, chances=sharp, binary=True)
        (outcome,) = replay(truth.log, [spec], declared=truth.declared, evaluator="importance", level=LEVEL)
        value = _value_of_choices(truth, spec)
        for name in hits:
            hits[name] += covered(outcome.estimates[name]["reward"], value)
    assert all(number >= least for number in hits.values()), hits


def _value_of_choices(truth: object, spec: Spec) -> float:
    from surefoot.replay.replayed_policy import IMPORTANCE, ReplayedPolicy, problem_of

    log, means, declared = truth.log, truth.means, truth.declared  # type: ignore[attr-defined]
    batch = log.batch
    player = ReplayedPolicy(spec, problem_of(declared, log), mode=IMPORTANCE)
    chosen = player.play(batch, batch.rewards, np.ones(len(batch), dtype=np.bool_)).chosen
    return float(means[np.arange(len(batch)), chosen].mean())


def test_estimates_are_the_textbook_formulas_computed_by_hand() -> None:
    actions, asked = np.array([0, 1, 1, 0]), np.array([1, 1, 0, 0])
    given, rewards = np.array([0.5, 0.25, 0.75, 0.2]), np.array([1.0, 2.0, 3.0, 4.0])
    weight = weights(actions, asked, given)
    assert weight.tolist() == [0.0, 4.0, 0.0, 5.0]
    found = ImportanceWeighting(bounds=None)
    found.add(np.stack([weight, weight]), rewards, np.stack([weight, weight]))
    assert found.estimate("ips", "reward", 0.95).value == (8 + 20) / 4
    ratio = found.estimate("snips", "reward", 0.95)
    assert ratio.value == pytest.approx(28 / 9)
    influence = weight * (rewards - 28 / 9) / (9 / 4)
    assert ratio.high - ratio.value == pytest.approx(1.959964 * math.sqrt((influence**2).sum()) / 4, rel=1e-6)
    terms = robust_terms(weight, rewards, np.array([1.0, 1, 1, 1]), np.array([1.0, 2, 3, 4]))
    assert terms.tolist() == [1.0, 1.0, 1.0, 1.0]  # a perfect model leaves nothing to weigh


def test_moments_in_batches_are_moments_at_once() -> None:
    values = np.random.default_rng(0).normal(5.0, 2.0, size=1_001)
    moments = Moments()
    for part in np.split(values, [1, 1, 400]):
        moments.add(part)
    assert moments.mean == pytest.approx(values.mean(), rel=1e-12)
    assert moments.variance == pytest.approx(values.var(ddof=1), rel=1e-12)


def deterministic(**changes: object) -> ArrayLog:
    truth = linear_log(50, seed=0)
    batch = truth.log.batch
    given: dict[str, object] = {
        "features": batch.features, "actions": batch.actions, "rewards": batch.rewards[:, 0], "baselines": 0,
        "propensities": np.ones(50), **changes,
    }  # fmt: skip
    return ArrayLog(**given)  # type: ignore[arg-type]


SETTINGS = Declared(noise=0.2, theta_bound=1.0, baseline_reward=0.5)


@pytest.mark.parametrize("evaluator", ["rejection", "importance"])
def test_a_log_without_chance_cannot_answer_and_says_so(evaluator: str) -> None:
    with pytest.raises(EvidenceError, match="every propensity is 1"):
        replay(deterministic(), [Spec("LUCB")], declared=SETTINGS, evaluator=evaluator)  # type: ignore[arg-type]
    with pytest.raises(EvidenceError, match="needs the chance with which each logged action was drawn"):
        replay(deterministic(propensities=None), [Spec("LUCB")], declared=SETTINGS, evaluator=evaluator)  # type: ignore[arg-type]


def test_a_single_certain_row_that_the_policy_would_have_changed_is_named() -> None:
    batch = linear_log(50, seed=0).log.batch
    chances = np.full(50, 0.25)
    certain = int(np.flatnonzero(batch.actions != 0)[3])
    chances[certain] = 1.0
    with pytest.raises(EvidenceError, match=rf"in line {certain + 1} .* the logged action was certain"):
        replay(
            deterministic(propensities=chances), [Spec("CLUCB2", alpha=0.1)], declared=SETTINGS, evaluator="importance"
        )


def test_full_needs_every_reward_and_rewards_must_keep_their_declared_range() -> None:
    with pytest.raises(EvidenceError, match="reward of every action"):
        replay(deterministic(), [Spec("LUCB")], declared=SETTINGS, evaluator="full")
    narrow = Declared(noise=0.2, theta_bound=1.0, baseline_reward=0.5, reward_bounds=(0.0, 0.1))
    with pytest.raises(LogError, match=r"declared range \[0, 0.1\], but line 1 has"):
        replay(linear_log(50, seed=0).log, [Spec("LUCB")], declared=narrow)
