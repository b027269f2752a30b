"""The commands: several policies side by side, files that appear whole, and mistakes that end in a sentence."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from surefoot.cli.commands import app
from surefoot.experiment.configuration import read_configuration
from tests.cli.shell import shell
from tests.replay.test_fit import clicks


def run(*args: str) -> str:
    done = CliRunner().invoke(app, list(args), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_replay_writes_table_figures_and_report(tmp_path: Path) -> None:
    path, out = clicks(tmp_path / "clicks.csv"), tmp_path / "out"
    args = ["--policy", "LUCB", "--policy", "CLUCB", "--alpha", "0.1,0.3", "--baseline", "banner", "--out", str(out)]
    shown = run("replay", str(path), *args)
    for label in ("LUCB", "CLUCB 0.1", "CLUCB 0.3", "baseline:"):
        assert label in shown
    assert {file.name for file in out.iterdir()} == {
        "report.html", "replay.json", "lift.png", "reward.png", "share.png", "margin.png",
    }  # fmt: skip
    kept = json.loads((out / "replay.json").read_text())
    assert [(entry["policy"], entry["alpha"]) for entry in kept["policies"]] == [
        ("LUCB", None), ("LUCB", None), ("CLUCB", 0.1), ("CLUCB", 0.3),
    ]  # fmt: skip
    assert [(entry["label"], entry["exploration"]) for entry in kept["policies"][:2]] == [
        ("LUCB", None), ("LUCB, radius 1", 1.0),
    ]  # fmt: skip
    # The same in JSON, which writes nothing.
    printed = json.loads(run("replay", str(path), *args[:-2], "--json"))
    assert printed == kept


def test_a_constant_radius_is_told_and_reaches_the_guard(tmp_path: Path) -> None:
    asked = ["replay", str(clicks(tmp_path / "clicks.csv")), "--baseline", "banner", "--json", "--reward-bounds", "0,1"]
    asked += ["--policy", "Guard"]
    plain, wide = (json.loads(run(*asked, *more)) for more in ([], ["--exploration", "5"]))
    assert wide["settings"] == plain["settings"] | {"exploration": 5.0}
    assert wide["policies"][0]["estimates"] != plain["policies"][0]["estimates"]


def test_lucb_is_shown_as_it_is_proved_and_as_it_is_run_and_goes_live_so(tmp_path: Path) -> None:
    path, config = str(clicks(tmp_path / "clicks.csv")), str(tmp_path / "e.toml")
    named = ["--baseline", "banner"]
    found = json.loads(run("replay", path, *named, "--json"))["policies"]
    practical = next(entry for entry in found if entry["exploration"] == 1.0)
    run("fit-baseline", path, *named, "--policy", "LUCB", "--exploration", "1", "--out", config)
    (live,) = json.loads(run("replay", path, "--config", config, "--json"))["policies"]
    assert (live["label"], live["estimates"]) == (practical["label"], practical["estimates"])
    run(
        "fit-baseline",
        path,
        *named,
        "--policy",
        "LUCB",
        "--exploration",
        "1",
        "--radius",
        "logdet",
        "--out",
        f"{config}2",
    )
    (live,) = json.loads(run("replay", path, "--config", f"{config}2", "--json"))["policies"]
    assert (live["label"], live["estimates"]) == (practical["label"], practical["estimates"])
    (asked,) = json.loads(run("replay", path, *named, "--policy", "LUCB", "--exploration", "0.5", "--json"))["policies"]
    assert asked["label"] == "LUCB, radius 0.5"
    # In units of the largest reward.
    pl.read_csv(path).with_columns(pl.col("reward") * 40).write_csv(tmp_path / "euros.csv")
    euros = json.loads(run("replay", str(tmp_path / "euros.csv"), *named, "--policy", "LUCB", "--json"))["policies"]
    assert [entry["label"] for entry in euros] == ["LUCB", "LUCB, radius 40"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--policy", "SafeLUCB", "--exploration", "2"), "neither plays"),
        (("--policy", "SafeLUCB", "--exploration", "-4"), "`exploration > 0` must hold"),
    ],
)
def test_an_exploration_that_nobody_uses_or_that_is_none_is_refused(
    more: tuple[str, ...],
    message: str,
    tmp_path: Path,
) -> None:
    path = str(clicks(tmp_path / "clicks.csv"))
    done = shell("replay", path, "--baseline", "banner", *more, folder=tmp_path)
    assert done.code == 2
    assert message in " ".join(done.err.split())


def test_where_nothing_has_a_floor_none_is_spoken_of(tmp_path: Path) -> None:
    path, out = str(clicks(tmp_path / "clicks.csv")), str(tmp_path / "out")
    shown = run("replay", path, "--baseline", "banner", "--policy", "LUCB", "--out", out)
    assert "by alpha" not in shown
    assert "below floor" not in shown or "–" in shown


def test_the_radius_that_a_replay_shows_is_the_one_to_declare(tmp_path: Path) -> None:
    """As the documentation says: the number in the row's name, also where rewards are not at most 1."""
    path, config = tmp_path / "stars.csv", str(tmp_path / "e.toml")
    pl.read_csv(clicks(tmp_path / "clicks.csv")).with_columns(pl.col("reward") * 5).write_csv(path)
    named = ["--baseline", "banner"]
    rows = json.loads(run("replay", str(path), *named, "--policy", "LUCB", "--json"))["policies"]
    assert [row["label"] for row in rows] == ["LUCB", "LUCB, radius 5"]
    run("fit-baseline", str(path), *named, "--policy", "LUCB", "--exploration", "5", "--out", config)
    (live,) = json.loads(run("replay", str(path), "--config", config, "--json"))["policies"]
    assert (live["label"], live["estimates"]) == (rows[1]["label"], rows[1]["estimates"])


