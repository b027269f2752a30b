"""The commands around experiments: what they show, what they write, and their exit codes."""

import csv
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from surefoot.audit import audit
from surefoot.audit.report import as_markdown, promise
from surefoot.cli.commands import app
from surefoot.cli.experiment import experiment
from surefoot.errors import ConfigError
from surefoot.experiment import Experiment
from surefoot.experiment.export import row_rounds
from surefoot.journal import open_journal
from surefoot.journal.signatures import PublicKey, SigningKey, head_message
from surefoot.reports.audit_page import as_html
from tests.cli.shell import shell
from tests.experiment.honest import CONSTRAINTS, played, safe
from tests.experiment.tampering import load, save
from tests.sharing.edges import new_keys

ROOT = Path(__file__).parents[2]
SETTINGS = ["dim=2", "alpha=0.1", "delta=0.01", "noise=0.5", "theta_bound=1.0", "feature_bound=1.0"]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "shop.db"
    with open_journal(path) as opened:
        played(safe(), 80, journal=opened, window=6.0)
    return path


def run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)


def test_an_honest_journal_is_clean_and_says_what_was_promised(journal: Path) -> None:
    done = run("audit", journal)
    assert done.exit_code == 0
    assert "CLEAN" in done.output
    for words in (
        "What was promised",
        "at least 90% of what the baseline",
        "Was it kept?",
        "What an audit cannot show",
    ):
        assert words in done.output


def test_json_and_reports_say_the_same(journal: Path, tmp_path: Path) -> None:
    done = run("audit", journal, "--experiment", "shop", "--json", "--report", tmp_path / "r.html")
    (verdict,) = json.loads(done.stdout)
    assert verdict["is_clean"]
    assert verdict["decisions"] == 80
    assert verdict["closest"]["margin"] > 0
    page = (tmp_path / "r.html").read_text("utf-8")
    assert verdict["head"]["hash"] in page
    assert "What an audit cannot show" in page
    run("audit", journal, "--report", tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text("utf-8").startswith("# Audit of experiment 'shop'")
    assert run("audit", journal, "--expect", verdict["head"]["hash"]).exit_code == 0
    assert run("audit", journal, "--expect", "0" * 64).exit_code == 1


def test_findings_end_with_exit_code_1_and_name_the_event(journal: Path, tmp_path: Path) -> None:
    path = tmp_path / "edited.db"
    path.write_bytes(journal.read_bytes())
    rows = load(path)
    rows[33]["time"] += 1e-3
    save(path, rows, head=None)
    done = run("audit", path, "--report", tmp_path / "r.html")
    assert done.exit_code == 1
    assert "event 34, hash" in done.output
    assert "event 34, hash" in (tmp_path / "r.html").read_text("utf-8")
    with open_journal(path, read_only=True) as opened:
        report = audit(opened, "shop")
    assert "event 34, hash" in as_markdown(report)
    assert "cannot be relied on" in as_html(report)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_constraint_has_its_promise_in_words(name: str) -> None:
    report = audit(played(safe(constraint=CONSTRAINTS[name]), 3), "shop")
    assert "at least 90%" in promise(report)
    assert "except with probability 5%" in promise(report)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("audit", "missing.db"), "There must be a journal at missing.db"),
        (("audit", "{journal}", "--experiment", "other"), "has no experiment 'other'"),
        (("audit", "{journal}", "--report", "report.pdf"), "must end in .html or .md"),
        (("experiment", "status", "{journal}", "other"), "has no experiment 'other'"),
        (("experiment", "export", "{journal}", "shop", "out.xlsx"), "must be one of parquet, csv, dsjson"),
        (("experiment", "create", "{new}", "a", "--policy", "Oracle"), "got 'Oracle'. Known are CLUCB, CLUCB2"),
        (("experiment", "create", "{new}", "a", "--set", "dim"), "must be key=value"),
        (("experiment", "create", "{new}", "a", "--set", "dim=2"), "missing 3 required"),
        (("experiment", "create", "{new}", "a", "--settings", "none.toml"), "must be a TOML file"),
    ],
)
def test_mistakes_end_with_a_sentence_and_exit_code_2(
    args: tuple[str, ...],
    message: str,
    journal: Path,
    tmp_path: Path,
) -> None:
    code, _, said = shell(*(arg.format(journal=journal, new=tmp_path / "new.db") for arg in args))
    assert code == 2
    assert message in said
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_journal_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, " * 100)
    code, _, said = shell("audit", tmp_path / "text.db")
    assert code == 2
    assert said.startswith("surefoot: ")


