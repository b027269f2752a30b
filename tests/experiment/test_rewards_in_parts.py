"""Rewards of a guard that come metric by metric: cost at once, quality later."""

from pathlib import Path

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.experiment.export import export
from surefoot.journal import open_journal

METRICS = {
    "quality": surefoot.floor(0, 1, alpha=0.1),
    "cost": surefoot.ceiling(0, 2, alpha=0.3),
    "stars": surefoot.floor(0, 5, alpha=0.3, default=2.5),
}


def test_a_round_waits_for_the_metrics_that_it_lacks() -> None:
    chat = surefoot.Experiment.create(
        open_journal("memory:"), "chat", surefoot.Guard(delta=0.05, metrics=METRICS), mode="guarded"
    )
    answer = chat.decide(baseline="big", proposal="small")
    assert chat.reward(answer.decision_id, {"cost": 0.3}).is_accepted
    assert (chat.status().learned, chat.status().pending) == (0, 1)
    assert chat.reward(answer.decision_id, {"cost": 0.3}).is_repeat
    assert chat.reward(answer.decision_id, {"cost": 0.4}).refused == "conflict"
    assert chat.reward(answer.decision_id, {"quality": 0.9}).is_accepted
    assert (chat.status().learned, chat.status().pending) == (1, 0)  # stars have a default
    assert chat.reward(answer.decision_id, {"stars": 5.0}).refused == "too_late"


@pytest.mark.parametrize("settle_after", [None, 37])
def test_parts_bring_what_whole_rewards_bring_and_the_audit_agrees(tmp_path: Path, settle_after: int | None) -> None:
    shares = []
    for name in ("whole", "parts"):
        rng = np.random.default_rng(7)
        guard = surefoot.Guard(delta=0.05, metrics=METRICS, seed=3, settle_after=settle_after)
        with open_journal(tmp_path / f"{name}.db") as journal:
            chat = surefoot.Experiment.create(journal, name, guard, mode="guarded", snapshot_every=50)
            for at in range(150):
                chat.decide(baseline="big", proposal="small", decision_id=f"v{at}")
                quality, cost = float(rng.random()), float(rng.random())
                if name == "whole":
                    chat.reward(f"v{at}", {"quality": quality, "cost": cost})
                    continue
                chat.reward(f"v{at}", {"cost": cost})
                if at % 41 == 17:
                    chat = surefoot.Experiment.open(journal, name, snapshot_every=50)
                chat.reward(f"v{at}", {"quality": quality})
            shares.append((chat.status().guard, chat.status().learned))
            again = surefoot.Experiment.open(journal, name)
            assert again.status().guard == chat.status().guard
            report = audit(journal, name)
            assert report.is_clean, report.findings
            export(journal, name, tmp_path / f"{name}.csv")
    assert repr(shares[0]) == repr(shares[1])
    assert shares[0][1] == 150
