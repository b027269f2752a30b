"""Rewards that were measured wrongly: corrected until they were learned, and never afterwards."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from surefoot.audit import audit
from surefoot.cli.commands import app
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError
from surefoot.experiment import Experiment
from surefoot.experiment.export import row_rounds
from surefoot.journal import Journal, open_journal
from surefoot.policies import Guard
from surefoot.rounds.format import pack
from surefoot.service.settings import Settings
from tests.corpus.days import METRICS
from tests.experiment.tampering import Row, first, forged
from tests.experiment.worlds import Clock, safe_policy
from tests.service.servers import running

ROWS = np.array([[0.5, 0.2], [0.2, 0.5], [0.6, 0.1]])
TOLD = {"reason": "the till counted twice", "by": "ada"}


def shop(journal: Journal, clock: Clock, window: float | None, *, sealed: bool = False, **settings: Any) -> Experiment:
    return Experiment.create(
        journal, "shop", safe_policy(), mode="guarded", clock=clock, reward_window=window, sealed=sealed, **settings
    )


def visits(experiment: Experiment, clock: Clock, rewards: list[float | None]) -> None:
    for n, reward in enumerate(rewards):
        clock.now += 1.0
        experiment.decide(ROWS, baseline=0, decision_id=f"v{n}")
        if reward is not None:
            experiment.reward(f"v{n}", reward)


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("window", [None, 50.0])
def test_a_corrected_reward_is_learned_as_if_it_had_been_sent_so(window: float | None, sealed: bool) -> None:
    states = []
    for wrong in (0.9, 0.4):
        journal, clock = open_journal("memory:"), Clock()
        experiment = shop(journal, clock, window, sealed=sealed)
        # Without a window the first reward is missing, so that the others wait.
        visits(experiment, clock, [None, 0.3, wrong, 0.5])
        if wrong != 0.4:
            assert experiment.correct("v2", 0.4, **TOLD)
            assert experiment.correct("v2", 0.4, **TOLD) is False
            assert experiment.reward("v2", 0.4).is_repeat
            assert experiment.reward("v2", wrong).is_repeat, "its caller has lost the receipt"
        experiment.reward("v0", 0.2)
        clock.now += 100.0
        experiment.close_windows()
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)
        assert experiment.status().total_reward == pytest.approx(1.4)
        assert [row["reward"] for row in row_rounds(journal, "shop")] == [0.2, 0.3, 0.4, 0.5]
        assert pack(Experiment.open(journal, "shop").policy_state()) == pack(experiment.policy_state())
        states.append(pack(experiment.policy_state() | {"id": ""}))
        if wrong != 0.4:
            assert [(one["by"], one["values"]) for one in report.as_dict()["corrections"]] == [("ada", {"reward": 0.4})]
    assert states[0] == states[1]


@pytest.mark.parametrize("window", [None, 50.0])
def test_what_was_learned_stands(window: float | None) -> None:
    with open_journal("memory:") as journal:
        clock = Clock()
        experiment = shop(journal, clock, window)
        visits(experiment, clock, [0.2, 0.3])
        clock.now += 100.0
        head = journal.head("shop")
        if window is not None:
            experiment.close_windows()
            head = journal.head("shop")
        with pytest.raises(DecisionSettledError, match="Fork the experiment"):
            experiment.correct("v0", 0.5, **TOLD)
        assert journal.head("shop") == head


def test_bad_corrections_change_nothing() -> None:
    with open_journal("memory:") as journal:
        clock = Clock()
        experiment = shop(journal, clock, 50.0)
        visits(experiment, clock, [0.2, None])
        head = journal.head("shop")
        with pytest.raises(DecisionError, match="none has the id"):
            experiment.correct("nobody", 0.5, **TOLD)
        with pytest.raises(DecisionError, match="has no reward: send it"):
            experiment.correct("v1", 0.5, **TOLD)
        with pytest.raises(InputError, match="must be finite"):
            experiment.correct("v0", float("nan"), **TOLD)
        with pytest.raises(InputError, match="`reason` must say why"):
            experiment.correct("v0", 0.5, reason=" ")
        assert journal.head("shop") == head
        experiment.correct("v0", 0.5, **TOLD)
        with pytest.raises(DecisionConflictError, match="corrected once"):
            experiment.correct("v0", 0.6, **TOLD)


def test_a_correction_outside_the_declared_bounds_raises_the_alarm() -> None:
    with open_journal("memory:") as journal:
        clock = Clock()
        experiment = shop(journal, clock, 50.0, reward_bounds=(0.0, 1.0))
        visits(experiment, clock, [0.2])
        experiment.correct("v0", 3.0, **TOLD)
        assert experiment.status().is_refuted
        assert audit(journal, "shop").is_clean


def late(rows: list[Row]) -> int:
    """Correct a reward after it was learned."""
    row = first(rows, "corrected")
    rows.remove(row)
    rows.append({**row, "time": rows[-1]["time"]})
    return len(rows)


def twice(rows: list[Row]) -> int:
    row = first(rows, "corrected")
    rows.insert(rows.index(row) + 1, {**row, "key": None})
    return int(row["number"]) + 1


@pytest.mark.parametrize("tamper", [late, twice])
def test_a_forged_correction_is_found(tamper: Any, tmp_path: Path) -> None:
    clock = Clock()
    with open_journal(tmp_path / "shop.db") as journal:
        experiment = shop(journal, clock, 50.0)
        visits(experiment, clock, [0.2, 0.9])
        experiment.correct("v1", 0.4, **TOLD)
        clock.now += 100.0
        experiment.close_windows()
    (tmp_path / "forged").mkdir()
    _, report = forged(tmp_path, "shop", tamper, tmp_path / "forged", rehash=True)
    assert "corrected" in report.findings.counts


@pytest.mark.parametrize("window", [None, 100.0])
def test_a_retry_of_the_first_reward_after_a_correction_is_a_repeat(window: float | None) -> None:
    with open_journal("memory:") as journal:
        experiment = shop(journal, Clock(), window)
        for name in ("before", "after"):  # without a window, the reward of the second waits for the first
            experiment.decide(ROWS, baseline=0, decision_id=name)
        receipt = experiment.reward("after", 0.9)
        assert experiment.correct("after", 0.2, **TOLD)
        again, corrected, other = (experiment.reward("after", value) for value in (0.9, 0.2, 0.3))
        assert (again.refused, again.is_repeat, again.head) == (None, True, receipt.head)
        assert (corrected.refused, corrected.is_repeat) == (None, True)
        assert other.refused == "conflict"
        assert audit(journal, "shop").is_clean


def test_single_metrics_are_corrected_over_http_and_in_a_shell(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with open_journal(path) as journal:
        guarded = Experiment.create(journal, "shop", Guard(**METRICS), mode="guarded", reward_window=86_400.0)
        for name in ("over-http", "in-a-shell"):
            guarded.decide(baseline="old", proposal="new", decision_id=name)
            guarded.reward(name, {"quality": 0.9, "cost": 0.3})
    with running(Settings(database=path)) as address, httpx.Client(base_url=address, trust_env=False) as client:
        correction = f"{address}/v1/experiments/shop/decisions/over-http/correction"
        right = client.post(correction, json={"value": {"quality": 0.4}, "reason": "counted twice"})
        assert right.status_code == 200, right.text
        unknown = client.post(correction, json={"value": {"speed": 0.4}, "reason": "counted twice"})
        assert (unknown.status_code, unknown.json()["type"]) == (422, "/problems/invalid")
    command = ["experiment", "correct", path, "shop", "in-a-shell"]
    done = CliRunner().invoke(app, [*command, "quality=0.4", "cost=0.5", "--by", "ada", "--reason", "counted twice"])
    assert done.exit_code == 0, done.output
    assert "is quality=0.4, cost=0.5." in done.output
    for wrong in (["high"], ["quality=high"], ["quality=0.4", "quality=0.5"]):
        done = CliRunner().invoke(app, [*command, *wrong, "--by", "ada", "--reason", "counted twice"])
        assert "METRIC=NUMBER once for each metric, but got" in str(done.exception)
    with open_journal(path, read_only=True) as journal:
        report = audit(journal, "shop")
        corrections = [one["values"] for one in report.as_dict()["corrections"]]
        assert corrections == [{"quality": 0.4}, {"quality": 0.4, "cost": 0.5}]
        assert report.is_clean