def test_create_makes_an_experiment_that_runs(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    (tmp_path / "policy.toml").write_text('radius = "logdet"\nreward_range = [0, 1]\n')
    sets = [part for pair in SETTINGS for part in ("--set", pair)]
    args = ("--settings", tmp_path / "policy.toml", "--mode", "guarded", "--reward-bounds", "0,1")
    done = run("experiment", "create", path, "first", *sets, *args)
    assert done.exit_code == 0
    with open_journal(path) as opened:
        first = Experiment.open(opened, "first")
        assert first.settings.settings["radius"] == "logdet"
        assert first.settings.reward_bounds == (0.0, 1.0)
        answer = first.decide([[0.6, 0.1], [0.9, 0.3]], baseline=0)
        assert first.reward(answer.decision_id, 2.0).is_accepted
        assert first.status().is_refuted
    code, _, said = shell("experiment", "create", path, "first", *sets)
    assert code == 2
    assert "exists already" in said
    assert run("audit", path).exit_code == 0


def test_list_and_status_show_what_a_manager_asks(journal: Path) -> None:
    listed = run("experiment", "list", journal)
    assert listed.exit_code == 0
    assert "SafeLUCB" in listed.output
    (entry,) = json.loads(run("experiment", "list", journal, "--json").stdout)
    assert entry["rounds"] == 80
    shown = run("experiment", "status", journal, "shop")
    for row in ("mode", "alarm", "floor", "guaranteed", "margin", "worst moment", "learner's share", "rewards pending"):
        assert f"│ {row} " in shown.output
    status = json.loads(run("experiment", "status", journal, "shop", "--json").stdout)
    assert status["guaranteed"] == pytest.approx(status["floor"] + status["margin"])
    assert status["learner_rounds"] + status["baseline_rounds"] == 80


def test_a_new_experiment_has_a_status_without_numbers_that_json_cannot_tell(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    run("experiment", "create", path, "first", *(part for pair in SETTINGS for part in ("--set", pair)))
    assert json.loads(run("experiment", "status", path, "first", "--json").stdout)["margin"] is None
    assert run("experiment", "status", path, "first").exit_code == 0


def test_parquet_and_csv_hold_every_decision_marked_as_deterministic(journal: Path, tmp_path: Path) -> None:
    for kind in ("parquet", "csv"):
        assert run("experiment", "export", journal, "shop", tmp_path / f"out.{kind}").exit_code == 0
    table, text = pl.read_parquet(tmp_path / "out.parquet"), pl.read_csv(tmp_path / "out.csv")
    assert table.height == text.height == 80
    assert table["round"].to_list() == list(range(1, 81))
    for column in ("decision_id", "action", "source", "reward", "margin", "probability", "is_deterministic"):
        assert table[column].to_list() == text[column].to_list()
    assert table["is_deterministic"].all()
    assert set(table["probability"]) == {1.0}
    with open_journal(journal, read_only=True) as opened:
        status = Experiment.open(opened, "shop").status()
    assert table["reward"].sum() == pytest.approx(status.total_reward)
    assert table["reward"].null_count() == status.pending
    assert [json.loads(row) for row in text["features"]] == table["features"].to_list()


def test_dsjson_holds_learned_decisions_with_the_played_action_first(journal: Path, tmp_path: Path) -> None:
    assert run("experiment", "export", journal, "shop", tmp_path / "out.dsjson").exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "out.dsjson").read_text().splitlines()]
    with open_journal(journal, read_only=True) as opened:
        rows = [row for row in row_rounds(opened, "shop") if row["reward"] is not None]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert (line["_label_probability"], line["_deterministic"], line["p"][0]) == (1.0, True, 1.0)
        assert line["_label_cost"] == -row["reward"]
        assert line["a"][0] == line["_label_Action"] == row["action"] + 1
        assert sorted(line["a"]) == list(range(1, len(line["c"]["_multi"]) + 1))
        assert list(line["c"]["_multi"][row["action"]]["features"].values()) == row["features"]


