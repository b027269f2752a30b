"""A label is the same in every kind of table and live, however it was written: the replayed row is the live row.

No reader merges two labels, and no row changes by those around it.
"""

import csv
import datetime
import enum
import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import InputError, LogError
from surefoot.linear import encoding
from surefoot.linear.encoding import CategoricalColumn, Encoder, HashedColumn, NumericColumn, text_of
from surefoot.replay.columns import Columns
from surefoot.replay.table_log import TableLog, read_log

HOWS: list[dict[str, Any]] = [{"hashed": {"x": 997}}, {"categorical": ("x",)}]
ROWS = 12


class Plan(enum.StrEnum):
    PRO = "pro"


TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n"), max_size=6)
LABELS = {
    "text": st.one_of(
        TEXTS, st.sampled_from(["True", "NA", "", " ", "n/a", "2.0", "-0.0", "a\0", "None", "(missing)"])
    ),
    "truth": st.booleans(),
    "whole": st.integers(-(2**63), 2**63 - 1),
    "number": st.one_of(st.floats(), st.integers(-1000, 1000).map(float)),
    "single": st.floats(width=32),
}
DTYPES = {"text": pl.String, "truth": pl.Boolean, "whole": pl.Int64, "number": pl.Float64, "single": pl.Float32}


def read(table: Any, **how: Any) -> TableLog:
    log = read_log(table, baseline="a", columns=Columns(context=("x",), **how))
    assert isinstance(log, TableLog)
    return log


def rows(log: TableLog) -> np.ndarray[Any, Any]:
    return np.concatenate([batch.features for batch in log.batches()])


def live(log: TableLog, values: list[Any]) -> np.ndarray[Any, Any]:
    return np.stack([log.phi(log.encoder.encode_one({"x": value})) for value in values])


def framed(values: list[Any], dtype: Any = None) -> pl.DataFrame:
    n = len(values)
    actions = [("a", "b")[k % 2] for k in range(n)]
    return pl.DataFrame({"x": pl.Series(values, dtype=dtype), "action": actions, "reward": [1.0] * n})


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", LABELS)
@given(data=st.data())
@settings(max_examples=25, deadline=None, derandomize=True)
def test_a_replayed_row_is_the_live_one(data: st.DataObject, kind: str, how: dict[str, Any]) -> None:
    values = data.draw(st.lists(st.one_of(LABELS[kind], st.none()), min_size=2, max_size=ROWS))
    log = read(framed(values, DTYPES[kind]), **how)
    np.testing.assert_array_equal(rows(log), live(log, values if kind != "single" else [single(v) for v in values]))


def single(value: Any) -> np.float32 | None:
    return None if value is None else np.float32(value)


SAME: list[list[Any]] = [
    [True, "true", "True", " TRUE ", np.True_],
    [False, "false", "False"],
    [2, 2.0, "2", "2.0", " 2.00", np.int8(2), np.float32(2), Decimal("2.00")],
    [0, -0.0, "-0.0", "0"],
    [0.1, np.float32(0.1), "0.1", Decimal("0.10")],
    [1234567890123456789, "1234567890123456789"],
    [1e16, 10**16],
    [
        None,
        float("nan"),
        np.float64("nan"),
        "",
        "  ",
        "NA",
        "NaN",
        "n/a",
        "null",
        "None",
        pd.NA,
        pd.NaT,
        Decimal("nan"),
    ],
    ["pro", Plan.PRO, b"pro", " pro "],
    [datetime.date(2026, 1, 5), "2026-01-05", np.datetime64("2026-01-05")],
    [datetime.datetime(2026, 1, 5, 7, 30), "2026-01-05 07:30:00", np.datetime64("2026-01-05T07:30:00")],
    ["a\0"],
    ["a"],
    ["ü"],
    ["007"],
    ["7"],
]


@pytest.mark.parametrize("part", [HashedColumn("x", 997), None])
def test_the_same_value_is_the_same_label_and_others_are_not(part: Any) -> None:
    levels = tuple(sorted({"(missing)" if values[0] is None else str(text_of(values[0])) for values in SAME}))
    encoder = Encoder((part or CategoricalColumn("x", levels),))
    found = [{tuple(encoder.encode_one({"x": value})) for value in values} for values in SAME]
    assert [len(one) for one in found] == [1] * len(SAME)
    assert len(set.union(*found)) == len(SAME)
    assert all(sum(row) == 1.0 for one in found for row in one)


