"""The watch in an experiment: coins in the journal, recovery to the bit, and an audit that bets again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import Journal, open_journal
from surefoot.rounds.format import pack
from tests.experiment.tampering import load, rehashed, save
from tests.experiment.worlds import Clock

TOLD: dict[str, Any] = {"dim": 2, "alpha": 0.2, "delta": 0.05, "noise": 0.1, "theta_bound": 1.5, "feature_bound": 1.0}


def drifting(journal: Journal, *, rounds: int = 250, change: int = 120, response: str | None = None) -> Experiment:
    """Two arms, the baseline of which improves; whoever sees the alarm answers it, if there is an answer."""
    policy = surefoot.SafeLUCB(**TOLD, reward_range=(0.0, 1.0), holdout=0.2, seed=4)
    experiment = Experiment.create(journal, "shop", policy, mode="guarded", clock=Clock(), snapshot_every=90)
    rng, is_answered = np.random.default_rng(5), False
    for round_ in range(rounds):
        means = [0.3 if round_ < change else 0.8, 0.5]
        answer = experiment.decide(np.eye(2), baseline=0)
        experiment.reward(answer.decision_id, means[answer.action] + 0.1 * rng.normal())
        if experiment.status().is_refuted and response is not None and not is_answered:
            experiment.acknowledge(response, reason="the world has changed")  # type: ignore[arg-type]
            is_answered = True
    return experiment


@pytest.mark.parametrize("response", [None, "renew"])
def test_an_experiment_that_drifts_is_recovered_to_the_bit_and_audited_clean(
    tmp_path: Path, response: str | None
) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        experiment = drifting(journal, response=response)
        status = experiment.status()
        assert status.is_refuted == (response is None)
        assert pack(Experiment.open(journal, "shop").policy_state()) == pack(experiment.policy_state())
        report = audit(journal, "shop")
        assert [str(finding) for finding in report.findings] == []
        assert [text for _, text in report.tally.alarms] == ["rewards do not follow one theta any more"]


def test_coins_are_in_the_journal_and_a_forged_one_is_found(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_journal(path) as journal:
        drifting(journal, rounds=100)
    rows = load(path)
    coins = [row for row in rows if row["kind"] == "round" and "draw" in row["payload"]]
    assert {row["payload"]["source"] for row in coins} == {"learner", "baseline"}
    coins[-1]["payload"]["draw"] = 0.5 if coins[-1]["payload"]["draw"] < 0.2 else 0.1
    rows = rehashed(rows)
    save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]))
    with open_journal(path) as journal:
        assert {finding.what for finding in audit(journal, "shop").findings} == {"coin"}