def test_the_lift_is_never_cut_off_in_a_narrow_terminal(tmp_path: Path) -> None:
    path = clicks(tmp_path / "clicks.csv")
    args = ["replay", str(path), "--baseline", "banner", "--alpha", "0.125,0.3", "--out", str(tmp_path / "out")]
    for policy in ("LUCB", "SafeLUCB"):
        args += ["--policy", policy]
    for width, columns in ((120, 6), (80, 4), (50, 2)):
        done = CliRunner().invoke(app, args, env={"COLUMNS": str(width)}, catch_exceptions=False)
        lines = [line for line in done.output.splitlines() if line.startswith(("LUCB", "SafeLUCB"))]
        assert len(lines) == 4
        for line in lines:
            assert re.match(r"\S+( 0\.\d+| radius 1)? +[+-]\d\.\d{3,4} \[[+-]\d\.\d{3,4}, [+-]\d\.\d{3,4}\]", line), (
                line
            )
            assert "…" not in line
            assert len(re.split(r"  +", line.replace(" / ", "/"))) > columns


def test_every_evaluator_has_its_way_on_the_command_line(tmp_path: Path) -> None:
    path = clicks(tmp_path / "clicks.csv")
    shadow = json.loads(
        run(
            "replay", str(path), "--baseline", "banner", "--evaluator", "importance", "--reward-bounds", "0,1", "--json"
        )
    )
    assert set(shadow["policies"][0]["estimates"]) == {"dr", "ips", "snips", "dm"}
    plain = tmp_path / "plain.csv"
    pl.read_csv(path).drop("propensity").write_csv(plain)
    even = json.loads(run("replay", str(plain), "--baseline", "banner", "--uniform", "--json"))
    assert even["policies"][0]["rounds"] > 0
    rng = np.random.default_rng(0)
    x = rng.random(400)
    labels = pl.DataFrame(
        {"x": x, "kind": np.where(x > 0.5, "big", "small"), "guess": rng.choice(["big", "small"], 400)}
    )
    labels.write_csv(tmp_path / "labels.csv")
    full = json.loads(
        run("replay", str(tmp_path / "labels.csv"), "--label", "kind", "--baseline-column", "guess", "--json")
    )
    assert full["settings"]["evaluator"] == "full"
    assert full["settings"]["actions"] == "big, small"
    assert full["policies"][0]["estimates"]["full"]["reward"]["value"] > 0.75


def test_fit_baseline_writes_a_configuration_that_replay_takes(tmp_path: Path) -> None:
    path, config = clicks(tmp_path / "clicks.csv"), tmp_path / "experiment.toml"
    shown = run("fit-baseline", str(path), "--baseline", "banner", "--alpha", "0.2", "--out", str(config))
    for text in ("baseline's mean reward", "to declare", "no doubt", "Linearity"):
        assert text in shown
    made = read_configuration(config)
    assert (made.alpha, made.baseline, made.actions) == (0.2, "banner", ("banner", "mail"))
    printed = json.loads(run("replay", str(path), "--config", str(config), "--json"))
    assert printed["settings"]["theta_bound"] == made.theta_bound
    found = json.loads(run("fit-baseline", str(path), "--baseline", "banner", "--json"))
    assert found["baseline_reward"]["low"] < made.baseline_reward < found["baseline_reward"]["high"]


def test_bounds_of_rewards_let_safe_lucb_in_sooner(tmp_path: Path) -> None:
    path = str(clicks(tmp_path / "clicks.csv", rows=4_000))
    args = ("replay", path, "--baseline", "banner", "--policy", "SafeLUCB", "--json")
    without, with_ = (json.loads(run(*args, *more))["policies"][0] for more in ((), ("--reward-bounds", "0,1")))
    assert with_["learner_rounds"] / with_["rounds"] > without["learner_rounds"] / without["rounds"] + 0.1


