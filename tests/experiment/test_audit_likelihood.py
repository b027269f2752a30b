"""The audit rebuilds the likelihood set of bounded rewards: honest experiments pass, forged tangents are found."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.safety.likelihood import LIKELIHOOD
from tests.experiment.tampering import Row, assert_named, first, is_learner
from tests.experiment.worlds import Clock

MEANS = np.array([0.25, 0.5, 0.2])


def new_policy(radius: str, *, dim: int = 3, **given: Any) -> surefoot.SafeLUCB:
    told = {"alpha": 0.2, "delta": 0.05, "theta_bound": 1.5, "feature_bound": 1.0, "reward_bounds": (0.0, 1.0)}
    return surefoot.SafeLUCB(dim=dim, radius=radius, **{**told, **given})


def play(
    path: Path, policy: surefoot.SafeLUCB, rounds: int, *, fresh: bool = False, window: float | None = None
) -> int:
    """Clicks on plain arms, or on rows that never repeat; rewards come late, and some never."""
    rng, clock, learner = np.random.default_rng(3), Clock(), 0
    theta = MEANS if policy.dim == 3 else np.full(policy.dim, 0.4 / np.sqrt(policy.dim))
    waiting: list[tuple[str, float]] = []
    with open_journal(path) as journal:
        experiment = Experiment.create(
            journal, "shop", policy, mode="guarded", reward_window=window, clock=clock, snapshot_every=97
        )
        for number in range(rounds):
            clock.now += 1.0
            rows = np.abs(rng.normal(size=(4, policy.dim))) if fresh else np.eye(policy.dim)
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            answer = experiment.decide(features=rows, baseline=0, decision_id=str(number))
            learner += answer.source == "learner"
            waiting.append((answer.decision_id, float(rng.random() < rows[answer.action] @ theta)))
            while waiting and rng.random() < 0.6:
                decision, reward = waiting.pop(int(rng.integers(len(waiting))))
                if rng.random() < 0.05 and window is None:
                    experiment.abandon(decision, reason="a test")
                elif rng.random() < 0.95 or window is None:
                    experiment.reward(decision, reward)
    return learner


@pytest.mark.parametrize("radius", ["likelihood", "best"])
@pytest.mark.parametrize("fresh", [False, True], ids=["arms", "rows that never repeat"])
def test_an_honest_experiment_passes(radius: str, fresh: bool, tmp_path: Path) -> None:
    policy = new_policy(radius, dim=5 if fresh else 3)
    learner = play(tmp_path / "shop.db", policy, 1_300 if fresh else 500, fresh=fresh)
    assert learner > 20
    with open_journal(tmp_path / "shop.db", read_only=True) as journal:
        report = audit(journal, "shop")
    assert [str(finding) for finding in report.findings] == []


def test_a_default_reward_is_learned_as_any_other(tmp_path: Path) -> None:
    learner = play(tmp_path / "shop.db", new_policy("likelihood"), 400, window=30.0)
    assert learner > 20
    with open_journal(tmp_path / "shop.db", read_only=True) as journal:
        assert [str(finding) for finding in audit(journal, "shop").findings] == []


def rests_on_likelihood(payload: Row) -> bool:
    pieces = payload["certificate"]["proof"]["pieces"]
    return is_learner(payload) and any(piece["fact"].get("name") == LIKELIHOOD for piece in pieces)


def tangent_of(row: Row) -> Row:
    pieces = row["payload"]["certificate"]["proof"]["pieces"]
    return next(piece["fact"] for piece in pieces if piece["fact"].get("name") == LIKELIHOOD)


def a_level(rows: list[Row]) -> int:
    row = first(rows, "round", rests_on_likelihood, after=100)
    fact = tangent_of(row)
    fact["level"] += 0.01 * abs(fact["level"]) + 0.1
    return int(row["number"])


def a_normal(rows: list[Row]) -> int:
    row = first(rows, "round", rests_on_likelihood, after=100)
    fact = tangent_of(row)
    fact["normal"] = [1.001 * one for one in fact["normal"]]
    return int(row["number"])


def a_point(rows: list[Row]) -> int:
    row = first(rows, "round", rests_on_likelihood, after=100)
    fact = tangent_of(row)
    fact["point"] = [1.05 * one for one in fact["point"]]
    return int(row["number"])


def no_point(rows: list[Row]) -> int:
    row = first(rows, "round", rests_on_likelihood, after=100)
    del tangent_of(row)["point"]
    return int(row["number"])


def a_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda payload: payload["values"]["reward"] == 0.0, after=60)
    row["payload"]["values"]["reward"] = 1.0
    return int(row["number"])


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("likelihood")
    assert play(folder / "shop.db", new_policy("likelihood"), 300) > 20
    return folder


@pytest.mark.parametrize(
    ("tamper", "later"), [(a_level, 0), (a_normal, 0), (a_point, 0), (no_point, 0), (a_reward, 90)]
)
def test_a_forged_tangent_is_found(tamper: Any, later: int, honest: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(honest, copied)
    assert_named(copied, "shop", tamper, tmp_path, check="fact", later=later)
