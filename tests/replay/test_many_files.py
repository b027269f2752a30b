"""Logs in several files, and in spans that several workers look at: the same log as one file read by one."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surefoot.errors import ConfigError, LogError
from surefoot.replay import Columns, read_log, table_files
from surefoot.replay.log import Log

ROWS = 450


def table(rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame({
        "x": rng.normal(size=rows).round(3),
        "plan": rng.choice(["pro", "free", 'with "quotes",\nand a break'], size=rows),
        "action": rng.choice(["a", "b", "c"], size=rows),
        "reward": rng.random(rows).round(3),
        "propensity": rng.choice([0.2, 0.4], size=rows),
    })  # fmt: skip


def write_csv(frame: pl.DataFrame, path: Path) -> None:
    frame.write_csv(path)


def write_gzip(frame: pl.DataFrame, path: Path) -> None:
    path.write_bytes(gzip.compress(frame.write_csv().encode()))


def write_jsonl(frame: pl.DataFrame, path: Path) -> None:
    frame.write_ndjson(path)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path)


WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    ".csv": write_csv, ".csv.gz": write_gzip, ".jsonl": write_jsonl, ".parquet": write_parquet
}  # fmt: skip


def write(folder: Path, suffix: str, frame: pl.DataFrame, cuts: tuple[int, ...] = ()) -> list[Path]:
    """The table as one file, or as several that begin at the cuts."""
    ends = [0, *cuts, frame.height]
    paths = [folder / f"part{place}{suffix}" for place in range(len(ends) - 1)]
    for path, start, stop in zip(paths, ends, ends[1:], strict=False):
        WRITERS[suffix](frame[start:stop], path)
    return paths


def content(log: Log) -> dict[str, Any]:
    batches = list(log.batches())
    return {
        name: np.concatenate([getattr(batch, name) for batch in batches]).tolist()
        for name in ("features", "actions", "rewards", "propensities", "baselines")
    } | {"known": (log.actions, log.dim, log.rows, log.propensity_range, log.feature_bound, log.bad.count)}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "BLOCK_BYTES", 350)
    monkeypatch.setattr(table_files, "ROWS", 20)


@pytest.mark.parametrize("suffix", WRITERS)
def test_several_files_are_one_log(suffix: str, tmp_path: Path) -> None:
    (whole,) = write(tmp_path, suffix, table())
    one = read_log(whole, baseline="a")
    (tmp_path / "parts").mkdir()
    many = read_log(write(tmp_path / "parts", suffix, table(), cuts=(150, 151)), baseline="a")
    assert content(many) == content(one)
    assert many.name == f"part0{suffix} and 2 more"


@pytest.mark.parametrize("cuts", [(), (150,)], ids=["one file", "two files"])
def test_bad_rows_are_named_by_file_and_line(cuts: tuple[int, ...], small_blocks: None, tmp_path: Path) -> None:
    frame = table().with_columns(plan=pl.lit("pro"))
    odd = frame.with_columns(
        reward=pl.when(pl.int_range(ROWS).is_in([100, 250, 449])).then(pl.lit("much")).otherwise(pl.col("reward"))
    )
    paths = write(tmp_path, ".csv", odd, cuts)
    log = read_log(paths, baseline="a", max_bad=3)
    assert log.bad.count == 3
    found = log.bad.shown
    content(log)
    assert log.bad.shown == found
    place = " (part1.csv, line 102)" if cuts else ""
    line = 253 if cuts else 252  # two headers
    assert found[1] == (line, f"reward must be a finite number, not 'much'{place}")
    with pytest.raises(LogError, match=r"2 are allowed:\n  line 102: reward must be a finite number, not 'much'"):
        read_log(paths, baseline="a", max_bad=2)


def test_an_id_that_repeats_in_another_block_or_file_is_found(small_blocks: None, tmp_path: Path) -> None:
    frame = table().with_columns(id=pl.Series([*range(ROWS - 1), 5]))
    paths = write(tmp_path, ".csv", frame, cuts=(225,))
    columns = Columns("action", reward="reward", propensity="propensity", context=("x",), id="id")
    with pytest.raises(LogError, match=r"id '5' was used by a row before \(part1.csv, line"):
        read_log(paths, baseline="a", columns=columns)


def test_too_many_labels_of_all_blocks_together_are_found(small_blocks: None, tmp_path: Path) -> None:
    labels = pl.Series([f"label {i % 150}" for i in range(ROWS)])
    (path,) = write(tmp_path, ".csv", table().with_columns(plan=labels).sort("plan"))
    columns = Columns("action", reward="reward", propensity="propensity", context=("plan",))
    with pytest.raises(ConfigError, match="A column of labels must have at most"):
        read_log(path, baseline="a", columns=columns)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    (first,) = write(tmp_path, ".csv", table())
    second = tmp_path / "other.csv"
    write_csv(table().drop("x"), second)
    with pytest.raises(LogError, match=r"the same columns, but `.*other.csv` lacks x, which `.*part0.csv` has"):
        read_log([first, second], baseline="a")
    (packed,) = write(tmp_path, ".parquet", table())
    with pytest.raises(ConfigError, match="All files of a log must be of one kind, but these are csv and parquet"):
        read_log([first, packed], baseline="a")
    with pytest.raises(ConfigError, match="A log must have at least one file"):
        read_log([])
    with pytest.raises(LogError, match=r"`.*nothing.csv` must be a log, but there is no such file"):
        read_log([first, tmp_path / "nothing.csv"])


def test_a_column_that_rows_of_another_file_do_not_have_is_a_gap_there(tmp_path: Path) -> None:
    paths = write(tmp_path, ".jsonl", table(), cuts=(200,))
    write_jsonl(table()[200:].drop("x"), paths[1])
    log = read_log(paths, baseline="a")
    assert (log.rows, log.context) == (ROWS, ("x", "plan"))
    assert log.encoder.parts[0].has_gaps  # type: ignore[attr-defined]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_first_rows_decide_what_a_column_holds(suffix: str, small_blocks: None, tmp_path: Path) -> None:
    values = pl.Series([str(i / 10) if i < 100 else "unknown" for i in range(ROWS)])
    paths = write(tmp_path, suffix, table().with_columns(x=values, plan=pl.lit("pro")))
    assert read_log(paths, baseline="a", max_bad=ROWS).bad.count == ROWS - 100


def events(numbers: range) -> str:
    found = [
        {
            "_label_cost": -(i % 7) / 7, "_label_probability": 0.5, "_labelIndex": i % 2, "EventId": f"e{i}",
            "c": {"age": i % 5, "_multi": [{"side": "left"}, {"side": "right"}]},
        }
        for i in numbers
    ]  # fmt: skip
    return "".join(json.dumps(event) + "\n" for event in found)


def test_several_files_of_events_are_one_log(tmp_path: Path) -> None:
    for name, numbers in {"all": range(50), "a": range(20), "b": range(20, 50), "twice": range(19, 22)}.items():
        (tmp_path / f"{name}.dsjson").write_text(events(numbers))
    one = read_log(tmp_path / "all.dsjson")
    many = read_log([tmp_path / "a.dsjson", tmp_path / "b.dsjson"])
    assert content(many) == content(one)
    with pytest.raises(LogError, match="line 21: EventId 'e19' was used by an event before"):
        read_log([tmp_path / "a.dsjson", tmp_path / "twice.dsjson"])


def test_a_file_that_comes_twice_is_refused_however_it_is_spelt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monday, tuesday = write(tmp_path, ".csv", table(), (200,))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.csv").symlink_to(monday)
    os.link(monday, tmp_path / "hard.csv")
    assert read_log([monday, tuesday], baseline="a").rows == ROWS
    assert read_log([monday.name, str(tuesday)], baseline="a").rows == ROWS
    with pytest.raises(LogError, match=r"given once, but `.*part0.csv` came twice: its rounds would count twice"):
        read_log([monday, tuesday, monday], baseline="a")
    other = tmp_path / ".." / tmp_path.name / monday.name
    for spelt in (monday.name, f"./{monday.name}", other, "link.csv", "hard.csv"):
        with pytest.raises(LogError, match=r"are the same file: its rounds would count twice\. Leave one out"):
            read_log([monday, tuesday, spelt], baseline="a")
