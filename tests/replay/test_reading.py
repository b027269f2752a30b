"""Reading without a fight: gaps, tables in memory, and columns that are no context."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

from surefoot.errors import InputError, LogError
from surefoot.linear.encoding import GAP
from surefoot.replay import Columns, configuration_of, fit_baseline, read_configuration, read_log
from surefoot.replay.table_log import TableLog
from tests.replay.test_cli import run

ROWS = 400


def visits(**more: Any) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 70, ROWS).astype(float),
            "plan": rng.choice(["basic", "pro"], ROWS),
            "action": rng.choice(["banner", "mail"], ROWS),
            "reward": (rng.random(ROWS) < 0.2).astype(float),
            **more,
        }
    )


def with_gaps() -> pl.DataFrame:
    rows = pl.arange(0, ROWS, eager=True)
    table = visits()
    return table.with_columns(
        age=pl.when(rows % 7 == 0).then(None).otherwise(table["age"]),
        plan=pl.when(rows % 5 == 0).then(None).otherwise(table["plan"]),
    )


def opened(table: Any, **settings: Any) -> TableLog:
    log = read_log(table, baseline="banner", **settings)
    assert isinstance(log, TableLog)
    return log


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "frame"])
def test_a_gap_costs_no_row_and_is_a_value_of_its_own(form: str, tmp_path: Path) -> None:
    table, path = with_gaps(), tmp_path / f"log.{form}"
    writers: dict[str, Any] = {"csv": table.write_csv, "jsonl": table.write_ndjson, "parquet": table.write_parquet}
    if form in writers:
        writers[form](path)
    log = opened(path if form in writers else table)
    assert (log.rows, log.bad.count) == (ROWS, 0)
    assert log.encoder.names == ["age", "age is missing", f"plan={GAP}", "plan=basic", "plan=pro"]
    contexts = next(log.batches()).features[:, 0, 1:6] * np.sqrt(2)
    missing = np.arange(ROWS) % 7 == 0
    np.testing.assert_array_equal(contexts[:, 1], missing)
    assert not contexts[missing, 0].any()
    np.testing.assert_array_equal(contexts[:, 2], np.arange(ROWS) % 5 == 0)
    assert np.linalg.norm(contexts, axis=1).max() <= np.sqrt(2) * (1 + 1e-12)


def test_words_for_nothing_are_gaps_and_other_words_are_not(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    table = visits().with_columns(pl.col("age").cast(pl.String))
    changed = table.with_columns(
        age=pl.Series(["NA", "nan", "NULL", "n/a", "none", " ", "42", "old", *table["age"].to_list()[8:]])
    )
    changed.write_csv(path)
    log = opened(path, max_bad=1)
    assert [reason for _, reason in log.bad.shown] == ["age must be a finite number, not 'old'"]
    assert int(next(log.batches()).features[:, 0, 2].astype(bool).sum()) == 6


def test_gaps_are_learnt_from_the_log_and_applied_live(tmp_path: Path) -> None:
    log = opened(with_gaps())
    made = configuration_of(fit_baseline(log), log, policy="SafeLUCB", alpha=0.1, delta=0.01, ridge=1.0)
    config = read_configuration(made.write(tmp_path / "experiment.toml"))
    assert config == made
    first = next(log.batches()).features[0]
    for context in ({"age": None, "plan": None}, {}, {"age": float("nan")}):
        np.testing.assert_array_equal(config.rows(context), first)
    # A column that never had a gap may not begin to have one.
    whole = opened(visits())
    with pytest.raises(InputError, match="'age', which the log always had"):
        whole.encoder.encode_one({"plan": "pro"})


class Arrow:
    """A table of some other library, which hands out Arrow and nothing else."""

    def __init__(self, table: pl.DataFrame) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def as_pandas(table: pl.DataFrame) -> pd.DataFrame:
    made = pd.DataFrame({name: table[name].to_list() for name in table.columns})
    return made.assign(plan=made["plan"].astype("category"))


@pytest.mark.parametrize("form", [pl.DataFrame.lazy, as_pandas, Arrow], ids=["lazy", "pandas", "arrow"])
def test_a_table_in_memory_gives_the_same_rounds_as_its_file(form: Any, tmp_path: Path) -> None:
    table = with_gaps()
    table.write_parquet(tmp_path / "log.parquet")
    expected, found = (next(opened(source).batches()) for source in (tmp_path / "log.parquet", form(table)))
    for name in ("features", "actions", "rewards", "baselines", "lines"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(LogError, match="a file or a table of polars, pandas or Arrow, but got a dict"):
        read_log({"action": ["a"]})


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["basic", "pro"])])
def test_categoricals_are_labels(kind: Any) -> None:
    log = opened(visits().with_columns(pl.col("plan").cast(kind)))
    assert log.encoder.names == ["age", "plan=basic", "plan=pro"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([date(2026, 1, 1 + i % 28) for i in range(ROWS)], "holds dates or times"),
        ([datetime(2026, 1, 1, i % 24) for i in range(ROWS)], "holds dates or times"),
        ([f"2026-01-{1 + i % 28:02} 10:00:00" for i in range(ROWS)], "holds dates or times"),
        (list(range(ROWS)), "holds whole numbers that hardly repeat, as ids do"),
        ([f"note {i}" for i in range(ROWS)], "has more than 64 different labels; --hash extra:64 takes it"),
    ],
)
def test_what_cannot_be_context_is_left_out_with_its_reason(values: list[Any], reason: str) -> None:
    log = opened(visits(extra=pl.Series(values)))
    assert log.left_out == {"extra": reason}
    assert log.context == ("age", "plan")


def test_columns_that_change_only_where_there_was_a_reward_are_left_out() -> None:
    """What an e-mail sold, beside whether it was read: too few sales to tell, but none without a visit."""
    rng = np.random.default_rng(6)
    visit = rng.random(6_000) < 0.15
    sold = visit & (rng.random(6_000) < 0.06)
    spend, rare = np.where(sold, rng.exponential(50.0, 6_000), 0.0), rng.random(6_000) < 0.002
    table = {"action": rng.choice(["old", "new"], 6_000), "reward": visit, "age": rng.integers(18, 70, 6_000)}
    table |= {"conversion": sold, "spend": spend, "gold": rare, "region": np.where(rare, "north", "south")}
    log = read_log(pl.DataFrame(table), baseline="old")
    reason = "changes only with reward, as if it was known only after the action"
    assert log.left_out == {"conversion": reason, "spend": reason}


def test_ids_are_left_out_by_their_name_and_taken_when_asked_for() -> None:
    table = visits(user_id=np.arange(ROWS) % 50)
    assert opened(table).left_out == {"user_id": "is named as an id"}
    asked = opened(table, columns=Columns(context=("age", "user_id"), categorical=("user_id",)))
    assert asked.left_out == {}
    assert asked.encoder.dim == 1 + 50


def test_dates_that_are_asked_for_are_refused_with_advice() -> None:
    table = visits(day=pl.Series([date(2026, 1, 1 + i % 28) for i in range(ROWS)]))
    with pytest.raises(LogError, match=r"'day' holds dates or times.*the hour or the weekday"):
        opened(table, columns=Columns(context=("day",)))


def test_a_column_that_follows_the_reward_is_no_context() -> None:
    table = visits()
    rng = np.random.default_rng(1)
    revenue = table["reward"].to_numpy() * rng.uniform(5, 50, ROWS)
    receipt = pl.Series(np.where(table["reward"] > 0, "sent", "")).replace("", None)
    log = opened(visits(revenue=revenue, receipt=receipt, luck=rng.random(ROWS), site=["shop"] * ROWS))
    why = "changes with reward, as if it was known only after the action"
    assert log.left_out == {"revenue": why, "receipt": why}
    assert log.context == ("age", "plan", "luck", "site")
    assert opened(visits(revenue=revenue), columns=Columns(context=("revenue",))).context == ("revenue",)


def test_a_name_that_shares_some_letters_is_no_hint() -> None:
    table = visits().rename({"action": "country"})
    with pytest.raises(LogError, match=r"'action'.*Name yours") as caught:
        read_log(table)
    assert "Did you mean" not in str(caught.value)


def test_the_command_says_what_it_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    visits(user_id=np.arange(ROWS) % 50).write_csv(tmp_path / "log.csv")
    run("replay", str(tmp_path / "log.csv"), "--baseline", "banner", "--uniform", "--policy", "LUCB",
        "--out", str(tmp_path / "out"))  # fmt: skip
    page = (tmp_path / "out" / "report.html").read_text()
    assert "user_id (is named as an id)" in page
    assert "age, plan" in page
