"""The wait that is told before a replay starts: the first rows' time, by the number of rows."""

from itertools import count
from pathlib import Path

import pytest

from surefoot.replay import rehearsal
from surefoot.simulation import Spec
from tests.replay.logs import linear_log
from tests.replay.test_cli import surefoot
from tests.replay.test_fit import clicks


def test_the_wait_is_that_of_the_first_rows_by_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count()
    monkeypatch.setattr(rehearsal, "perf_counter", lambda: float(next(clock)))
    truth = linear_log(640, seed=0)
    found = rehearsal.expected_seconds(
        truth.log, [Spec("LUCB"), Spec("CLUCB", alpha=0.1)], declared=truth.declared, evaluator="rejection"
    )
    assert found == 1.0 * 640 / rehearsal.REHEARSED
    assert rehearsal.told(600.0, truth.log) == "About 10 minutes, for 640 rows of 4 actions x 3 features."
    truth.log.rows = None
    assert rehearsal.expected_seconds(truth.log, [], declared=truth.declared, evaluator="rejection") is None


def test_the_command_tells_a_long_wait_and_keeps_a_short_one_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clicks(tmp_path / "log.csv", rows=300)
    args = ("replay", "log.csv", "--baseline", "banner", "--policy", "LUCB", "--json")
    surefoot(*args, cwd=tmp_path, monkeypatch=monkeypatch)
    assert "About" not in capsys.readouterr().err
    clock = count(step=30)
    monkeypatch.setattr(rehearsal, "perf_counter", lambda: float(next(clock)))
    surefoot(*args, cwd=tmp_path, monkeypatch=monkeypatch)
    assert "About 5 minutes, for 300 rows" in capsys.readouterr().err
