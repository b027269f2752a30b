"""Wrong uses of the commands that simulate and replay: a sentence, exit code 2, and nothing was written."""

import sys
import warnings
from pathlib import Path

import pytest

from surefoot.cli import main

SWEEP = """
title = "one"
runs = 2
horizon = 50

[worlds.p]
kind = "paper"

[[policies]]
policy = "LUCB"
"""


def ended(monkeypatch: pytest.MonkeyPatch, folder: Path, *args: str) -> int:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["surefoot", *args])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["simulate", "big.toml"], "`horizon` must be at most 2,147,483,647"),
        (["simulate", "one.toml", "--on", "gpu:x"], "`on` must be local"),
        (["simulate", "one.toml", "--on", "local:0"], "`threads` must be a whole number >= 1"),
        (["simulate", "one.toml", "--out", "one.toml"], "A file that was named cannot be used"),
        (["reproduce", "--seed", "-1"], "`seed` must be a whole number >= 0"),
        (["reproduce", "--seed", "9" * 26], "`seed` must be less than 2^63"),
        (["plan", "--seed", "-1", "--runs", "2", "--days", "1"], "`seed` must be a whole number >= 0"),
        (["replay", "log.csv", "--seed", "-1", "--uniform"], "`seed` must be a whole number >= 0"),
        (["replay", "log.csv", "--max-bad", "-1", "--uniform"], "`max_bad` must be a whole number >= 0"),
        (["replay", "log.csv", "--evaluator", "nobody", "--uniform"], "`evaluator` must be rejection, importance or"),
        (["fit-baseline", "log.csv", "--max-bad", "-1"], "`max_bad` must be a whole number >= 0"),
        (["plan", "--policy", "safe,gaurd"], "`--policy` must be safe, paper or guard, but got 'gaurd'. Did you mean"),
    ],
)
def test_a_wrong_simulation_is_told_in_a_sentence(
    args: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.toml").write_text(SWEEP)
    (tmp_path / "log.csv").write_text("x,action,reward\n" + "0.5,a,1\n0.25,b,0\n" * 200)
    (tmp_path / "big.toml").write_text(SWEEP.replace("50", "9" * 26))
    assert ended(monkeypatch, tmp_path, *args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"surefoot: {said}")  # no progress bar before it, as this is no terminal
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.toml", "log.csv", "one.toml"]


def test_a_sweep_without_a_floor_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.toml").write_text(SWEEP)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ended(monkeypatch, tmp_path, "simulate", "one.toml", "--out", "one") == 0
    assert (tmp_path / "one" / "figure4.pdf").stat().st_size > 1_000
    assert (tmp_path / "one" / "report.html").stat().st_size > 1_000


def test_ctrl_c_is_answered_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("surefoot.cli.simulations.read_sweep", stopped)
    assert ended(monkeypatch, tmp_path, "simulate", "one.toml") == 130
    assert capsys.readouterr().err == "\nsurefoot: interrupted; the same command continues where this one stopped.\n"
    monkeypatch.setattr("surefoot.cli.simulations.make_plan", lambda **_: stopped(tmp_path))
    assert ended(monkeypatch, tmp_path, "plan") == 130
    assert capsys.readouterr().err == "\nsurefoot: interrupted; the same command starts over.\n"