def as_csv(values: list[Any], folder: Path) -> Path:
    with (folder / "log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "action", "reward"])
        writer.writerows([value, "ab"[k % 2], 1] for k, value in enumerate(values))
    return folder / "log.csv"


def as_jsonl(values: list[Any], folder: Path) -> Path:
    lines = [json.dumps({"x": value, "action": "ab"[k % 2], "reward": 1}) for k, value in enumerate(values)]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "log.jsonl"


def as_parquet(values: list[Any], folder: Path) -> Path:
    framed(values).write_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def as_pandas(values: list[Any], folder: Path) -> Any:
    return pandas_of(pd.Series(values, dtype=object))


def pandas_of(values: Any) -> Any:
    n = len(values)
    return pd.DataFrame({"x": values, "action": [("a", "b")[k % 2] for k in range(n)], "reward": 1.0})


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("write", [as_csv, as_jsonl, as_parquet, as_pandas])
@pytest.mark.parametrize(
    "values",
    [
        [True, False, None],
        [1234567890123456789, 1234567890123456788, None],
        [2.0, 2.5, -0.0, None],
        ["NA", "basic", "", "True", " pro", "2.0"],
        ["a", "b\0"],
    ],
)
def test_every_format_has_the_same_labels(write: Any, values: list[Any], how: dict[str, Any], tmp_path: Path) -> None:
    log = read(write(values, tmp_path), **how)
    np.testing.assert_array_equal(rows(log), live(log, values))
    if "categorical" in how:
        assert log.encoder == read(framed(values), **how).encoder


@pytest.mark.parametrize("values", [[1, 2, 1, 2], [1.0, 2.0, None, 1.0]])
def test_categories_of_numbers_are_labels(values: list[Any]) -> None:
    log = read(pandas_of(pd.Categorical(values)))
    assert isinstance(log.encoder.parts[0], CategoricalColumn)
    np.testing.assert_array_equal(rows(log), live(log, values))


def test_ids_of_many_digits_differ(tmp_path: Path) -> None:
    path = as_jsonl([1234567890123456789, 1234567890123456788], tmp_path)
    columns = Columns(id="x")
    assert read_log(path, baseline="a", columns=columns).rows == 2
    with pytest.raises(LogError, match="was used by a row before"):
        read_log(as_jsonl([1234567890123456789] * 2, tmp_path), baseline="a", columns=columns)


def test_offers_are_named_as_actions_are(tmp_path: Path) -> None:
    lines = [json.dumps({"action": k % 2, "offered": [0, 1], "reward": 1}) for k in range(4)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    assert read_log(tmp_path / "log.jsonl", baseline="0").actions == ("0", "1")


@pytest.mark.parametrize(
    ("levels", "value", "place"),
    [
        (("False", "True"), True, 1),
        (("False", "True"), "true", 1),
        (("NA", "SE"), "NA", 0),  # Namibia, before gaps had a label
        (("NA", "SE"), "SE", 1),
        (("1.0", "2.0"), 2, 1),
        (("True", "true"), "True", 0),
        (("True", "true"), True, 1),
    ],
)
def test_levels_of_an_older_configuration_are_found(levels: tuple[str, ...], value: Any, place: int) -> None:
    encoder = Encoder((CategoricalColumn("x", levels),))
    expected = np.eye(len(levels))[place]
    np.testing.assert_array_equal(encoder.encode_one({"x": value}), expected)
    log = read_log(framed([value, value]), baseline="a", columns=Columns(context=("x",)), encoder=encoder)
    np.testing.assert_array_equal(rows(log)[0], log.phi(expected))  # type: ignore[attr-defined, arg-type]


GAPS = [None, float("nan"), "", " ", "NA", " na ", "n/a", "None", "null", "(missing)"]


@pytest.mark.parametrize("levels", [("basic", "pro"), ("Na", "nA", "Nan")])
@pytest.mark.parametrize("gap", GAPS)
def test_a_gap_is_refused_however_it_is_written_where_the_log_had_none(gap: Any, levels: tuple[str, ...]) -> None:
    encoder = Encoder((CategoricalColumn("x", levels),))
    with pytest.raises(InputError, match="must have a value for 'x', which the log always had"):
        encoder.encode_one({"x": gap})
    good = [levels[1], "gold"]
    assert read_log(framed(good), baseline="a", columns=Columns(context=("x",)), encoder=encoder).rows == 2
    missed = framed([*good, gap if isinstance(gap, str) else None])
    with pytest.raises(LogError, match="x is missing, and its encoder was fitted to a log without gaps"):
        list(read_log(missed, baseline="a", columns=Columns(context=("x",)), encoder=encoder).batches())


def test_a_country_that_is_written_as_a_gap_is_none() -> None:
    encoder = Encoder((CategoricalColumn("x", ("NA", "SE")),))
    assert [encoder.encode_one({"x": text}).tolist() for text in ("NA", " NA", "SE")] == [[1, 0], [1, 0], [0, 1]]
    assert encoder.encode({"x": ["NA", None, "none", ""]}).tolist() == [[1, 0], [0, 0], [0, 0], [0, 0]]
    for gap in (None, "none", "", "na"):
        with pytest.raises(InputError, match="must have a value for 'x', which the log always had"):
            encoder.encode_one({"x": gap})


def test_a_number_that_is_a_word_for_a_gap_is_refused_where_the_log_had_none() -> None:
    encoder = Encoder((CategoricalColumn("x", ("basic", "pro")), NumericColumn("age", 0.0, 2.0)))
    with pytest.raises(InputError, match="`age` must be a number, but got 'NA'"):
        encoder.encode_one({"x": "pro", "age": "NA"})


@pytest.mark.parametrize("gap", ["NA", "", None, float("nan"), "nan"])
def test_a_gap_in_a_number_is_one_live_as_in_a_file(gap: Any, tmp_path: Path) -> None:
    log = read(as_csv([gap, 3, 5], tmp_path))
    np.testing.assert_array_equal(rows(log), live(log, [gap, 3, 5]))


@pytest.mark.parametrize("value", [["a"], {"a": 1}, {"a"}, np.array(["a", "b"])])
def test_what_is_no_label_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="A label must be one text, number or truth value, but got a"):
        Encoder((HashedColumn("x", 8),)).encode_one({"x": value})


CONFIGURED = Encoder((NumericColumn("x", 0.0, 5.0),))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["old", "young"], r"Column 'x' must hold numbers, .* but `data frame` has text there, such as 'old'"),
        ([[1.0, 2.0], [3.0, 4.0]], r"Column 'x' must hold numbers, .* has lists there, such as \[1.0, 2.0\]\. Correct"),
        ([1.0, None], "x is missing, and its encoder was fitted to a log without gaps"),
    ],
)
def test_a_log_that_does_not_fit_its_encoder_is_refused(values: list[Any], message: str) -> None:
    with pytest.raises(LogError, match=message):
        list(read_log(framed(values), baseline="a", actions=("a", "b"), encoder=CONFIGURED).batches())


