"""A guard in a replay: it plays beside the linear policies, keeps its floor where no model is right, and is offered."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import surefoot
from surefoot.errors import ConfigError
from surefoot.replay import Declared, guarded, replay, verdict_of
from surefoot.replay.log import ContextLog, classification
from surefoot.replay.replayed_policy import GuardedLUCB
from surefoot.replay.verdict import table_rows
from surefoot.simulation import Spec
from tests.replay.logs import linear_log
from tests.replay.test_cli import run
from tests.replay.test_fit import clicks

BOUNDS = (0.0, 1.0)


def test_a_guard_gains_on_a_log_and_its_gain_covers_no_less_than_it_could() -> None:
    truth = linear_log(12_000, seed=4, binary=True)
    guard = guarded(0.1, delta=0.01, ridge=1.0, reward_bounds=BOUNDS)
    (outcome,) = replay(truth.log, [guard], declared=truth.declared)
    assert outcome.spec.label == "Guard, α = 0.1"
    assert 0.1 < outcome.learner_share < 1
    differing, learner = outcome.differing_rounds, outcome.differing_learner_rounds
    assert differing is not None
    assert learner is not None
    assert 0 < learner < differing < outcome.rounds
    # Where both would play the same the learner has what it wished for.
    assert outcome.learner_rounds - learner == outcome.rounds - differing
    (row,) = table_rows([outcome], ())
    assert f"{learner / differing:.0%} of {differing:,}" in row
    best = float((truth.means.max(axis=1) - truth.means[:, 0]).mean())
    assert 0 < outcome.main["gain"].low < best
    text, is_good = verdict_of([outcome], per_day=100) or ("", False)
    assert text.startswith("It pays: Guard, α = 0.1 has a lift of")
    assert is_good


def bands(seed: int) -> ContextLog:
    """Three labels by distance from a centre, which no linear model can tell apart; the baseline is right in 80%."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, size=(1_500, 2))
    labels = np.digitize(np.hypot(*points.T), [0.5, 0.9])
    wrong = rng.random(1_500) < 0.2
    return classification(points, labels, baselines=np.where(wrong, (labels + 1) % 3, labels))


def test_where_the_linear_model_is_wrong_the_guard_keeps_the_floor_that_lucb_breaks() -> None:
    declared = Declared(noise=0.5, theta_bound=2.0, baseline_reward=0.8, reward_bounds=BOUNDS)
    for seed in range(4):
        free, kept = replay(
            bands(seed),
            [Spec("LUCB"), guarded(0.1, delta=0.01, ridge=1.0, reward_bounds=BOUNDS)],
            declared=declared,
            evaluator="full",
        )
        assert free.curves["earned"][-1] < 0.9 * free.curves["owed"][-1]
        assert kept.curves["earned"][-1] >= 0.9 * kept.curves["owed"][-1]


def test_a_rejected_round_leaves_the_guard_as_it_was() -> None:
    learner = surefoot.LUCB(dim=2, delta=0.1, noise=0.5, ridge=1.0, theta_bound=1.0, feature_bound=1.0)
    policy = GuardedLUCB(learner, surefoot.Guard(alpha=0.5, delta=0.1, seed=1))
    trial = copy.deepcopy(policy)
    trial.decide(np.eye(2), baseline=0)
    assert (trial._guard.rounds, policy._guard.rounds) == (1, 0)


def test_the_command_plays_a_guard_beside_the_others(tmp_path: Path) -> None:
    path = str(clicks(tmp_path / "clicks.csv"))
    found = json.loads(run("replay", path, "--baseline", "banner", "--per-day", "100", "--json"))
    names = [entry["label"].split(",")[0] for entry in found["policies"]]
    assert names == ["LUCB", "LUCB", "CLUCB", "CLUCB2", "SafeLUCB", "Guard"]
    (alone,) = json.loads(run("replay", path, "--baseline", "banner", "--policy", "Guard", "--json"))["policies"]
    assert alone == found["policies"][-1]
    weighted = json.loads(run("replay", path, "--baseline", "banner", "--evaluator", "importance", "--json"))
    assert "Guard" not in [entry["policy"] for entry in weighted["policies"]]


def test_a_guard_by_importance_weighting_is_refused() -> None:
    truth = linear_log(100, seed=0, binary=True)
    with pytest.raises(ConfigError, match="learn_logged"):
        replay(
            truth.log,
            [guarded(0.1, delta=0.01, ridge=1.0, reward_bounds=BOUNDS)],
            declared=truth.declared,
            evaluator="importance",
        )
