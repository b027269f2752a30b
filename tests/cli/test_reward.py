"""`surefoot reward`: rewards from files of every format, sent twice, interrupted, and refused."""

import io
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import surefoot
from surefoot.cli import options
from surefoot.cli.commands import app
from surefoot.errors import InputError
from surefoot.experiment import Experiment, reward_file
from surefoot.experiment.reward_file import Verdict, send_rewards
from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from tests.service.servers import create, running

METRICS = {"quality": surefoot.floor(0, 1, alpha=0.1), "cost": surefoot.ceiling(0, 2, alpha=0.3)}
ROWS: list[dict[str, Any]] = [
    {"decision_id": f"{at:03d}", "quality": at / 30, "cost": None if at % 5 == 0 else 0.25} for at in range(30)
]
BAD: list[dict[str, Any]] = [
    {"decision_id": "nobody", "quality": 0.5, "cost": 0.5},
    {"decision_id": "030", "quality": 1.5, "cost": 0.5},
    {"decision_id": "031", "quality": None, "cost": None},
    {"decision_id": None, "quality": 0.5, "cost": 0.5},
]
REASONS = ["unknown", "out_of_range", "no reward", "no decision_id"]
WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "parquet": pl.DataFrame.write_parquet,
    "csv": pl.DataFrame.write_csv,
    "jsonl": pl.DataFrame.write_ndjson,
}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    file = tmp_path / "chat.journal"
    with open_journal(file) as opened:
        chat = Experiment.create(
            opened, "chat", surefoot.Guard(delta=0.05, metrics=METRICS), mode="guarded", sealed=True
        )
        chat.decide_all([{"baseline": "a", "proposal": "b", "decision_id": f"{at:03d}"} for at in range(40)])
    return file


def run(*args: Any) -> Result:
    return CliRunner().invoke(app, ["reward", *map(str, args)])


def status(journal: Path) -> tuple[int, int]:
    with open_journal(journal) as opened:
        found = Experiment.open(opened, "chat").status()
        return found.rewards, found.events


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_counts_once_and_says_what_is_refused(journal: Path, suffix: str) -> None:
    file, refused = journal.with_name(f"rewards.{suffix}"), journal.with_name(f"rewards.{suffix}.refused.jsonl")
    WRITERS[suffix](pl.DataFrame(ROWS + BAD), file)
    first = run(journal, "chat", "--from", file)
    assert first.exit_code == 0, first.output
    assert "Accepted 30 rewards." in first.output
    listed = [json.loads(line) for line in refused.read_text().splitlines()]
    assert [one["reason"] for one in listed] == REASONS
    assert [one["decision_id"] for one in listed] == [row["decision_id"] for row in BAD]
    assert listed[1]["values"] == {"quality": 1.5, "cost": 0.5}
    WRITERS[suffix](pl.DataFrame(ROWS), file)
    before = status(journal)
    again = run(journal, "chat", "--from", file)
    assert "Accepted 30 rewards, 30 of them duplicates." in again.output
    assert not refused.exists()
    assert status(journal) == before
    # What was missing may follow.
    WRITERS[suffix](pl.DataFrame([{"decision_id": "000", "cost": 0.5}, {"decision_id": "005", "cost": 0.5}]), file)
    assert "Accepted 2 rewards." in run(journal, "chat", "--from", file).output


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_finite_is_refused_and_the_rest_sent(journal: Path, suffix: str, value: float) -> None:
    """From a journal and through a service."""
    file = journal.with_name(f"rewards.{suffix}")
    good = {"decision_id": "001", "quality": 0.5, "cost": 0.25}
    if suffix == "jsonl":  # JSON has none, but numbers too large
        file.write_text(f'{{"decision_id": "000", "quality": 1{"0" * 400}, "cost": 0.25}}\n{json.dumps(good)}\n')
    else:
        WRITERS[suffix](pl.DataFrame([{"decision_id": "000", "quality": value, "cost": 0.25}, good]), file)

    def check(place: Path | str) -> None:
        result = run(place, "chat", "--from", file)
        assert result.exit_code == 0, result.output
        assert "Accepted 1 reward" in result.output
        (line,) = file.with_name(f"{file.name}.refused.jsonl").read_text().splitlines()
        assert (json.loads(line)["decision_id"], json.loads(line)["reason"]) == ("000", "out_of_range")

    check(journal)
    with running(Settings(database=str(journal))) as address:
        check(address)


def test_an_interrupted_run_is_continued_by_the_same_command(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = journal.with_name("rewards.csv")
    pl.DataFrame(ROWS).write_csv(file)
    monkeypatch.setattr(reward_file, "BATCH", 7)
    honest, calls = Experiment.reward_all, list[int]()

    def interrupted(self: Experiment, rewards: Any) -> Any:
        calls.append(len(rewards))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return honest(self, rewards)

    with monkeypatch.context() as patch:
        patch.setattr(Experiment, "reward_all", interrupted)
        run(journal, "chat", "--from", file)
    assert status(journal)[0] == 14
    assert "Accepted 30 rewards, 14 of them duplicates." in run(journal, "chat", "--from", file).output
    assert status(journal)[0] == 30


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rewards.txt", "x", "ends in .parquet, .csv, .jsonl"),
        ("rewards.parquet", "x", "must be a Parquet file"),
        ("rewards.csv", "id,quality\na,1\n", "must have decision_id"),
        ("rewards.csv", "decision_id\na\n", "a metric such as reward"),
        ("rewards.csv", "decision_id,quality\na,1\nb,1,2\n", "Line 3"),
        ("rewards.csv", "decision_id,quality\na,1\nb,\xff\n", "must be a CSV file"),
        ("rewards.csv", 'decision_id,quality\na,1\nb,"1\n', "must be a CSV file"),
        ("rewards.csv", "decision_id,quality,quality\na,1,2\n", "each once"),
        ("rewards.csv", "", "must have decision_id"),
        ("rewards.jsonl", '{"decision_id": "000", "quality": 1}\n{"decision_id"', "Line 2"),
    ],
)
def test_a_file_that_cannot_be_read_sends_nothing(journal: Path, name: str, text: str, words: str) -> None:
    file, before = journal.with_name(name), status(journal)
    file.write_text(text, encoding="latin-1")
    result = run(journal, "chat", "--from", file)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
    assert status(journal) == before


