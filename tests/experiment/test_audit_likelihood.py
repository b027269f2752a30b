"""The audit rebuilds the likelihood set of bounded rewards, over rows and over plain arms; forged proofs are found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.safety.likelihood import LIKELIHOOD
from tests.experiment.tampering import Row, Tamper, assert_named, first, is_learner
from tests.experiment.worlds import Clock

MEANS = np.array([0.25, 0.5, 0.2])
SETTINGS: dict[str, Any] = {"alpha": 0.2, "delta": 0.05, "reward_bounds": (0.0, 1.0)}
Draw = Callable[[np.random.Generator], tuple[dict[str, Any], Any]]  # what is asked, and the means of its actions


def of_rows(radius: str = "likelihood", *, fresh: bool = False) -> tuple[surefoot.SafeLUCB, Draw]:
    """The axes, or rows that never repeat."""
    dim = 5 if fresh else 3
    policy = surefoot.SafeLUCB(dim=dim, radius=radius, theta_bound=1.5, feature_bound=1.0, **SETTINGS)
    theta = np.full(dim, 0.4 / np.sqrt(dim)) if fresh else MEANS

    def draw(rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
        rows = np.abs(rng.normal(size=(4, dim))) if fresh else np.eye(dim)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return {"features": rows}, rows @ theta

    return policy, draw


def of_arms(**given: Any) -> tuple[surefoot.ConservativeUCB, Draw]:
    return surefoot.ConservativeUCB(**{"arms": 3, **SETTINGS, **given}), lambda rng: ({}, MEANS)


def play(path: Path, policy: Any, draw: Draw, rounds: int, *, window: float | None = None) -> int:
    """Rewards come late, and some never; those of arms are not always one of their bounds."""
    rng, clock, learner = np.random.default_rng(3), Clock(), 0
    low, high = policy.settings["reward_bounds"]
    waiting: list[tuple[str, float]] = []
    with open_journal(path) as journal:
        experiment = Experiment.create(
            journal, "shop", policy, mode="guarded", reward_window=window, clock=clock, snapshot_every=97
        )
        for number in range(rounds):
            clock.now += 1.0
            asked, means = draw(rng)
            answer = experiment.decide(**asked, baseline=0, decision_id=str(number))
            learner += answer.source == "learner"
            mean = means[answer.action]
            is_click = bool(asked) or rng.random() < 0.5
            share = float(rng.random() < mean) if is_click else float(rng.uniform(0.5, 1.5) * mean)
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


HONEST: dict[str, tuple[tuple[Any, Draw], int, int]] = {
    "rows": (of_rows(), 500, 20),
    "rows, best": (of_rows("best"), 500, 20),
    "rows that never repeat": (of_rows(fresh=True), 1_300, 20),
    "rows that never repeat, best": (of_rows("best", fresh=True), 1_300, 20),
    "arms": (of_arms(), 400, 80),
    "arms, known": (of_arms(baseline_reward=0.25), 400, 80),
    "arms, other bounds": (of_arms(reward_bounds=(0.0, 3.0)), 400, 80),
    "arms, other bounds, known": (of_arms(reward_bounds=(0.0, 3.0), baseline_reward=0.75), 400, 80),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_experiment_passes(name: str, tmp_path: Path) -> None:
    world, rounds, least = HONEST[name]
    assert play(tmp_path / "shop.db", *world, rounds) > least
    assert findings(tmp_path / "shop.db") == []


@pytest.mark.parametrize(("world", "least"), [(of_rows, 20), (of_arms, 60)])
def test_a_default_reward_is_learned_as_any_other(
    world: Callable[[], tuple[Any, Draw]], least: int, tmp_path: Path
) -> None:
    assert play(tmp_path / "shop.db", *world(), 400, window=30.0) > least
    assert findings(tmp_path / "shop.db") == []


@pytest.mark.parametrize("arm", [0, 1], ids=["the default arm's", "another arm's"])
def test_a_reward_beyond_its_bounds_raises_the_alarm_here_and_there(arm: int, tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        experiment = Experiment.create(journal, "shop", of_arms()[0], mode="guarded", clock=Clock())
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


def forging_a_tangent(name: str, forge: Callable[[Row], Any]) -> Tamper:
    def tamper(rows: list[Row]) -> int:
        row = first(rows, "round", rests_on_likelihood, after=100)
        pieces = row["payload"]["certificate"]["proof"]["pieces"]
        forge(next(piece["fact"] for piece in pieces if piece["fact"].get("name") == LIKELIHOOD))
        return int(row["number"])

    tamper.__name__ = name
    return tamper


def a_range(rows: list[Row]) -> int:
    """That no mean is below 0.1, which nobody declared."""
    for row in rows:
        if row["kind"] == "round" and row["number"] > 100:
            for piece in row["payload"]["certificate"]["proof"]["pieces"]:
                fact = piece["fact"]
                if fact.get("name", "").startswith("declared range of arm") and max(fact["normal"]) > 0:
                    fact["level"] = 0.1
                    return int(row["number"])
    raise AssertionError("no proof rests on a range")


def a_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda payload: payload["values"]["reward"] == 0.0, after=60)
    row["payload"]["values"]["reward"] = 1.0
    return int(row["number"])


FORGED: dict[Tamper, int] = {
    forging_a_tangent("level", lambda fact: fact.update(level=fact["level"] + 0.01 * abs(fact["level"]) + 0.1)): 0,
    forging_a_tangent("normal", lambda fact: fact.update(normal=[1.001 * one for one in fact["normal"]])): 0,
    forging_a_tangent("point", lambda fact: fact.update(point=[1.05 * one for one in fact["point"]])): 0,
    forging_a_tangent("no_point", lambda fact: fact.pop("point")): 0,
    a_reward: 90,
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("likelihood")
    assert play(folder / "rows.db", *of_rows(), 300) > 20
    assert play(folder / "arms.db", *of_arms(), 400) > 20
    return folder


@pytest.mark.parametrize("kind", ["rows", "arms"])
@pytest.mark.parametrize("tamper", FORGED, ids=lambda tamper: tamper.__name__)
def test_a_forged_proof_is_found(kind: str, tamper: Tamper, honest: Path, tmp_path: Path) -> None:
    assert_named(honest, kind, tamper, tmp_path, check="fact", later=FORGED[tamper])


def test_a_range_that_nobody_declared_is_found(honest: Path, tmp_path: Path) -> None:
    assert_named(honest, "arms", a_range, tmp_path, check="fact", later=0)


@pytest.mark.parametrize("arm", [0, 1])
def test_an_arm_whose_only_reward_was_out_of_bounds_is_no_finding(arm: int, tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        policy, is_bad = of_arms(arms=2, alpha=0.5)[0], False
        experiment = Experiment.create(journal, "shop", policy, mode="guarded")
        for number in range(40):
            answer = experiment.decide(baseline=0, decision_id=str(number))
            reward = 1.5 if answer.action == arm and not is_bad else float(number % 3 == 0)
            is_bad |= reward > 1.0
            experiment.reward(answer.decision_id, reward)
        assert is_bad
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)
