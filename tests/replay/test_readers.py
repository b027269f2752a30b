"""Readers: the same rounds from every format, through any mapping, in blocks of any size."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surefoot.errors import ConfigError, LogError
from surefoot.linear.encoding import CategoricalColumn, Encoder, NumericColumn
from surefoot.replay import table_files
from surefoot.replay.columns import Columns, SeenIds, guess_columns
from surefoot.replay.dsjson import DsjsonLog, hash_row
from surefoot.replay.log import Batch, Log, history
from surefoot.replay.table_log import TableLog, read_log


def table(rows: int = 500) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "id": [f"r{i}" for i in range(rows)],
            "age": rng.uniform(18, 70, rows),
            "plan": rng.choice(["basic", "pro"], rows),
            "action": rng.choice(["banner", "mail", "popup"], rows),
            "reward": rng.integers(0, 2, rows),
            "propensity": np.full(rows, 1 / 3),
        }
    )


def write(data: pl.DataFrame, path: Path) -> Path:
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    writers: dict[str, Callable[[Path], object]] = {
        ".csv": data.write_csv,
        ".parquet": data.write_parquet,
        ".jsonl": data.write_ndjson,
    }
    writers[plain.suffix](plain)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    return path


def whole(log: Log) -> Batch:
    parts = list(log.batches())
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("features", "actions", "rewards", "propensities", "baselines", "lines")
    }
    return Batch(**columns)


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.jsonl", "log.csv.gz", "log.jsonl.gz"])
def test_every_format_gives_the_same_rounds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    log = read_log(write(data, tmp_path / name), baseline="mail")
    assert log.actions == ("banner", "mail", "popup")
    assert (log.rows, log.dim, log.bad.count) == (500, 3 * 4, 0)
    batch = whole(log)
    names = np.array(log.actions)
    assert names[batch.actions].tolist() == data["action"].to_list()
    np.testing.assert_array_equal(batch.rewards[:, 0], data["reward"].to_numpy())
    np.testing.assert_array_equal(batch.propensities, data["propensity"].to_numpy())
    assert set(batch.baselines) == {1}
    age = data["age"].to_numpy()
    scaled = (age - age.min()) / (age.max() - age.min()) / np.sqrt(2)
    np.testing.assert_allclose(batch.features[:, 0, 1], scaled, rtol=1e-12)
    assert np.linalg.norm(batch.features, axis=2).max() <= log.feature_bound
    # Lines count from 1; those of text files from their header or first object.
    first = {"csv": 2}.get(name.split(".")[1], 1)
    assert batch.lines.tolist() == list(range(first, first + 500))
    # Small blocks and frames change nothing.
    monkeypatch.setattr(table_files, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(table_files, "ROWS", 64)
    again = whole(read_log(tmp_path / name, baseline="mail"))
    np.testing.assert_array_equal(again.features, batch.features)
    np.testing.assert_array_equal(again.lines, batch.lines)


def test_columns_of_any_name_and_a_baseline_that_changes(tmp_path: Path) -> None:
    data = table().rename({"action": "shown", "reward": "sold", "propensity": "p", "id": "key"})
    data = data.with_columns(pl.Series("today", ["mail", "banner"] * 250))
    columns = Columns("shown", "sold", "p", ("a*",), (), "today", "key")
    log = read_log(write(data, tmp_path / "log.csv"), columns=columns)
    assert isinstance(log, TableLog)
    assert log.encoder.names == ["age"]
    assert whole(log).baselines[:4].tolist() == [1, 0, 1, 0]
    assert not log.follows_log


def test_without_context_every_action_has_a_mean_of_its_own(tmp_path: Path) -> None:
    log = read_log(write(table().select("action", "reward"), tmp_path / "log.csv"))
    np.testing.assert_array_equal(whole(log).features[7], np.eye(3))
    assert log.follows_log


def test_action_features_give_products_with_the_context(tmp_path: Path) -> None:
    features = {"banner": (0.0,), "mail": (1.0,), "popup": (0.5,)}
    log = read_log(write(table(), tmp_path / "log.csv"), action_features=features, baseline="mail")
    assert (log.dim, log.actions) == ((1 + 3) * 2, ("banner", "mail", "popup"))
    row = whole(log).features[0]
    np.testing.assert_allclose(row[2, 1::2], 0.5 * row[2, 0::2])


def test_lists_as_contexts_and_lists_of_lists_as_features(tmp_path: Path) -> None:
    lists = pl.DataFrame({"context": [[0.0, 1.0], [1.0, 0.5]], "action": [0, 1], "reward": [1.0, 0.0]})
    for name in ("a.parquet", "a.jsonl"):
        log = read_log(write(lists, tmp_path / name))
        assert isinstance(log, TableLog)
        assert log.encoder.names == ["context[0]", "context[1]"]
    nested = pl.DataFrame({"features": [[[1.0, 2.0], [3.0, 4.0]]] * 2, "action": [0, 1], "reward": [1.0, 0.0]})
    for name in ("b.parquet", "b.jsonl"):
        log = read_log(write(nested, tmp_path / name), baseline="1")
        assert whole(log).features[1].tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert log.feature_bound == 5.0


def test_open_bandit_columns_are_known_in_both_their_forms(tmp_path: Path) -> None:
    obd = pl.DataFrame(
        {
            "": [0, 1, 2], "timestamp": ["t"] * 3, "item_id": [7, 3, 7], "position": [1, 2, 3], "click": [0, 1, 0],
            "propensity_score": [0.1, 0.2, 0.1], "user_feature_0": ["u", "v", "u"],
            "user-item_affinity_0": [0.0, 1.0, 2.0],
        }
    )  # fmt: skip
    log = read_log(write(obd, tmp_path / "all.csv"), baseline="3")
    assert isinstance(log, TableLog)
    assert log.actions == ("3", "7")
    assert log.encoder.names == ["position=1", "position=2", "position=3", "user_feature_0=u", "user_feature_0=v"]
    obp = pl.DataFrame(
        {"context": [[0.5], [0.1]], "action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.5], "position": [0, 1]}
    )
    log = read_log(write(obp, tmp_path / "obp.parquet"), baseline="0")
    assert isinstance(log, TableLog)
    assert log.columns.propensity == "pscore"
    assert log.encoder.names == ["context[0]", "position=0", "position=1"]


def dsjson(event: int, action: int, cost: float = -1.0, probability: float = 0.5, **more: Any) -> dict[str, Any]:
    choices = [{"item": {"kind": "news", "age": 0.5}}, {"item": {"kind": "sport"}}, {"item": {"kind": "arts"}}]
    return {
        "_label_cost": cost, "_label_probability": probability, "_label_Action": action, "_labelIndex": action - 1,
        "EventId": f"e{event}", "a": [1, 2, 3], "p": [0.5, 0.25, 0.25],
        "c": {"user": {"lang": "de", "visits": 3}, "_multi": choices}, **more,
    }  # fmt: skip


def test_dsjson_events_become_hashed_rounds(tmp_path: Path) -> None:
    path = tmp_path / "decisions.json"
    short = dsjson(2, 2, cost=0.0)
    short["c"]["_multi"] = short["c"]["_multi"][:2]
    path.write_text("\n".join(json.dumps(event) for event in (dsjson(1, 1), short, dsjson(3, 3, -0.5, 0.25))))
    log = read_log(path)
    assert isinstance(log, DsjsonLog)
    batch = whole(log)
    assert (log.rows, log.actions, log.propensity_range) == (3, ("1", "2", "3"), (0.25, 0.5))
    assert batch.rewards[:, 0].tolist() == [1.0, 0.0, 0.5]
    assert batch.actions.tolist() == [0, 1, 2]
    np.testing.assert_allclose(np.linalg.norm(batch.features, axis=2), 1.0)
    np.testing.assert_array_equal(batch.features[1, 2], batch.features[1, 0])  # a missing action repeats the first
    expected = hash_row({"user|lang=de": 1.0, "user|visits": 3.0}, {"item|kind=sport": 1.0}, 32)
    np.testing.assert_array_equal(batch.features[0, 1], expected)


def test_a_quoted_line_break_is_part_of_its_row_and_lines_stay_right(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('note,action,reward\n"two\nlines",a,1\nplain,b,x\n"say ""hi""",a,0\n')
    with pytest.raises(LogError, match=r"line 4: reward must be a finite number, not 'x'"):
        read_log(path, columns=Columns())
    log = read_log(path, columns=Columns(context=("note",)), max_bad=1)
    assert whole(log).lines.tolist() == [2, 5]


