"""What a terminal of 80 columns shows: help that is not cut, names that are nearly right, a bar in one line."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from surefoot.cli import COMMANDS, options
from surefoot.cli.commands import app, load
from surefoot.errors import ConfigError
from surefoot.replay.comparison import specs_of
from surefoot.service.tokens import TokenFile


@pytest.mark.parametrize("name", ["", *(name for name in COMMANDS if getattr(load(name), "commands", None))])
def test_no_command_of_a_list_is_cut_off(name: str) -> None:
    output = CliRunner().invoke(app, [name, "--help"] if name else ["--help"], terminal_width=80).output
    commands = output.partition("Commands:\n")[2].splitlines()
    assert commands
    assert [line for line in commands if line.endswith("...")] == []
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_options_that_are_repeated_say_what_one_value_is(name: str) -> None:
    output = CliRunner().invoke(app, [name, "--help"], terminal_width=80).output
    assert re.findall(r"--[\w-]+ <list", output) == []


def test_a_command_that_is_nearly_right_is_named() -> None:
    refused = CliRunner().invoke(app, ["simulat"])
    assert refused.exit_code == 2
    assert "No such command 'simulat'. Did you mean 'simulate'?" in refused.output


def test_experiments_are_created_before_they_are_forked() -> None:
    assert list(load("experiment").commands)[:3] == ["create", "list", "status"]


def test_the_bar_stays_in_one_line_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(options, "stderr", Console(file=shown, force_terminal=True, width=80, color_system=None))
    with options.progress_bar("simulating") as report:
        for done in range(0, 987_654_321, 123_456_789):
            report(done, 987_654_321)
    lines = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue()).split("\r") if line.strip()]
    assert "simulating" in lines[-1]
    assert "\u2026" not in lines[-1]
    assert max(len(line.rstrip("\n")) for line in lines) <= 80


def test_a_list_of_tokens_has_no_empty_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = TokenFile(tmp_path / "tokens")
    file.create(["decide"], owner="shop backend", experiments=["shop"])
    file.create(["read"], owner="prometheus")
    output = CliRunner().invoke(app, ["token", "list", "--tokens", str(tmp_path / "tokens")]).output
    assert "experiments" in output
    assert "note" not in output
    assert "expires" not in output


def test_a_policy_that_replay_does_not_know_is_told_those_it_does() -> None:
    with pytest.raises(ConfigError, match=r"one that replay can play, but got 'Foo'. Known are LUCB, .*, Guard"):
        specs_of(["Foo"], None, [0.1], None, None, delta=0.01, ridge=1.0)