@pytest.mark.parametrize("column", [CategoricalColumn("x", ("a", "b")), HashedColumn("x", 8)])
def test_lists_are_no_labels(column: Any) -> None:
    with pytest.raises(LogError, match="Column 'x' must hold one label a row, but it holds lists"):
        list(read_log(framed([[1.0], [2.0]]), baseline="a", actions=("a", "b"), encoder=Encoder((column,))).batches())


@pytest.mark.parametrize(
    ("values", "message"), [([1.0, 2.0], "it holds single values"), ([[1.0], [2.0]], "list of 2 num")]
)
def test_lists_must_be_as_long_as_the_encoder_has_them(values: list[Any], message: str) -> None:
    encoder = Encoder(tuple(NumericColumn(f"x[{j}]", 0.0, 5.0) for j in range(2)))
    with pytest.raises(LogError, match=message):
        list(read_log(framed(values), baseline="a", actions=("a", "b"), encoder=encoder).batches())


def test_objects_are_no_context() -> None:
    table = framed([{"a": 1}, {"a": 2}])
    with pytest.raises(LogError, match="'x' holds objects"):
        read(table)
    assert read_log(table, baseline="a").left_out == {"x": "holds objects, not values"}


AGENT = Encoder((HashedColumn("user_agent", 8), CategoricalColumn("plan", ("(missing)", "pro"))))


