"""Names and labels are what was written: no reader merges two of them, and no row changes by those around it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import InputError, LogError
from surefoot.replay.columns import Columns
from surefoot.replay.log_files import TableLog
from surefoot.replay.open_log import read_log

HOWS: list[dict[str, Any]] = [{"hashed": {"x": 997}}, {"categorical": ("x",)}]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(log: TableLog) -> np.ndarray[Any, Any]:
    return np.concatenate([batch.features for batch in log.batches()])


def live(log: TableLog, values: list[Any]) -> np.ndarray[Any, Any]:
    return np.stack([log.phi(log.encoder.encode_one({"x": value})) for value in values])


def labels(table: Any, how: dict[str, Any]) -> TableLog:
    log = read_log(table, baseline="a", columns=Columns(context=("x",), **how))
    assert isinstance(log, TableLog)
    return log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log")


def test_actions_of_nineteen_digits_stay_apart(tmp_path: Path) -> None:
    names = [1234567890123456788 + k % 2 for k in range(20)]
    lines = [
        json.dumps({"action": name, "baseline": names[0], "offered": sorted(set(names)), "reward": 1, "age": k})
        for k, name in enumerate(names)
    ]
    log = read_log(write(tmp_path / "log.jsonl", lines))
    assert log.actions == ("1234567890123456788", "1234567890123456789")
    assert next(log.batches()).actions.tolist() == [k % 2 for k in range(20)]


def truths(kind: str, folder: Path) -> Any:
    played = [bool(k % 2) for k in range(6)]
    if kind == "frame":
        return pl.DataFrame({"action": played, "offered": [[False, True]] * 6, "reward": 1.0, "age": range(6)})
    if kind == "csv":
        return write(folder / "log.csv", ["action,offered,reward,age", *(f"{p},True|False,1,3" for p in played)])
    return write(
        folder / "log.jsonl",
        [json.dumps({"action": one, "offered": [False, True], "reward": 1, "age": 3}) for one in played],
    )


@pytest.mark.parametrize("kind", ["frame", "csv", "jsonl"])
def test_truth_values_name_actions_alike(kind: str, tmp_path: Path) -> None:
    table = truths(kind, tmp_path)
    log = read_log(table, baseline="True")
    assert log.actions == ("false", "true")
    assert next(log.batches()).baselines.tolist() == [1] * 6
    # As an older configuration spells them.
    told = read_log(table, baseline="True", actions=("False", "True"), action_features={"False": [0.0], "True": [1.0]})
    assert next(told.batches()).actions.tolist() == [k % 2 for k in range(6)]


def test_an_action_may_be_called_as_a_gap_is(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", ["action,reward,age", "none,1,3", "NA,0,4"])
    assert set(read_log(path, baseline="none").actions) == {"none", "NA"}


ODD = [
    "-0.0",
    "-0",
    "1e-7",
    "0.00001",
    "1e16",
    "1e23",
    "123456789012345678.5",
    "1e400",
    "2.50",
    "1E3",
    "true",
    "5e-324",
]
NUMBERS = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(10**40), 10**40).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(['"-0"', '"1e-7"', '"0.0000001"', '"100000000000000000000000"', '"True"', '"a\\u0000"']),
)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("beside", ["5", "null"])
@given(written=st.lists(NUMBERS, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_number_is_the_live_label_whatever_stands_beside_it(
    written: list[str], beside: str, how: dict[str, Any], folder: Path
) -> None:
    all_ = [*written, beside]
    lines = [f'{{"x": {raw}, "action": "{"ab"[k % 2]}", "reward": 1}}' for k, raw in enumerate(all_)]
    log = labels(write(folder / "log.jsonl", lines), how)
    np.testing.assert_array_equal(rows(log), live(log, [json.loads(raw) for raw in all_]))


@pytest.mark.parametrize("beside", ["5", "null"])
def test_half_a_character_is_a_bad_row(beside: str, tmp_path: Path) -> None:
    lines = [f'{{"x": {raw}, "action": "a", "reward": 1}}' for raw in ('"a\\ud800b"', '"\\ud83d\\ude00"', beside)]
    path = write(tmp_path / "log.jsonl", lines)
    with pytest.raises(LogError, match="x must be text, but holds half a character"):
        labels(path, HOWS[1])
    log = read_log(path, baseline="a", columns=Columns(context=("x",), categorical=("x",)), max_bad=1)
    assert (log.rows, log.bad.count) == (2, 1)


SINGLE = np.array([0.1, 0.7, 0.1, 2.0], dtype=np.float32)
PANDAS = {
    "plain": lambda: pd.Series(SINGLE),
    "nullable": lambda: pd.Series(SINGLE).astype("Float32"),
    "gap": lambda: pd.Series([*SINGLE[:3], None], dtype="Float32"),
    "category": lambda: pd.Series(SINGLE).astype("category"),
    "category with a gap": lambda: pd.Series([*SINGLE[:3], None], dtype=np.float32).astype("category"),
    "category of nullable": lambda: pd.Series(SINGLE).astype("Float32").astype("category"),
    "objects": lambda: pd.Series(list(SINGLE), dtype=object),
}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", PANDAS)
def test_single_precision_of_pandas_has_the_digits_that_were_written(kind: str, how: dict[str, Any]) -> None:
    frame = pd.DataFrame({"x": PANDAS[kind](), "action": ["a", "b"] * 2, "reward": 1.0})
    log = labels(frame, how)
    values = [*SINGLE[:3], None if "gap" in kind else SINGLE[3]]
    np.testing.assert_array_equal(rows(log), live(log, values))
    np.testing.assert_array_equal(rows(log)[:1], live(log, ["0.1"]))


@pytest.mark.parametrize("beside", ["short", '"of two\nlines"', ""])
def test_a_label_may_be_long_whatever_stands_beside_it(beside: str, tmp_path: Path) -> None:
    long = "z" * 200_000
    path = write(tmp_path / "log.csv", ["action,reward,x", f"a,1,{long}", f"b,0,{beside}"])
    log = labels(path, HOWS[0])
    assert (log.rows, log.bad.count) == (2, 0)
    np.testing.assert_array_equal(rows(log)[:1], live(log, [long]))


def test_categories_of_days_are_written_as_days_are() -> None:
    days = pd.Series(pd.to_datetime(["2026-01-05", "2026-01-06"])).astype("category")
    log = labels(pd.DataFrame({"x": days, "action": ["a", "b"], "reward": 1.0}), HOWS[1])
    np.testing.assert_array_equal(rows(log), live(log, list(days)))


def test_half_a_character_in_a_pandas_column_is_refused_in_a_sentence() -> None:
    frame = pd.DataFrame({"action": ["a", "b"], "reward": [0, 1], "x": ["\ud800", "b"]})
    with pytest.raises(InputError, match="UTF-8"):
        read_log(frame)
