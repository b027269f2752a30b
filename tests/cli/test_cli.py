"""The command line: what it writes, what it refuses, and that the docs name every command."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from surefoot.cli import COMMANDS
from surefoot.cli.commands import app
from surefoot.errors import JournalConflictError
from surefoot.experiment import Status, read_status
from surefoot.journal import open_journal
from surefoot.paper.section5 import SAFE, SAFE_KNOWN, SAFE_RANGE
from tests.cli.shell import shell

ROOT = Path(__file__).parents[2]
TOML = """
runs = 3
horizon = 60
[worlds.small]
kind = "contextual"
actions = 4
dim = 3
baseline = {rank = 2}
[[policies]]
policy = "LUCB"
[[policies]]
policy = "CLUCB"
alpha = [0.1, 0.5]
"""


def test_reproduce_writes_figures_table_and_report_and_continues(tmp_path: Path) -> None:
    args = [
        "reproduce",
        "--quick",
        "--runs",
        "4",
        "--horizon",
        "120",
        "--alphas",
        "0.2,0.8",
        "--instance",
        "normalized",
    ]
    first = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert first.exit_code == 0
    assert "claim by claim" in first.output
    names = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    figures = {f"figure{i}.{kind}" for i in (1, 2, 3, 4) for kind in ("png", "pdf")}
    assert names == figures | {"results.csv", "results.parquet", "report.html", "settings.json"}
    table = pl.read_csv(tmp_path / "out" / "results.csv")
    assert set(table["policy"]) == {"LUCB", "CLUCB", "CLUCB2", "CLUCB2-exact", SAFE, SAFE_RANGE, SAFE_KNOWN}
    safe = table.filter(pl.col("policy").is_in([SAFE, SAFE_RANGE, SAFE_KNOWN]))
    assert set(safe["alpha"]) == {0.2, 0.8}
    assert safe.filter(pl.col("measure") == "violated_share")["mean"].max() == 0.0
    assert "Beyond the paper: SafeLUCB" in first.output
    assert "Wrote figure1-4" in first.output
    before = (tmp_path / "out" / "results.csv").read_bytes()
    again = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert again.exit_code == 0
    assert (tmp_path / "out" / "results.csv").read_bytes() == before
    refused = shell(*args, "--seed", "5", "--out", str(tmp_path / "out"), folder=tmp_path)
    assert refused.code == 2
    assert "holds a result of other settings. Nothing was changed" in refused.err


def test_simulate_runs_a_toml_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TOML)
    done = shell("simulate", "mine.toml", folder=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "results" / "mine" / "report.html").exists()
    (tmp_path / "typo.toml").write_text(TOML.replace("horizon", "horizn"))
    refused = shell("simulate", "typo.toml", folder=tmp_path)
    assert refused.code == 2
    assert "Did you mean 'horizon'?" in refused.err
    assert "Traceback" not in refused.err
    assert not (tmp_path / "results" / "typo").exists()


def test_simulate_runs_a_variant_of_safelucb_alone(tmp_path: Path) -> None:
    policies = (
        TOML.split("[[policies]]")[0]
        + """