@pytest.mark.parametrize("key", ["user_agnt", "useragent", "User_Agent", "userAgent"])
def test_a_misspelt_column_is_no_gap(key: str) -> None:
    with pytest.raises(InputError, match=rf"but got '{key}' instead. Did you mean 'user_agent' by '{key}'"):
        AGENT.encode_one({key: "curl/8.5", "plan": "pro"})


def test_a_misspelt_column_is_found_among_very_many_keys() -> None:
    keys = {f"a{k}": k for k in range(10_000)}
    for context in ({**keys, "user_agnt": "curl"}, {"user_agnt": "curl", **keys}):
        with pytest.raises(InputError, match="Did you mean 'user_agent' by 'user_agnt'") as error:
            AGENT.encode_one(context)
        assert len(str(error.value)) < 1_500


def test_a_context_of_other_columns_is_refused_where_the_log_had_no_gaps() -> None:
    encoder = Encoder((NumericColumn("age", 0.0, 2.0), HashedColumn("user_agent", 8)))
    with pytest.raises(InputError, match=r"must have a value for 'age', .* but its keys are 'colour', 'size'\."):
        encoder.encode_one({"colour": "red", "size": 3})
    with pytest.raises(InputError, match="must have a value for 'age'") as error:
        encoder.encode_one({f"key {k}": k for k in range(20_000)})
    assert len(str(error.value)) < 1_500


@pytest.mark.parametrize("context", [{"plan": "pro", "visit_id": 7}, {}, {"plan": None}])
def test_more_than_the_columns_and_gaps_without_a_key_are_taken(context: dict[str, Any]) -> None:
    filled = {"user_agent": None, "plan": None, **context}
    assert AGENT.encode_one(context).tolist() == AGENT.encode_one(filled).tolist()


SCORES = Encoder(tuple(NumericColumn(f"score_{k}", 0.0, 1.0, True) for k in range(3)))


@pytest.mark.parametrize(
    ("encoder", "context"),
    [
        (SCORES, {"score_0": 1.0, "score_3": 1.0}),
        (SCORES, {"score_10": 1.0}),
        (SCORES, {"score": 1.0}),
        (AGENT, {"colour": "red", "size": 3}),
        (AGENT, {7: "red", None: 3}),
    ],
)
def test_keys_beside_the_columns_are_no_slips(encoder: Encoder, context: dict[Any, Any]) -> None:
    filled = {part.name: context.get(part.name) for part in encoder.parts}
    assert encoder.encode_one(context).tolist() == encoder.encode_one(filled).tolist()


def test_a_slip_beside_other_digits_is_one() -> None:
    with pytest.raises(InputError, match="Did you mean 'score_1' by 'scor_1'"):
        SCORES.encode_one({"scor_1": 1.0, "score_0": 1.0})


def test_a_context_of_very_many_keys_costs_little() -> None:
    keys = {f"key {k}": k for k in range(20_000)}
    begun = time.process_time()
    for _ in range(20):
        AGENT.encode_one({"plan": "pro", **keys})
    assert time.process_time() - begun < 1.0  # compared one by one, a minute


@pytest.mark.parametrize("key", ["key {:05}", "user_agent{:05}", "tnegaresu{:05}", "user_tnega{:05}"])
def test_keys_that_look_near_cost_little_too(key: str) -> None:
    context = {key.format(k): k for k in range(80_000)}
    names = ("user_agent", "user_tagen", "agent_user", "resu_agent")
    begun = time.process_time()
    Encoder(tuple(HashedColumn(name, 8) for name in names)).encode_one(context)
    assert time.process_time() - begun < 1.0  # compared one by one, minutes