def commands() -> Iterator[str]:
    for command in experiment.registered_commands:
        assert command.callback is not None
        yield command.name or command.callback.__name__


@pytest.mark.parametrize("command", list(commands()))
def test_the_command_is_in_the_documentation(command: str) -> None:
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    assert f"surefoot experiment {command}" in text


def test_a_csv_is_safe_to_open_in_a_spreadsheet(tmp_path: Path) -> None:
    from surefoot import UCB, Guard

    formula = "=HYPERLINK(A1)"
    with open_journal(tmp_path / "shop.db") as opened:
        arms = Experiment.create(opened, "arms", UCB(arms=2))
        arms.decide(baseline=0, actions=[formula, "+1"], decision_id="-2+3", context={"@": 1})
        guard = Experiment.create(opened, "guard", Guard(alpha=0.1, delta=0.1, unit_window=5))
        guard.decide(baseline=formula, proposal="b", unit=formula, decision_id="@SUM(1)")
    for name in ("arms", "guard"):
        assert run("experiment", "export", tmp_path / "shop.db", name, tmp_path / f"{name}.csv").exit_code == 0
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        texts = [cell for row in rows for cell in row if not _is_number(cell)]
        assert not [cell for cell in texts if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert f"'{formula}" in texts
    run("experiment", "export", tmp_path / "shop.db", "arms", tmp_path / "arms.parquet")
    assert pl.read_parquet(tmp_path / "arms.parquet")["action_id"].to_list() == [formula]  # a table is data


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_a_forged_journal_with_an_unsigned_head_of_its_own_is_found(journal: Path, tmp_path: Path) -> None:
    """Whoever rewrites a journal writes its heads anew, and has no key: a head without a signature proves nothing."""
    for name in ("head", "old"):
        new_keys(tmp_path, name)
    with open_journal(journal, read_only=True) as opened:
        head = opened.view("shop").head
    kept, receipt = tmp_path / "heads.jsonl", {"experiment": "shop", "number": head.number, "hash": head.hash}

    def audited(*keys: str, **head_of: Any) -> Any:
        kept.write_text(json.dumps({**receipt, **head_of}) + "\n")
        return run("audit", journal, "--expect", kept, *(part for key in keys for part in ("--key", tmp_path / key)))

    unsigned = audited("head.pub")
    assert (unsigned.exit_code, "of 'shop' is not signed" in unsigned.output) == (1, True)
    old, new = (SigningKey(tmp_path / f"{name}.key") for name in ("old", "head"))
    before: dict[str, Any] = {"time": 7.0, "signature": old.sign(head_message("shop", head, 7.0))}
    alone = audited("head.pub", **before, key=old.name)
    assert (alone.exit_code, f"names the key {old.name}, which is not among these" in said(alone)) == (1, True)
    both = audited("head.pub", "old.pub", **before, key=old.name)  # the key was changed since
    assert (both.exit_code, "Signatures checked: 1 heads" in said(both)) == (0, True)
    for name in (new.name, ""):  # another key's name does not help
        assert audited("head.pub", "old.pub", **before, key=name).exit_code == 1


def said(result: Any) -> str:
    return " ".join(result.output.split())


def test_the_name_of_a_key_is_what_openssl_says(tmp_path: Path) -> None:
    new_keys(tmp_path)
    words = f"openssl pkey -pubin -in {tmp_path}/head.pub -outform DER | sha256sum | cut -c1-16"
    fingerprint = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True).stdout.strip()
    assert SigningKey(tmp_path / "head.key").name == PublicKey(tmp_path / "head.pub").name == fingerprint


def test_a_private_key_that_anybody_may_read_is_refused(tmp_path: Path) -> None:
    new_keys(tmp_path)
    (tmp_path / "head.key").chmod(0o644)
    with pytest.raises(ConfigError, match=r"its owner's alone, but anybody may read it: chmod 600"):
        SigningKey(tmp_path / "head.key")


def test_a_key_without_heads_checks_nothing_and_says_so(journal: Path, tmp_path: Path) -> None:
    new_keys(tmp_path)
    code, _, said = shell("audit", journal, "--key", tmp_path / "head.pub")
    assert code == 2
    assert "name a file by `--expect`" in " ".join(said.split())