[[policies]]
policy = "SafeLUCB"
name = "careful"
alpha = 0.2
constraint = {name = "checkpoints", every = 10}
"""
    )
    (tmp_path / "mine.toml").write_text(policies)
    done = shell("simulate", "mine.toml", folder=tmp_path)
    assert done.code == 0, done.err
    assert set(pl.read_csv(tmp_path / "results" / "mine" / "results.csv")["policy"]) == {"careful"}
    assert (tmp_path / "results" / "mine" / "figure4.png").exists()


def test_plan_answers_as_table_json_and_picture(tmp_path: Path) -> None:
    args = ["plan", "--runs", "6", "--days", "2", "--per-day", "500", "--noise", "0.05", "--alpha", "0.1,0.5"]
    shown = CliRunner().invoke(app, args, catch_exceptions=False)
    assert shown.exit_code == 0
    assert "days until free" in shown.output
    assert shown.output.index("SafeLUCB, recommended") < shown.output.index("CLUCB, the paper's")
    assert shown.output.count("the theorem's bound on them") == 1
    picture = tmp_path / "plan.png"
    planned = CliRunner().invoke(app, [*args, "--json", "--plot", str(picture)], catch_exceptions=False)
    answers = json.loads(planned.output)["answers"]
    assert [(answer["policy"], answer["alpha"]) for answer in answers] == [
        ("SafeLUCB", 0.1), ("SafeLUCB", 0.5), ("CLUCB", 0.1), ("CLUCB", 0.5)
    ]  # fmt: skip
    assert [answer["bound_rounds"] is None for answer in answers] == [True, True, False, False]
    page = tmp_path / "plan.html"
    paged = CliRunner().invoke(app, [*args, "--page", str(page)], catch_exceptions=False)
    assert paged.output == shown.output
    assert "SafeLUCB, recommended" in page.read_text("utf-8")
    ranged = CliRunner().invoke(app, [*args, "--json", "--unknown", "--policy", "safe", "--reward-range", "0,1"])
    assert json.loads(ranged.output)["settings"]["reward_range"] == [0, 1]
    assert {answer["policy"] for answer in json.loads(ranged.output)["answers"]} == {"SafeLUCB"}
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("plan", "--alpha", "0.1,big"), "`--alpha` must be numbers between commas"),
        (("plan", "--policy", "saef"), "but got 'saef'. Did you mean 'safe'?"),
        (("plan", "--reward-range", "1"), "must be low,high with low < high"),
        (("plan", "--reward-range", "0,0.1"), "must hold every mean reward of the worlds that are drawn, 0 to 0.33"),
        (("plan", "--plot", "plan.txt"), "`--plot` must end in .png, .pdf, .svg"),
        (("plan", "--plot", "nowhere/plan.png"), "must lie in a folder that exists"),
        (("plan", "--page", "plan.htm"), "`--page` must end in .html, but got"),
        (("plan", "--lift", "-1"), "`lift > 0` must hold"),
        (("plan", "--lift", "nan"), "`lift > 0` must hold"),
        (("plan", "--noise", "-1"), "`noise > 0` must hold"),
        (("reproduce", "--instance", "scaled"), "must be as-written, normalized or both"),
        (("reproduce", "--horizon", "-3"), "`horizon` must be a whole number >= 1"),
        (("simulate", "missing.toml"), "but there is none"),
    ],
)
def test_mistakes_end_with_a_sentence_and_exit_code_2(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = shell(*args, folder=tmp_path)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.iterdir())


def test_every_command_is_in_the_documentation() -> None:
    text = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    group: Any = typer.main.get_command(app)
    names = group.list_commands(None)
    assert {*COMMANDS, "version"} == set(names)
    for name in names:
        assert group.get_command(None, name) is not None
        assert f"surefoot {name}" in text


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        ("reproduce", "litestar", None),
        ("reproduce", "matplotlib", "simulation"),
        ("replay", "matplotlib", None),
        ("replay", "polars", "replay"),
        ("token", "polars", None),
        ("token", "rich", "service"),
    ],
)
def test_a_command_needs_the_packages_of_its_own_extra_alone(
    name: str, missing: str, extra: str | None, tmp_path: Path
) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from surefoot.cli import main; main()"
    command = [sys.executable, "-c", code, name, "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if extra is None else 2), done.stderr
    if extra is not None:
        assert f"pip install 'surefoot[{extra}]' ({missing} is missing)" in done.stderr
        assert "Traceback" not in done.stderr


def test_creating_an_experiment_again_opens_it(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    words = ["experiment", "create", path, "models", "--policy", "Guard", "--set", "delta=0.05"]
    for said in ("Created 'models' with Guard in mode 'shadow'", "'models' exists, with the same settings"):
        done = CliRunner().invoke(app, [*words, "--set", "alpha=0.1"])
        assert done.exit_code == 0, done.output
        assert said in done.output
    other = CliRunner().invoke(app, [*words, "--set", "alpha=0.2"])
    assert isinstance(other.exception, JournalConflictError)
    assert "settings differ" in str(other.exception)


def test_metrics_have_units_of_their_own(tmp_path: Path) -> None:
    path, metrics = str(tmp_path / "shop.db"), {"cost": {"kind": "ceiling", "low": 0, "high": 1, "alpha": 0.1}}
    settings = ["--policy", "Guard", "--set", "delta=0.1", "--set", f"metrics={json.dumps(metrics)}", "--reward-unit"]
    done = CliRunner().invoke(app, ["experiment", "create", path, "shop", *settings, "cost=EUR"])
    assert done.exit_code == 0, done.output
    with open_journal(path, read_only=True) as journal:
        status = read_status(journal, "shop")
    assert isinstance(status, Status)
    assert status.reward_unit == {"cost": "EUR"}
    wrong = CliRunner().invoke(app, ["experiment", "create", path, "bill", *settings, "EUR"])
    assert "must map metrics to units, such as {'cost': 'USD'}" in str(wrong.exception)


def test_the_mode_changes_and_the_journal_keeps_why(tmp_path: Path) -> None:
    journal, runner = str(tmp_path / "shop.journal"), CliRunner()
    args = ["--policy", "Guard", "--set", "alpha=0.1", "--set", "delta=0.05"]
    assert runner.invoke(app, ["experiment", "create", journal, "shop", *args]).exit_code == 0
    went = runner.invoke(app, ["experiment", "mode", journal, "shop", "guarded", "--by", "ada", "--reason", "go"])
    assert went.output == "'shop' is in mode 'guarded'; it was in 'shadow'.\n"
    again = runner.invoke(app, ["experiment", "mode", journal, "shop", "guarded"])
    assert again.output == "'shop' is in mode 'guarded', as it was.\n"
    assert runner.invoke(app, ["experiment", "mode", journal, "shop", "shadow"]).exit_code != 0
    with open_journal(journal, read_only=True) as opened:
        payloads = b"".join(event.payload for event in opened.read("shop"))
        assert read_status(opened, "shop").mode == "guarded"
    assert b"ada" in payloads


@pytest.mark.parametrize(
    ("words", "completion"),
    [("surefoot exp", "experiment"), ("surefoot experiment mo", "mode"), ("surefoot plan --reward-", "--reward-range")],
)
def test_a_shell_completes_commands_and_options(words: str, completion: str) -> None:
    environment = {"_SUREFOOT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'surefoot'; from surefoot.cli import main; main()"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == [completion]


def test_ctrl_c_does_not_wait_for_chunks_that_were_begun(tmp_path: Path) -> None:
    # A chunk of ten minutes leaves a file: only a command that does not wait for it ends without one.
    code = (
        "import os, signal, sys, threading, time\n"
        "from surefoot.simulation.workers import workers_on\n"
        "import surefoot.cli.simulations as module\n"
        "def run_sweep(*args, **kwargs):\n"
        "    with workers_on('local:1') as executor:\n"
        "        executor.submit(lambda: (time.sleep(600), open(sys.argv[3] + '.done', 'w')))\n"
        "        print(time.time(), flush=True)\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "module.run_sweep = run_sweep\n"
        "from surefoot.cli import main; main()\n"
    )
    command = [sys.executable, "-c", code, "reproduce", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"\nfrom Ctrl-C to the end: {time.time() - float(done.stdout):.1f} s")
    assert done.returncode == 130
    assert not (tmp_path / "out.done").exists()
    assert done.stderr == "\nsurefoot: interrupted; the same command continues where this one stopped.\n"