def test_refusals_are_on_the_disk_as_far_as_an_interrupted_run_has_come(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [journal.with_name("rewards.csv"), journal.with_name("rewards.jsonl")]
    monkeypatch.setattr(reward_file, "BATCH", 4)
    reasons = dict[Path, list[str]]()
    for file in files:
        WRITERS[file.suffix[1:]](pl.DataFrame(BAD + ROWS), file)

        def interrupted(rows: Any) -> list[Verdict]:
            if any(decision_id == "004" for decision_id, _ in rows):
                raise KeyboardInterrupt
            return [Verdict("unknown" if decision_id == "nobody" else None) for decision_id, _ in rows]

        with pytest.raises(KeyboardInterrupt):
            send_rewards(file, interrupted)
    for file in files:
        listed = file.with_name(f"{file.name}.refused.jsonl").read_text().splitlines()
        reasons[file] = [json.loads(line)["reason"] for line in listed]
    assert reasons == {file: ["unknown", "no reward", "no decision_id"] for file in files}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_large_file_is_read_a_batch_at_a_time(tmp_path: Path, suffix: str) -> None:
    rows, file, done = 20_000, tmp_path / f"rewards.{suffix}", list[tuple[int, int]]()
    WRITERS[suffix](pl.DataFrame({"decision_id": [f"{at:06d}" for at in range(rows)], "reward": [0.5] * rows}), file)
    send_rewards(file, lambda batch: [Verdict()] * len(batch))  # what it imports is not counted
    tracemalloc.start()
    sent = send_rewards(file, lambda batch: [Verdict("late")] * len(batch), progress=lambda *at: done.append(at))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (sent.accepted, sent.refused) == (0, rows)
    assert peak < 2e6  # all of them are some 10 MB
    assert done == [(at, rows) for at in range(500, rows + 1, 500)]


def test_the_bar_says_how_far_it_has_come(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, shown = journal.with_name("rewards.csv"), io.StringIO()
    pl.DataFrame(ROWS).write_csv(file)
    monkeypatch.setattr(options, "stderr", Console(file=shown, force_terminal=True, width=80, color_system=None))
    monkeypatch.setattr(reward_file, "BATCH", 10)
    assert run(journal, "chat", "--from", file).exit_code == 0
    assert re.search(r"sending .*100% 30 rewards", shown.getvalue())


def test_a_value_that_is_no_number_and_a_metric_that_does_not_exist_are_refused(journal: Path) -> None:
    file = journal.with_name("rewards.csv")
    file.write_text("decision_id,quality,stars\n001,good,\n002,,5\n003,0.5,\n")
    assert "Accepted 1 reward." in run(journal, "chat", "--from", file).output
    first, second = map(json.loads, journal.with_name("rewards.csv.refused.jsonl").read_text().splitlines())
    assert (first["decision_id"], first["reason"]) == ("001", "quality is not a number")
    assert second["decision_id"] == "002"
    assert "'stars'" in second["reason"]


def test_a_linear_reward_has_the_column_reward(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.journal") as opened:
        shop = Experiment.create(opened, "shop", surefoot.UCB(arms=2))
        shop.decide(baseline=0, decision_id="one")
    (tmp_path / "rewards.csv").write_text("decision_id,reward\none,0.5\ntwo,0.5\n")
    output = run(tmp_path / "shop.journal", "shop", "--from", tmp_path / "rewards.csv").output
    assert "Accepted 1 reward." in output
    assert "Refused 1" in output


def test_the_service_takes_them_as_well(tmp_path: Path) -> None:
    file, refused = tmp_path / "rewards.jsonl", tmp_path / "rewards.jsonl.refused.jsonl"
    with running(Settings(database=str(tmp_path / "shop.journal"))) as address:
        with httpx.Client(base_url=address, timeout=60) as client:
            metrics = {name: metric.plain() for name, metric in METRICS.items()}
            create(client, "chat", policy="Guard", settings={"delta": 0.05, "metrics": metrics}, actions=["a", "b"])
            for at in range(40):
                client.post("/v1/experiments/chat/decisions", json={"decision_id": f"{at:03d}"})
        pl.DataFrame(ROWS + BAD).write_ndjson(file)
        for duplicates in ("", ", 30 of them duplicates"):
            output = run(address, "chat", "--from", file).output
            assert f"Accepted 30 rewards{duplicates}." in output
            assert [json.loads(line)["reason"] for line in refused.read_text().splitlines()] == REASONS
        assert run(address, "nobody", "--from", file).exit_code == 1