def test_a_doubt_about_linearity_keeps_a_linear_policy_from_being_configured(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.random(3_000)
    table = {"x": x, "action": rng.choice(["a", "b"], 3_000), "reward": (np.abs(x - 0.5) < 0.25).astype(float)}
    pl.DataFrame(table).write_csv(tmp_path / "bent.csv")
    args = ("fit-baseline", "bent.csv", "--baseline", "a", "--out", "e.toml")
    done = shell(*args, folder=tmp_path)
    assert done.code == 2
    refused = done.err
    assert "rests on mean rewards that are linear" in refused
    assert "--policy Guard --set alpha=0.1 --set delta=0.001 --set 'reward_bounds=[0, 1]'" in refused
    assert not (tmp_path / "e.toml").exists()
    run(*args[:1], str(tmp_path / "bent.csv"), *args[2:4], "--policy", "LUCB", "--out", str(tmp_path / "free.toml"))
    run(*args[:1], str(tmp_path / "bent.csv"), *args[2:4], "--despite-doubt", "--out", str(tmp_path / "e.toml"))
    assert read_configuration(tmp_path / "e.toml").policy == "SafeLUCB"


def test_bad_rows_are_shown_and_counted(tmp_path: Path) -> None:
    path = clicks(tmp_path / "clicks.csv", rows=300)
    path.write_text(path.read_text() + "33,pro,mail,often,0.5\n")
    args = ["replay", str(path), "--baseline", "banner", "--max-bad", "3", "--out", "out"]
    done = shell(*args, folder=tmp_path)
    assert done.code == 0, done.err
    assert "left out, line 302: reward must be a finite number, not 'often'" in done.err
    assert "1 rows could not be used" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("replay", "none.csv"), "there is no such file"),
        (("replay", "by_context.csv"), "known without looking at the logged action"),
        (("replay", "log.csv", "--baseline", "banner", "--alpha", "2"), "`0 < alpha < 1` must hold"),
        (("replay", "log.csv", "--baseline", "banner", "--policy", "UCB2"), "Did you mean"),
        (("replay", "log.csv", "--baseline", "banner", "--reward", "revenue"), "must have the column(s) 'revenue'"),
        (("replay", "log.csv", "--baseline", "banner", "--reward-bounds", "1"), "must be two numbers"),
        (("replay", "log.csv", "--baseline", "banner", "--reward-bounds", "0,0.5"), "declared range"),
        (("replay", "log.csv", "--baseline", "banner", "--format", "xls"), "must be parquet, csv, jsonl or dsjson"),
        (("replay", "log.csv", "--baseline", "banner", "--config", "no.toml"), "but there is none"),
        (("replay", "certain.csv", "--baseline", "banner"), "every propensity is 1"),
        (("replay", "bad.csv", "--baseline", "banner"), "line 302"),
        (("fit-baseline", "bad.csv", "--out", "e.toml"), "line 302"),
        (("fit-baseline", "log.csv", "--out", "e.toml", "--alpha", "3"), "`0 < alpha < 1` must hold"),
        (("fit-baseline", "log.csv", "--alpha", "0.1"), "`--alpha` must come with `--out`"),
        (
            ("fit-baseline", "log.csv", "--despite-doubt", "--reward-window", "60"),
            "`--reward-window`, `--despite-doubt` m",
        ),
    ],
)
def test_mistakes_end_with_a_sentence_and_write_nothing(
    args: tuple[str, ...],
    message: str,
    tmp_path: Path,
) -> None:
    path = clicks(tmp_path / "log.csv", rows=300)
    pl.read_csv(path).with_columns(propensity=pl.lit(1.0)).write_csv(tmp_path / "certain.csv")
    by_age = pl.read_csv(path).with_columns(propensity=pl.col("age") / 100)
    by_age.write_csv(tmp_path / "by_context.csv")
    (tmp_path / "bad.csv").write_text(path.read_text() + "33,pro,mail,1\n")
    before = sorted(tmp_path.iterdir())
    done = shell(*args, folder=tmp_path)
    assert done.code == 2
    assert message in done.err
    assert sorted(tmp_path.iterdir()) == before


def without_rewards(path: Path) -> str:
    path.write_text("action,reward,age\n" + "".join(f"{('red', 'blue')[k % 2]},0,{k % 7}\n" for k in range(60)))
    return str(path)


@pytest.mark.parametrize("command", ["replay", "fit-baseline"])
def test_a_log_of_zeros_is_refused_in_one_sentence(command: str, tmp_path: Path) -> None:
    path = without_rewards(tmp_path / "zero.csv")
    done = shell(command, path, "--baseline", "red", folder=tmp_path)
    assert done.code == 2
    assert "must have a reward other than 0" in " ".join(done.err.split())


def test_a_log_of_zeros_within_known_bounds_is_drawn(tmp_path: Path) -> None:
    path, out = without_rewards(tmp_path / "zero.csv"), tmp_path / "out"
    run("replay", path, "--baseline", "red", "--reward-bounds", "0,1", "--uniform", "--out", str(out))
    assert "The baseline earned nothing" in (out / "report.html").read_text()


@pytest.mark.parametrize("command", ["replay", "fit-baseline"])
def test_a_log_of_one_reward_passes_without_a_warning(command: str, tmp_path: Path) -> None:
    """What a fit says of it is the same in all rows but for rounding, and has no width to be cut into cells."""
    rows = "".join(f"{('red', 'blue')[k % 2]},0.5,{k % 7},0.5\n" for k in range(400))
    (tmp_path / "same.csv").write_text("action,reward,age,propensity\n" + rows)
    run(command, str(tmp_path / "same.csv"), "--baseline", "red", "--propensity", "propensity")