def test_an_encoder_keeps_production_within_the_bound() -> None:
    encoder = Encoder(
        (NumericColumn("age", 20.0, 60.0), CategoricalColumn("plan", ("basic", "pro")), NumericColumn("flat", 1.0, 1.0))
    )
    assert np.linalg.norm(encoder.encode_one({"age": 900, "plan": "pro", "flat": 3})) <= 1.0
    np.testing.assert_array_equal(encoder.encode_one({"age": -5, "plan": "gold", "flat": 1}), np.zeros(4))
    ranks = Encoder((CategoricalColumn("rank", ("1", "2")),))
    np.testing.assert_array_equal(ranks.encode_one({"rank": 2.0}), ranks.encode_one({"rank": "2"}))


def test_a_guess_at_the_columns_takes_what_is_left_as_context() -> None:
    guessed = guess_columns(["id", "x", "y", "action", "reward", "pscore"])
    assert (guessed.context, guessed.propensity, guessed.id) == (("x", "y"), "pscore", "id")


@pytest.mark.parametrize("pieces", [1, 7, 200])
def test_every_repeated_id_is_found_and_no_other(pieces: int) -> None:
    rng = np.random.default_rng(pieces)
    digests = rng.integers(0, 3_000, size=4_000).astype(np.uint64)
    seen, expected, found = set[int](), [], []
    store = SeenIds()
    for part in np.array_split(digests, pieces):
        found += store.repeated(part).tolist()
    for digest in digests.tolist():
        expected.append(digest in seen)
        seen.add(digest)
    assert found == expected


def test_a_format_that_the_name_does_not_tell_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`format` must be given for `log\.dat`"):
        read_log(tmp_path / "log.dat")
    with pytest.raises(LogError, match="no such file"):
        read_log(tmp_path / "log.csv")
    with pytest.raises(ConfigError, match="Did you mean 'mail'"):
        read_log(write(table(), tmp_path / "log.csv"), baseline="mial")


def test_a_history_is_what_was_played_and_what_it_earned(tmp_path: Path) -> None:
    log = read_log(write(table(), tmp_path / "log.csv"), baseline="mail")
    batch, (rows, rewards) = whole(log), history(log)
    np.testing.assert_array_equal(rows, batch.features[np.arange(500), batch.actions])
    np.testing.assert_array_equal(rewards, batch.rewards[:, 0])
    assert len(history(log, most=7)[1]) == 7