def test_keys_that_a_stranger_sends_are_not_kept() -> None:
    encoding.cached_slip.cache_clear()
    AGENT.encode_one({"plan": "pro", **{f"key {k}": k for k in range(1_000)}})
    AGENT.encode_one({"plan": "pro", "k" * 10_000: 1})
    assert encoding.cached_slip.cache_info().currsize == 0
    for _ in range(2):
        AGENT.encode_one({"plan": "pro", "visit_id": 7})
    assert encoding.cached_slip.cache_info().hits == 1


@pytest.mark.parametrize("value", [{"a": 1}, {}, [1, 2], ["a"], [], {"a": ["b"]}], ids=repr)
@pytest.mark.parametrize("at", [0, 7])
@pytest.mark.parametrize("column", ["x", "action"])
@pytest.mark.parametrize("how", HOWS, ids=["hashed", "categorical"])
def test_an_object_or_a_list_is_no_label_in_a_log_as_it_is_none_live(
    tmp_path: Path, value: Any, at: int, column: str, how: dict[str, Any]
) -> None:
    lines = [{"action": "ab"[n % 2], "reward": n / 12, "x": f"v{n % 3}"} for n in range(12)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    log = read(path, **how)
    with pytest.raises(InputError, match="one text, number or truth value"):
        log.encoder.encode_one({"x": value})
    lines[at][column] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    with pytest.raises(LogError, match=r"one text, number or truth value|lists or objects"):
        rows(read(path, **how))


@pytest.mark.parametrize("how", HOWS, ids=["hashed", "categorical"])
def test_a_text_that_looks_like_an_object_is_a_label(tmp_path: Path, how: dict[str, Any]) -> None:
    values = ['{"a": 1}', "[1]", "{", "[", "{}"] * 2
    path = tmp_path / "log.jsonl"
    lines = [{"action": "ab"[n % 2], "reward": n / 10, "x": value} for n, value in enumerate(values)]
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    log = read(path, **how)
    found = rows(log)
    np.testing.assert_array_equal(found, live(log, values))


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


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
    older = read_log(table, baseline="True", actions=("False", "True"), action_features={"False": [0.0], "True": [1.0]})
    assert next(older.batches()).actions.tolist() == [k % 2 for k in range(6)]


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
    log = read(write(folder / "log.jsonl", lines), **how)
    np.testing.assert_array_equal(rows(log), live(log, [json.loads(raw) for raw in all_]))


@pytest.mark.parametrize("beside", ["5", "null"])
def test_half_a_character_is_a_bad_row(beside: str, tmp_path: Path) -> None:
    lines = [f'{{"x": {raw}, "action": "a", "reward": 1}}' for raw in ('"a\\ud800b"', '"\\ud83d\\ude00"', beside)]
    path = write(tmp_path / "log.jsonl", lines)
    with pytest.raises(LogError, match="x must be text, but holds half a character"):
        read(path, **HOWS[1])
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
    log = read(frame, **how)
    values = [*SINGLE[:3], None if "gap" in kind else SINGLE[3]]
    np.testing.assert_array_equal(rows(log), live(log, values))
    np.testing.assert_array_equal(rows(log)[:1], live(log, ["0.1"]))


@pytest.mark.parametrize("beside", ["short", '"of two\nlines"', ""])
def test_a_label_may_be_long_whatever_stands_beside_it(beside: str, tmp_path: Path) -> None:
    long = "z" * 200_000
    path = write(tmp_path / "log.csv", ["action,reward,x", f"a,1,{long}", f"b,0,{beside}"])
    log = read(path, **HOWS[0])
    assert (log.rows, log.bad.count) == (2, 0)
    np.testing.assert_array_equal(rows(log)[:1], live(log, [long]))


def test_categories_of_days_are_written_as_days_are() -> None:
    days = pd.Series(pd.to_datetime(["2026-01-05", "2026-01-06"])).astype("category")
    log = read(pandas_of(days), **HOWS[1])
    np.testing.assert_array_equal(rows(log), live(log, list(days)))


def test_half_a_character_in_a_pandas_column_is_refused_in_a_sentence() -> None:
    frame = pd.DataFrame({"action": ["a", "b"], "reward": [0, 1], "x": ["\ud800", "b"]})
    with pytest.raises(InputError, match="UTF-8"):
        read_log(frame)
