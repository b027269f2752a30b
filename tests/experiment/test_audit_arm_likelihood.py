"""The audit rebuilds the likelihood set over plain arms: honest experiments pass, forged proofs are found."""

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


def new_policy(**given: Any) -> surefoot.ConservativeUCB:
    told: dict[str, Any] = {"arms": 3, "alpha": 0.2, "delta": 0.05, "reward_bounds": (0.0, 1.0)}
    return surefoot.ConservativeUCB(**{**told, **given})


def play(path: Path, policy: surefoot.ConservativeUCB, rounds: int, *, window: float | None = None) -> int:
    """Rewards come late, and some never; half of them are not 0 or 1."""
    rng, clock, learner = np.random.default_rng(3), Clock(), 0
    low, high = policy.settings["reward_bounds"]
    waiting: list[tuple[str, float]] = []
    with open_journal(path) as journal:
        experiment = Experiment.create(
            journal, "shop", policy, mode="guarded", reward_window=window, clock=clock, snapshot_every=97
        )
        for number in range(rounds):
            clock.now += 1.0
            answer = experiment.decide(baseline=0, decision_id=str(number))
            learner += answer.source == "learner"
            mean = MEANS[answer.action]
            share = float(rng.random() < mean) if rng.random() < 0.5 else float(rng.uniform(0.5, 1.5) * mean)
            waiting.append((answer.decision_id, low + (high - low) * share))
            while waiting and rng.random() < 0.6:
                decision, reward = waiting.pop(int(rng.integers(len(waiting))))
                if rng.random() < 0.05 and window is None:
                    experiment.abandon(decision, reason="a test")
                elif rng.random() < 0.95 or window is None:
                    experiment.reward(decision, reward)
    return learner


def findings(path: Path) -> list[str]:
    with open_journal(path, read_only=True) as journal:
        return [str(finding) for finding in audit(journal, "shop").findings]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"baseline_reward": 0.25},
        {"reward_bounds": (0.0, 3.0)},
        {"reward_bounds": (0.0, 3.0), "baseline_reward": 0.75},
    ],
    ids=["clicks", "known", "other bounds", "other bounds, known"],
)
def test_an_honest_experiment_passes(given: dict[str, Any], tmp_path: Path) -> None:
    assert play(tmp_path / "shop.db", new_policy(**given), 400) > 80
    assert findings(tmp_path / "shop.db") == []


def test_a_default_reward_is_learned_as_any_other(tmp_path: Path) -> None:
    assert play(tmp_path / "shop.db", new_policy(), 350, window=30.0) > 60
    assert findings(tmp_path / "shop.db") == []


@pytest.mark.parametrize("arm", [0, 1], ids=["the default arm's", "another arm's"])
def test_a_reward_beyond_its_bounds_raises_the_alarm_here_and_there(arm: int, tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        experiment = Experiment.create(journal, "shop", new_policy(), mode="guarded", clock=Clock())
        for number in range(60):
            answer = experiment.decide(baseline=0, decision_id=str(number))
            is_wrong = number >= 20 and answer.action == arm
            experiment.reward(answer.decision_id, 1.5 if is_wrong else 0.5)
            if is_wrong:
                break
        assert experiment.status().alarm is not None
        assert experiment.decide(baseline=0, decision_id="last").source == "baseline"
        report = audit(journal, "shop")
    assert [str(finding) for finding in report.findings] == []


def rests_on_likelihood(payload: Row) -> bool:
    pieces = payload["certificate"]["proof"]["pieces"]
    return is_learner(payload) and any(piece["fact"].get("name") == LIKELIHOOD for piece in pieces)


def chosen(rows: list[Row]) -> tuple[int, list[Row]]:
    row = first(rows, "round", rests_on_likelihood, after=100)
    return int(row["number"]), row["payload"]["certificate"]["proof"]["pieces"]


def tangent(rows: list[Row]) -> tuple[int, Row]:
    number, pieces = chosen(rows)
    return number, next(piece["fact"] for piece in pieces if piece["fact"]["name"] == LIKELIHOOD)


def a_level(rows: list[Row]) -> int:
    number, fact = tangent(rows)
    fact["level"] += 0.01 * abs(fact["level"]) + 0.1
    return number


def a_normal(rows: list[Row]) -> int:
    number, fact = tangent(rows)
    fact["normal"] = [1.001 * one for one in fact["normal"]]
    return number


def a_point(rows: list[Row]) -> int:
    number, fact = tangent(rows)
    fact["point"] = [1.05 * one for one in fact["point"]]
    return number


def a_range(rows: list[Row]) -> int:
    """That no mean is below 0.1, which nobody declared."""
    for row in rows:
        if row["kind"] == "round" and row["number"] > 100:
            for piece in row["payload"]["certificate"]["proof"]["pieces"]:
                if piece["fact"]["name"].startswith("declared range") and max(piece["fact"]["normal"]) > 0:
                    piece["fact"]["level"] = 0.1
                    return int(row["number"])
    raise AssertionError("no proof rests on a range")


def a_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda payload: payload["values"]["reward"] == 0.0, after=60)
    row["payload"]["values"]["reward"] = 1.0
    return int(row["number"])


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arms")
    assert play(folder / "shop.db", new_policy(), 400) > 20
    return folder


@pytest.mark.parametrize(("tamper", "later"), [(a_level, 0), (a_normal, 0), (a_point, 0), (a_range, 0), (a_reward, 90)])
def test_a_forged_proof_is_found(tamper: Any, later: int, honest: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(honest, copied)
    assert_named(copied, "shop", tamper, tmp_path, check="fact", later=later)


@pytest.mark.parametrize("arm", [0, 1])
def test_an_arm_whose_only_reward_was_out_of_bounds_is_no_finding(arm: int, tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        policy, is_bad = new_policy(arms=2, alpha=0.5), False
        experiment = Experiment.create(journal, "shop", policy, mode="guarded")
        for number in range(40):
            answer = experiment.decide(baseline=0, decision_id=str(number))
            reward = 1.5 if answer.action == arm and not is_bad else float(number % 3 == 0)
            is_bad |= reward > 1.0
            experiment.reward(answer.decision_id, reward)
        assert is_bad
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)
