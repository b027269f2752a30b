"""Bad input: a clear error with the line, bad rows counted up to a limit, and nothing half-written."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surefoot.errors import AssumptionError, ConfigError, EvidenceError, InputError, LogError
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.columns import Columns
from surefoot.replay.evaluation import replay
from surefoot.replay.log import ArrayLog, BadRows, classification, ratings
from surefoot.replay.replayed_policy import Declared
from surefoot.replay.table_log import read_log
from surefoot.simulation.policy_specs import Spec
from tests.replay.test_readers import dsjson, table, write

HEADER = "id,x,action,reward,propensity"
GOOD = [f"{i},{i / 10},{'ab'[i % 2]},{i % 3 / 2},0.5" for i in range(8)]


def csv(path: Path, changes: dict[int, str]) -> Path:
    rows = [changes.get(i, row) for i, row in enumerate(GOOD)]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("3,0.3,b,much,0.5", "reward must be a finite number, not 'much'"),
        ("3,0.3,b,,0.5", "reward is missing"),
        ("3,0.3,b,nan,0.5", "reward must be a finite number, not 'nan'"),
        ("3,0.3,b,inf,0.5", "reward must be a finite number, not 'inf'"),
        ("3,0.3,b,1e300,0.5", "reward must be a finite number, not '1e300'"),
        ("3,high,b,1,0.5", "x must be a finite number, not 'high'"),
        ("3,0.3,,1,0.5", "action is missing"),
        ("3,0.3,b,1,-0.2", "0 < propensity <= 1 must hold for a propensity, not '-0.2'"),
        ("3,0.3,b,1,0", "0 < propensity <= 1 must hold"),
        ("3,0.3,b,1,1.5", "0 < propensity <= 1 must hold"),
        ("2,0.3,b,1,0.5", "id '2' was used by a row before"),
        ("3,0.3,b,1", "has 4 fields, the header has 5"),
        ("3,0.3,b,1,0.5,9", "has 6 fields, the header has 5"),
    ],
)
def test_a_bad_row_is_named_with_its_line_and_reason(row: str, reason: str, tmp_path: Path) -> None:
    path = csv(tmp_path / "log.csv", {3: row})
    with pytest.raises(LogError) as caught:
        read_log(path)
    assert f"line 5: {reason}" in str(caught.value)
    log = read_log(path, max_bad=1)
    assert (log.rows, log.bad.count) == (7, 1)
    assert sum(len(batch) for batch in log.batches()) == 7


def test_bad_rows_are_counted_and_stop_the_run_beyond_the_limit(tmp_path: Path) -> None:
    path = csv(tmp_path / "log.csv", {1: "1,x,a,1,0.5", 4: "4,0.4,a,1,2", 6: "6,0.6,a,?,0.5"})
    assert read_log(path, max_bad=3).bad.shown == [
        (3, "x must be a finite number, not 'x'"),
        (6, "0 < propensity <= 1 must hold for a propensity, not '2'"),
        (8, "reward must be a finite number, not '?'"),
    ]
    with pytest.raises(LogError, match=r"3 so far are not, and 2 are allowed(.|\n)*line 8"):
        read_log(path, max_bad=2)


def test_duplicate_ids_are_found_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(400)
    data = pl.concat([data, data[7:8]])
    monkeypatch.setattr("surefoot.replay.table_files.BLOCK_BYTES", 500)
    with pytest.raises(LogError, match=r"line 402: id 'r7' was used by a row before"):
        read_log(write(data, tmp_path / "log.csv"))


def test_a_missing_column_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    path = csv(tmp_path / "log.csv", {})
    with pytest.raises(LogError, match=r"must have the column\(s\) 'rewards'.*Did you mean 'reward'"):
        read_log(path, columns=Columns(reward="rewards"))
    with pytest.raises(LogError, match=r"must have the column\(s\) 'y\*'"):
        read_log(path, columns=Columns(context=("y*",)))


@pytest.mark.parametrize("name", ["log.csv.gz", "log.jsonl.gz", "log.parquet", "log.jsonl"])
def test_a_truncated_file_is_an_error_and_not_a_shorter_log(name: str, tmp_path: Path) -> None:
    path = write(table(2_000), tmp_path / name)
    path.write_bytes(path.read_bytes()[:-25])
    with pytest.raises(LogError) as caught:
        read_log(path)
    assert "line" in str(caught.value) or "Parquet" in str(caught.value)


def test_a_csv_that_breaks_off_inside_its_last_row_is_an_error(tmp_path: Path) -> None:
    path = csv(tmp_path / "log.csv", {})
    path.write_text(path.read_text()[:-6])
    with pytest.raises(LogError, match="line 9: has 4 fields, the header has 5"):
        read_log(path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"x": 1, "action": "a", "reward": "big"}', "reward must be a number, not 'big'"),
        ('{"x": 1, "action": "a"}', "reward is missing"),
        ('{"x": [1], "action": "a", "reward": 1}', "x must be a number"),
        ("[1, 2]", "it is not an object"),
        ('{"x": 1, "acti', "is not a row of JSON"),
    ],
)
def test_json_lines_of_mixed_types_are_named(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    good = [json.dumps({"x": i, "action": "ab"[i % 2], "reward": i}) for i in range(4)]
    path.write_text("\n".join([*good[:2], line, *good[2:]]))
    with pytest.raises(LogError) as caught:
        read_log(path)
    assert "line 3: " in str(caught.value)
    assert reason in str(caught.value)
    assert read_log(path, max_bad=1).rows == 4


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (dsjson(2, 2, probability=0.0), "0 < _label_probability <= 1 must hold, not 0"),
        (dsjson(2, 7), "action 7 is not one of the 3"),
        (dsjson(1, 1), "EventId 'e1' was used by an event before"),
        ({"RewardValue": 1.0, "EventId": "e2"}, "'_label_cost' is missing"),
        (dsjson(2, 1, cost=float("nan")), "_label_cost must be a finite number"),
    ],
)
def test_bad_dsjson_events_are_named(event: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(json.dumps(entry) for entry in (dsjson(1, 1), event, dsjson(3, 3))) + "\n")
    with pytest.raises(LogError) as caught:
        read_log(path)
    assert f"line 2: {reason}" in str(caught.value)
    log = read_log(path, max_bad=1)
    assert (log.rows, log.bad.count) == (2, 1)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"id,x\n"])
def test_an_empty_log_is_an_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(LogError):
        read_log(path)
    path.write_bytes((HEADER + "\n").encode())
    with pytest.raises(LogError, match="at least one usable row"):
        read_log(path)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = csv(tmp_path / "log.csv", {2: "2,0.2,\xff,1,0.5"})
    path.write_bytes(path.read_text().encode("latin-1"))
    with pytest.raises(LogError, match="line 4: is not valid UTF-8"):
        read_log(path)
    (tmp_path / "log.csv.gz").write_bytes(b"no gzip at all")
    with pytest.raises(LogError, match="breaks off or is damaged"):
        read_log(tmp_path / "log.csv.gz")
    gzip.decompress(gzip.compress(b""))


def test_an_action_or_baseline_that_was_not_declared_is_a_bad_row(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="action 'b' is not one of the 1 actions"):
        read_log(csv(tmp_path / "log.csv", {}), actions=["a"])


def test_too_many_labels_or_actions_are_refused(tmp_path: Path) -> None:
    many = pl.DataFrame({"who": [f"u{i}" for i in range(100)], "action": ["a"] * 100, "reward": [1.0] * 100})
    reason = "has more than 64 different labels; --hash who:64 takes it"
    assert read_log(write(many, tmp_path / "guessed.csv")).left_out == {"who": reason}
    with pytest.raises(ConfigError, match="at most 64 different ones"):
        read_log(write(many, tmp_path / "log.csv"), columns=Columns(context=("who",)))
    many = pl.DataFrame({"action": [f"u{i}" for i in range(1_001)], "reward": [1.0] * 1_001})
    with pytest.raises(LogError, match="Is it the right column"):
        read_log(write(many, tmp_path / "log.csv"))


SETTINGS = Declared(noise=0.5, theta_bound=1.0, baseline_reward=0.5)


def test_arrays_that_do_not_fit_are_refused() -> None:
    rows = np.ones((3, 2, 2)) / 2
    with pytest.raises(InputError, match="rows 0 to 1, but row 2 has 5"):
        ArrayLog(features=rows, actions=[0, 5, 1], rewards=[0.0] * 3, baselines=0)
    with pytest.raises(InputError, match="0 < propensity <= 1"):
        ArrayLog(features=rows, actions=0, rewards=[0.0] * 3, baselines=0, propensities=[0.5, -0.5, 0.5])
    with pytest.raises(InputError, match="must belong to the same rounds"):
        ArrayLog(features=rows, actions=0, rewards=[0.0] * 2, baselines=0)
    with pytest.raises(InputError, match="must be finite"):
        classification([[np.nan]], [1], baselines=0)
    with pytest.raises(InputError, match="Ratings must differ"):
        ratings([[1.0], [2.0]], [[3.0, 3.0], [3.0, 3.0]], baselines=0)
    long = ArrayLog(features=4 * rows, actions=0, rewards=np.ones((3, 2)), baselines=0, feature_bound=1.0)
    with pytest.raises(AssumptionError, match=r"in line 1 one has length 2\.82843"):
        replay(long, [Spec("LUCB")], declared=SETTINGS, evaluator="full")


def test_settings_that_no_replay_can_run_with_are_refused(tmp_path: Path) -> None:
    log = read_log(csv(tmp_path / "log.csv", {}), baseline="a")
    with pytest.raises(ConfigError, match="must be rejection, importance or full"):
        replay(log, [Spec("LUCB")], declared=SETTINGS, evaluator="ips")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="one that replay can play, but got 'UCB'"):
        replay(log, [Spec("UCB")], declared=SETTINGS)
    with pytest.raises(EvidenceError, match="known without looking at the logged action"):
        replay(read_log(csv(tmp_path / "uneven.csv", {3: "3,0.3,b,1,0.4"})), [Spec("LUCB")], declared=SETTINGS)
    with pytest.raises(ConfigError, match="baseline_reward >= 0"):
        Declared(noise=0.5, theta_bound=1.0, baseline_reward=-0.1)
    with pytest.raises(AssumptionError, match="must not be negative"):
        _ = fit_baseline(read_log(csv(tmp_path / "n.csv", {0: "0,0.1,a,-90,0.5"}), baseline="a")).declared


def test_only_the_first_bad_rows_are_kept() -> None:
    bad = BadRows(limit=1_000)
    for at in range(40):
        bad.add([(at, "bad"), (at, "worse")], "log")
    assert (bad.count, len(bad.shown)) == (80, 20)


def test_a_table_of_labels_must_say_what_is_played_today(tmp_path: Path) -> None:
    path = write(pl.DataFrame({"x": [0.1, 0.9] * 20, "label": ["a", "b"] * 20}), tmp_path / "labels.csv")
    log = read_log(path, columns=Columns(action="label", reward=None, context=("x",)))
    with pytest.raises(EvidenceError, match="what is played today, but no action of it was logged"):
        replay(log, [Spec("LUCB")], declared=Declared(0.5, 1.0, 0.5), evaluator="full")
