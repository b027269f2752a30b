"""Columns of very many labels are hashed, the same way in a log, in its configuration and in live contexts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.cli.commands import app
from surefoot.errors import ConfigError, LogError
from surefoot.experiment.configuration import Configuration, read_configuration
from surefoot.linear.encoding import CategoricalColumn, Encoder, HashedColumn, bucket_of
from surefoot.replay.columns import Columns
from surefoot.replay.table_log import TableLog, read_log

ROWS = 600
NAMES = ("agent", "post", "member", "age", "rank")


def visits(folder: Path) -> Path:
    """A log with hundreds of user agents, postal codes that are numbers, yes and no, and gaps."""
    rng = np.random.default_rng(0)
    clicked = rng.random(ROWS) < 0.4
    table = pl.DataFrame(
        {
            "agent": [f"Browser/{k % 401} ü" if k % 7 else None for k in range(ROWS)],
            "post": rng.integers(10_000, 99_999, ROWS),
            "member": rng.random(ROWS) < 0.5,
            "age": rng.integers(18, 80, ROWS),
            "rank": rng.integers(1, 4, ROWS),
            "action": np.where(rng.random(ROWS) < 0.5, "a", "b"),
            "reward": clicked.astype(int),
            "propensity": 0.5,
        }
    )
    table.write_parquet(folder / "visits.parquet")
    return folder / "visits.parquet"


def fitted(log: Path, folder: Path, *more: str) -> Configuration:
    out = folder / "experiment.toml"
    asked = ["fit-baseline", str(log), "--baseline", "a", "--hash", "agent:16", "--hash", "post:8", "--out", str(out)]
    done = CliRunner().invoke(app, [*asked, "--categorical", "rank", "--despite-doubt", *more])
    assert done.exit_code == 0, done.output
    return read_configuration(out)


def contexts(path: Path) -> list[dict[str, Any]]:
    """As a client sends them: JSON, gaps as null."""
    return [json.loads(json.dumps(row)) for row in pl.read_parquet(path).select(NAMES).to_dicts()]


def test_a_replayed_row_is_the_live_one(tmp_path: Path) -> None:
    path = visits(tmp_path)
    configuration = fitted(path, tmp_path)
    assert HashedColumn("agent", 16) in configuration.encoder.parts
    log = read_log(path, baseline="a", actions=configuration.actions, encoder=configuration.encoder)
    replayed = np.concatenate([batch.features for batch in log.batches()])
    np.testing.assert_array_equal(replayed, np.stack([configuration.rows(context) for context in contexts(path)]))
    assert log.left_out == {}
    # The intercept, and one place each for the agent, the postal code and the rank, also where there is a gap.
    assert (replayed[:, 0] != 0).sum(axis=1).min() == 4


def test_the_command_replays_what_it_fitted(tmp_path: Path) -> None:
    path = visits(tmp_path)
    configuration = fitted(path, tmp_path)
    asked = ["replay", str(path), "--config", str(tmp_path / "experiment.toml"), "--policy", "LUCB", "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["settings"]["features of an action"] == configuration.phi.dim


def test_a_label_that_no_log_saw_goes_live(tmp_path: Path) -> None:
    configuration = fitted(visits(tmp_path), tmp_path)
    shop = surefoot.Experiment.create(
        surefoot.open_journal("memory:"), "shop", configuration, mode="guarded", despite_doubt=True
    )
    context = {"agent": "something new", "post": 1, "member": True, "age": 30, "rank": 2}
    assert shop.decide(context=context).source == "baseline"
    assert shop.decide(context={"post": None, "member": False, "age": 30, "rank": 2}).source == "baseline"


@pytest.mark.parametrize(
    ("label", "buckets", "place"), [("curl/8.5", 4, 2), ("", 64, 36), ("ü", 64, 21), ("10117", 1024, 923)]
)
def test_a_bucket_is_the_same_for_ever(label: str, buckets: int, place: int) -> None:
    # By `b2sum -l 64`, and written down: what was learned of a bucket is about these labels.
    assert bucket_of(label, buckets) == place


def test_labels_fill_their_buckets_evenly() -> None:
    counts = np.bincount([bucket_of(f"agent {k}", 64) for k in range(64_000)], minlength=64)
    # Chi-square with 63 degrees of freedom: beyond 128 once in 300,000 times.
    assert ((counts - 1000) ** 2 / 1000).sum() < 128


def test_blanks_and_words_for_yes_are_read_alike(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"plan": [" pro ", "basic"] * 20, "is": [True, False] * 20, "action": ["a", "b", "b", "a"] * 10}
    )
    columns = Columns(context=("plan", "is"), categorical=("is",))
    log = read_log(table.with_columns(reward=pl.lit(1.0)), baseline="a", columns=columns)
    assert isinstance(log, TableLog)
    first = next(log.batches()).features[0]
    np.testing.assert_array_equal(first, log.phi(log.encoder.encode_one({"plan": " pro ", "is": True})))
    assert {part.name for part in log.encoder.parts if isinstance(part, CategoricalColumn)} == {"plan", "is"}


def test_what_is_left_out_says_how_to_take_it(tmp_path: Path) -> None:
    path = visits(tmp_path)
    assert "--hash agent:64 takes it" in read_log(path, baseline="a").left_out["agent"]
    with pytest.raises(ConfigError, match=r"at most 64 .*`--hash agent:64`"):
        read_log(path, baseline="a", columns=Columns(propensity="propensity", context=("agent",)))
    kept = read_log(path, baseline="a", columns=Columns(propensity="propensity", hashed={"agent": 8}))
    assert isinstance(kept, TableLog)
    assert kept.encoder == Encoder((HashedColumn("agent", 8),))


@pytest.mark.parametrize("hashed", [{"agent": 1}, {"agent": 1025}, {"agent": -3}])
def test_a_wrong_number_of_buckets_is_refused(tmp_path: Path, hashed: Mapping[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"`2 <= buckets <= 1,024` must hold for the hashed column 'agent', but got"):
        read_log(visits(tmp_path), baseline="a", columns=Columns(hashed=hashed))


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"must have the column\(s\) 'agnet'.* Did you mean 'agent'"):
        read_log(visits(tmp_path), baseline="a", columns=Columns(hashed={"agnet": 8}))


@pytest.mark.parametrize("is_guess", [False, True])
def test_times_are_not_hashed(tmp_path: Path, is_guess: bool) -> None:
    table = pl.read_parquet(visits(tmp_path)).with_columns(seen=pl.datetime(2026, 1, 1))
    with pytest.raises(LogError, match="'seen' holds dates or times"):
        read_log(table, baseline="a", columns=Columns(hashed={"seen": 8}, is_guess=is_guess))


@pytest.mark.parametrize("hashed", [{"action": 8}, {"reward": 8}, {"propensity": 8}])
def test_what_has_a_meaning_is_not_hashed(tmp_path: Path, hashed: Mapping[str, int]) -> None:
    with pytest.raises(LogError, match="must be part of the context"):
        read_log(visits(tmp_path), baseline="a", columns=Columns(propensity="propensity", hashed=hashed))


@pytest.mark.parametrize("buckets", ["8", 8.0, None, True])
def test_buckets_are_a_whole_number(buckets: Any) -> None:
    with pytest.raises(ConfigError, match="must hold for the hashed column 'x', but got"):
        HashedColumn("x", buckets)


def test_a_column_is_hashed_once(tmp_path: Path) -> None:
    twice = ["--hash", "agent:4", "--hash", "agent:8"]
    done = CliRunner().invoke(app, ["fit-baseline", str(visits(tmp_path)), "--baseline", "a", *twice])
    assert "must name every column once" in str(done.exception) + done.output


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("buckets = 16", 'buckets = 16\nhash = "murmur3"'),
        ("buckets = 16", 'buckets = 16\nlevels = ["a"]'),
        ("buckets = 16", 'levels = "abc"'),
        ("buckets = 16", "low = 2.0\nhigh = 1.0"),
        ("[[context]]", "[context]"),
    ],
)
def test_a_column_of_a_configuration_is_of_one_kind(tmp_path: Path, was: str, becomes: str) -> None:
    (tmp_path / "odd.toml").write_text(fitted(visits(tmp_path), tmp_path).to_toml().replace(was, becomes, 1))
    with pytest.raises(ConfigError):
        read_configuration(tmp_path / "odd.toml")


@pytest.mark.parametrize("given", ["agent", "agent:", ":64", "agent:many", "agent:6.5", f"agent:{'9' * 5000}"])
def test_a_declaration_that_cannot_be_read_is_refused(tmp_path: Path, given: str) -> None:
    done = CliRunner().invoke(app, ["fit-baseline", str(visits(tmp_path)), "--baseline", "a", "--hash", given])
    assert done.exit_code != 0
    assert "such as user_agent:64" in str(done.exception) + done.output


@pytest.mark.parametrize("buckets", ["1.5", "true", '"64"', "1"])
def test_a_configuration_with_other_buckets_is_refused(tmp_path: Path, buckets: str) -> None:
    configuration = fitted(visits(tmp_path), tmp_path)
    text = configuration.to_toml().replace("buckets = 16", f"buckets = {buckets}")
    (tmp_path / "other.toml").write_text(text)
    with pytest.raises(ConfigError, match="buckets"):
        read_configuration(tmp_path / "other.toml")


@pytest.mark.parametrize("levels", [("False", "True"), ("false", "true")])
def test_a_truth_value_is_found_however_the_log_spelt_it(levels: tuple[str, ...]) -> None:
    encoder = Encoder((CategoricalColumn("member", levels),))
    assert encoder.encode_one({"member": True}).tolist() == encoder.encode_one({"member": levels[1]}).tolist() != [0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--hash", "agent:64"],
            "`--hash` must agree with the configuration.*but got agent:64.*agent \\(16 buckets\\)",
        ),
        (["--hash", "rank:16"], "`--hash` must agree"),
        (["--categorical", "age"], "`--categorical` must agree.*but got age"),
        (["--context", "colour"], "`--context` must agree.*but got colour"),
        (["--context", "age", "--context", "post"], "but got age, post without"),
    ],
)
def test_options_that_a_configuration_contradicts_are_refused(tmp_path: Path, options: list[str], message: str) -> None:
    fitted(visits(tmp_path), tmp_path)
    asked = ["replay", str(tmp_path / "visits.parquet"), "--config", str(tmp_path / "experiment.toml"), *options]
    with pytest.raises(ConfigError, match=message):
        CliRunner().invoke(app, asked, catch_exceptions=False)


def test_options_that_agree_with_a_configuration_are_taken(tmp_path: Path) -> None:
    fitted(visits(tmp_path), tmp_path)
    asked = ["replay", str(tmp_path / "visits.parquet"), "--config", str(tmp_path / "experiment.toml"), "--json"]
    agreed = ["--hash", "agent:16", "--categorical", "rank", *(word for n in NAMES for word in ("--context", n))]
    done = CliRunner().invoke(app, [*asked, "--policy", "LUCB", *agreed])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("options", [["--hash", "x:8"], ["--context", "x"], ["--action", "a"]])
def test_columns_of_dsjson_are_not_named(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "log.dsjson").write_text("{}\n")
    with pytest.raises(ConfigError, match="Columns must not be named for DSJSON"):
        CliRunner().invoke(app, ["replay", str(tmp_path / "log.dsjson"), *options], catch_exceptions=False)


@pytest.mark.parametrize("settings", [{"encoder": Encoder(())}, {"baseline": "2"}])
def test_dsjson_takes_no_encoder_and_no_other_baseline(tmp_path: Path, settings: dict[str, Any]) -> None:
    (tmp_path / "log.dsjson").write_text("{}\n")
    with pytest.raises(ConfigError, match="for DSJSON"):
        read_log(tmp_path / "log.dsjson", **settings)


def test_lists_are_not_hashed(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [[1.0, 2.0]] * 8, "action": ["a", "b"] * 4, "reward": [1.0] * 8})
    table.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(LogError, match="Column 'x' must hold one label a row, but it holds lists"):
        CliRunner().invoke(
            app, ["fit-baseline", str(tmp_path / "log.parquet"), "--hash", "x:8"], catch_exceptions=False
        )


@pytest.mark.parametrize("codes", [["10117.0", "2.5"], [10117.0, 2.5], ["10117", "2.5"]])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("how", [{"hashed": {"post": 8}}, {"categorical": ("post",)}])
def test_a_number_that_is_a_label_is_the_same_in_log_and_live(
    tmp_path: Path, codes: list[Any], kind: str, how: dict[str, Any]
) -> None:
    table = pl.DataFrame({"post": codes * 20, "action": ["a", "b", "b", "a"] * 10, "reward": [1.0, 0.0] * 20})
    path = tmp_path / f"log.{kind}"
    table.write_csv(path) if kind == "csv" else table.write_parquet(path)
    log = read_log(path, baseline="a", columns=Columns(context=("post",), **how))
    assert isinstance(log, TableLog)
    rows = next(log.batches()).features
    for row, code in zip(rows[:2], codes, strict=True):
        np.testing.assert_array_equal(row, log.phi(log.encoder.encode_one({"post": code})))
        assert log.encoder.encode_one({"post": np.float64(code)}).sum() == 1.0
