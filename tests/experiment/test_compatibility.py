"""Events that a newer minor version wrote: fields that are new are passed over, what is wrong is not taken for new."""

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import JournalSchemaError
from surefoot.experiment import Experiment
from surefoot.experiment.export import row_rounds
from surefoot.journal import open_journal
from surefoot.rounds.format import pack
from tests.experiment import guard_worlds
from tests.experiment.honest import played, safe
from tests.experiment.tampering import load, rehashed, save

ANY = ("settings", "context", "baseline", "proposal")  # what callers wrote, where any name may stand


def newer(value: Any) -> Any:
    """The same with a new field in every object that is a record."""
    if isinstance(value, list):
        return [newer(one) for one in value]
    if not isinstance(value, dict):
        return value
    grown = {name: copy.deepcopy(one) if name in ANY else newer(one) for name, one in value.items()}
    return grown if "reward" in value or "quality" in value else {**grown, "novelty": {"since": "9.9"}}


def rewrite(path: Path) -> None:
    rows = load(path)
    for row in rows:
        is_metrics = row["kind"] == "reward"
        row["payload"] = {**row["payload"], "novelty": 1} if is_metrics else newer(row["payload"])
    rows = rehashed(rows)
    save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]))


@pytest.mark.parametrize("kind", ["windows", "Guard"])
def test_fields_of_a_newer_version_are_passed_over(kind: str, tmp_path: Path) -> None:
    path, new = tmp_path / "shop.db", tmp_path / "new.db"
    with open_journal(path) as journal:
        if kind == "Guard":
            guard_worlds.played("one metric", 60, journal=journal)
        else:
            played(safe(), 60, journal=journal, window=6.0)
        bits = pack(Experiment.open(journal, "shop").policy_state())
        rows = [] if kind == "Guard" else list(row_rounds(journal, "shop"))
    shutil.copy(path, new)
    rewrite(new)
    with open_journal(new) as journal:
        experiment = Experiment.open(journal, "shop")
        assert pack(experiment.policy_state()) == bits
        assert kind == "Guard" or list(row_rounds(journal, "shop")) == rows
        events = experiment.status().events
        experiment.set_mode("paused")
        assert experiment.status().events > events


@pytest.mark.parametrize("payload", [{"mode": "paused", "reason": 3}, {"reason": "no mode"}, {"mode": "sideways"}])
def test_what_is_wrong_is_not_taken_for_new(payload: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_journal(path) as journal:
        played(safe(), 12, journal=journal)
    rows = load(path)
    next(row for row in rows if row["kind"] == "mode")["payload"] = {**payload, "novelty": 1}
    rows = rehashed(rows)
    save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]))
    with open_journal(path) as journal, pytest.raises(JournalSchemaError, match="cannot be read as one"):
        Experiment.open(journal, "shop")
