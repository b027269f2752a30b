"""An experiment that an earlier version ran opens in every later one, goes on as it did, and is audited clean."""

from pathlib import Path
from typing import Any

import pytest

from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from tests.experiment.old_experiments import AFTER, BEFORE, FOLDER, NAME, SETUPS, Visitors, restore
from tests.experiment.worlds import Clock

TOLERANCE = 1e-9  # another core has its own logarithm and order of sums, so last bits may differ


@pytest.mark.parametrize("name", SETUPS)
def test_an_old_journal_is_unchanged_and_its_audit_is_as_it_was(name: str, tmp_path: Path) -> None:
    kept = restore(name, tmp_path / "old.journal")
    with open_journal(tmp_path / "old.journal") as journal:
        assert journal.head(NAME) == (kept["number"], kept["hash"])
        report = audit(journal, NAME, expect=kept["hash"])
        assert [str(finding) for finding in report.findings] == []
        assert report.is_clean == kept["is_clean"]
        assert Experiment.open(journal, NAME).status().rounds == BEFORE
        assert journal.head(NAME) == (kept["number"], kept["hash"])


@pytest.mark.parametrize("name", SETUPS)
def test_an_old_experiment_goes_on_as_it_did(name: str, tmp_path: Path) -> None:
    kept = restore(name, tmp_path / "old.journal")
    clock = Clock()
    with open_journal(tmp_path / "old.journal") as journal:
        experiment = Experiment.open(journal, NAME, clock=clock)
        decided = Visitors(experiment, SETUPS[name], clock).play(range(BEFORE + 1, BEFORE + 1 + AFTER))
        for ours, theirs in zip(decided, kept["next"], strict=True):
            assert _exact(ours) == _exact(theirs)
            assert _numbers(ours) == pytest.approx(_numbers(theirs), rel=TOLERANCE, abs=TOLERANCE)
        report = audit(journal, NAME, expect=kept["hash"])
        assert [str(finding) for finding in report.findings] == []
        assert report.tally.decisions == BEFORE + AFTER


def test_the_kept_experiments_show_what_they_are_kept_for(tmp_path: Path) -> None:
    for name in ("safe", "guard"):
        kept = restore(name, tmp_path / "old.journal")
        assert {decided[0] for decided in kept["next"]} == {"learner", "baseline"}
        assert len({decided[-2] for decided in kept["next"]}) > 5
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 70_000


def _exact(decided: list[Any]) -> list[Any]:
    return [one for one in decided if not isinstance(one, float)]


def _numbers(decided: list[Any]) -> list[float]:
    return [one for one in decided if isinstance(one, float)]
