"""Rejection replay is a live run: on randomised logs, rounds that count are distributed as if the policy had played."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstwobign

from surefoot.replay.estimates import Estimate
from surefoot.replay.evaluation import replay
from surefoot.replay.log import ArrayLog
from surefoot.replay.replayed_policy import FULL, REJECTION, Declared, ReplayedPolicy, problem_of
from surefoot.simulation.policy_specs import Spec
from tests.replay.logs import Truth, linear_log, sharp

ROUNDS, RUNS = 12, 400
CHANCE = 1e-4
THETA = np.array([0.9, 0.3])
ROWS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])


def distance(first: list[float], second: list[float]) -> float:
    """Kolmogorov and Smirnov's distance between two samples; ties only make the test more careful."""
    at = np.sort(np.concatenate([first, second]))
    places = [np.searchsorted(np.sort(sample), at, side="right") / len(sample) for sample in (first, second)]
    return float(np.abs(places[0] - places[1]).max())


def small_world(rng: np.random.Generator, rounds: int, *, uneven: bool) -> tuple[ArrayLog, ArrayLog]:
    """One log of chance, and one full table of the same kind of rounds: in half of them every action pays half.

    Uneven chances favour the good actions where they pay more, so that who ignores them sees too many good rounds.
    """
    is_good = rng.random(rounds) < 0.5
    features = np.where(is_good, 1.0, 0.5)[:, None, None] * ROWS
    drawn = (rng.random((rounds, 3)) < features @ THETA).astype(float)
    odds = np.full((rounds, 3), 1 / 3)
    if uneven:
        odds = np.where(is_good[:, None], [[0.45, 0.45, 0.1]], [[0.1, 0.1, 0.8]])
    actions = (rng.random((rounds, 1)) > np.cumsum(odds, axis=1)).sum(axis=1).clip(0, 2)
    at = np.arange(rounds)
    common: dict[str, Any] = {"features": features, "baselines": 0, "feature_bound": 1.0 + 1e-9}
    logged = ArrayLog(actions=actions, rewards=drawn[at, actions], propensities=odds[at, actions], **common)
    return logged, ArrayLog(actions=0, rewards=drawn, **common)


DECLARED = Declared(noise=0.3, theta_bound=1.0, baseline_reward=0.675)


def first_rounds(log: ArrayLog, spec: Spec, mode: int, rng: np.random.Generator, least: float) -> tuple[float, float]:
    """What the first rounds that count have earned, and how often they chose the first row."""
    batch = log.batch
    usable = np.ones(len(batch), dtype=np.bool_)
    if mode == REJECTION:
        usable = rng.random(len(batch)) * batch.propensities < least
    played = ReplayedPolicy(spec, problem_of(DECLARED, log), mode=mode).play(batch, batch.rewards, usable)
    counted = np.flatnonzero(played.fates)[:ROUNDS]
    assert counted.size == ROUNDS
    columns = played.chosen[counted] if mode == FULL else np.zeros(ROUNDS, dtype=np.int64)
    return float(batch.rewards[counted, columns].sum()), float((played.chosen[counted] == 0).sum())


@pytest.mark.parametrize("uneven", [False, True], ids=["even chances", "uneven chances"])
@pytest.mark.parametrize("spec", [Spec("LUCB"), Spec("CLUCB", alpha=0.6)], ids=lambda spec: spec.policy)
def test_rejection_replay_is_distributed_as_a_live_run(spec: Spec, uneven: bool) -> None:
    rng = np.random.default_rng(7)
    replayed, live = [], []
    for _ in range(RUNS):
        # Enough rows that the twelve rounds are always there: a run that stops early would be another question.
        logged, table = small_world(rng, 400, uneven=uneven)
        replayed.append(first_rounds(logged, spec, REJECTION, rng, 0.1 if uneven else 1 / 3))
        live.append(first_rounds(table, spec, FULL, rng, 1.0))
    bound = float(kstwobign.isf(CHANCE / 2)) * np.sqrt(2 / RUNS)
    for measure in range(2):
        assert distance([r[measure] for r in replayed], [r[measure] for r in live]) < bound
    assert len({r[1] for r in live}) > 2  # the runs do differ: the test could fail


def test_a_replay_that_ignores_uneven_chances_is_caught_by_the_same_test() -> None:
    rng = np.random.default_rng(7)
    replayed, live = [], []
    for _ in range(RUNS):
        logged, table = small_world(rng, 400, uneven=True)
        replayed.append(first_rounds(logged, Spec("LUCB"), REJECTION, rng, 1.0))  # no thinning
        live.append(first_rounds(table, Spec("LUCB"), FULL, rng, 1.0))
    bound = float(kstwobign.isf(CHANCE / 2)) * np.sqrt(2 / RUNS)
    assert distance([r[0] for r in replayed], [r[0] for r in live]) > bound


def test_thinning_leaves_every_action_the_same_chance() -> None:
    truth = linear_log(60_000, seed=2, chances=sharp)
    (outcome,) = replay(truth.log, [Spec("LUCB")], declared=truth.declared)
    batch = truth.log.batch
    expected = 60_000 * float(batch.propensities.min())  # each row counts with the smallest chance, whatever is chosen
    assert abs(outcome.rounds - expected) < 5 * np.sqrt(expected)


def test_rejection_reports_the_reward_of_its_rounds_and_the_baselines_own() -> None:
    truth = linear_log(30_000, seed=4)
    free, kept = replay(truth.log, [Spec("LUCB"), Spec("CLUCB", alpha=0.1)], declared=truth.declared)
    assert contains(free.main["baseline"], float(truth.means[:, 0].mean()), truth)
    assert free.main["gain"].low > 0
    assert kept.below == {0.1: 0}
    assert 0 < kept.learner_rounds < kept.rounds
    assert kept.free_from is not None
    assert kept.curves["round"][-1] == kept.rounds
    assert np.all(np.diff(kept.curves["round"]) > 0)


def contains(estimate: Estimate, value: float, truth: Truth) -> bool:
    reach = (estimate.high - estimate.low) / 2
    return abs(estimate.value - value) < 2.5 * reach  # nearly five standard errors


def test_the_same_seed_gives_the_same_replay() -> None:
    truth = linear_log(3_000, seed=4, chances=sharp)
    runs = [replay(truth.log, [Spec("LUCB")], declared=truth.declared, seed=s)[0].as_dict() for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
