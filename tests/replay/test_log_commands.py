"""What people type who have a log: columns by commas, TRUE and FALSE, equal chances, a disk that is full."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import surefoot
from surefoot import Experiment, Guard, open_journal
from surefoot.cli.commands import app
from surefoot.errors import ConfigError
from surefoot.experiment import read_configuration
from surefoot.linear.features import Disjoint, OneHot
from surefoot.replay.replayed_policy import guarded
from surefoot.replay.table_log import read_log
from surefoot.simulation.policy_specs import Problem
from surefoot.simulation.rollout_plan import MappedWorld, plan


def run(*words: str) -> str:
    done = CliRunner().invoke(app, [*words], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def visits(path: Path, *, reward: str = "number", propensity: bool = True, rows: int = 3_000) -> Path:
    rng = np.random.default_rng(39)
    plan_, shown = rng.choice(["basic", "pro"], rows), rng.choice(["banner", "mail"], rows)
    bought = rng.random(rows) < 0.3 + 0.2 * ((plan_ == "pro") & (shown == "mail"))
    words = {"number": bought.astype(int), "TRUE": np.where(bought, "TRUE", "FALSE")}
    columns = {"age": rng.integers(18, 70, rows), "plan": plan_, "shoe": rng.random(rows), "action": shown}
    chances = {"propensity": np.full(rows, 0.5)} if propensity else {}
    pl.DataFrame({**columns, "reward": words[reward], **chances}).write_csv(path)
    return path


def test_truth_is_a_reward_of_one(tmp_path: Path) -> None:
    plain, words = (read_log(visits(tmp_path / f"{kind}.csv", reward=kind)) for kind in ("number", "TRUE"))
    for first, second in zip(plain.batches(), words.batches(), strict=True):
        np.testing.assert_array_equal(first.rewards, second.rewards)
    flags = pl.read_csv(tmp_path / "TRUE.csv")  # polars reads them as booleans
    assert flags["reward"].dtype == pl.Boolean
    np.testing.assert_array_equal(next(read_log(flags).batches()).rewards, next(plain.batches()).rewards)


def test_context_columns_may_be_separated_by_commas(tmp_path: Path) -> None:
    path = visits(tmp_path / "log.csv")
    args = ["replay", str(path), "--baseline", "banner", "--policy", "LUCB", "--json"]
    by_commas = json.loads(run(*args, "--context", "age, pl*"))
    assert by_commas["settings"]["context"] == "age, plan"
    assert by_commas["policies"] == json.loads(run(*args, "--context", "age", "--context", "plan"))["policies"]
    # A name with a comma is a name.
    pl.read_csv(path).rename({"age": "age, in years"}).write_csv(path)
    assert json.loads(run(*args, "--context", "age, in years"))["settings"]["context"] == "age, in years"


def test_a_range_of_rewards_means_the_same_in_every_command(tmp_path: Path) -> None:
    """`--reward-bounds` is about single rewards, `--reward-range` about means, which a plan alone asks for."""
    path = visits(tmp_path / "log.csv")
    for command in ("replay", "fit-baseline"):
        done = CliRunner().invoke(app, [command, str(path), "--baseline", "banner", "--reward-range", "0,1"])
        assert done.exit_code == 2
        assert "--reward-range" in done.output


def test_a_fit_takes_equal_chances_as_a_replay_does(tmp_path: Path) -> None:
    stated, silent = visits(tmp_path / "a.csv"), visits(tmp_path / "b.csv", propensity=False)
    args = ["--baseline", "banner", "--reward-bounds", "0,1", "--json"]
    by_column, by_word = (
        json.loads(run("fit-baseline", str(stated), *args)),
        json.loads(run("fit-baseline", str(silent), *args, "--uniform")),
    )
    assert by_word == by_column
    assert "self-normalised" in by_word["baseline_rests_on"]
    with pytest.raises(ConfigError, match="give one of them"):
        run("fit-baseline", str(silent), *args, "--uniform", "--estimate-propensities")
    with pytest.raises(ConfigError, match="give one of them"):
        run("replay", str(silent), *args, "--uniform", "--estimate-propensities")


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))


def test_a_report_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    path = visits(tmp_path / "log.csv", rows=1_000)
    args = [sys.executable, "-m", "surefoot", "replay", str(path), "--baseline", "banner", "--policy", "LUCB"]
    out = tmp_path / "some" / "where"
    done = subprocess.run(
        [*args, "--out", str(out)], capture_output=True, text=True, check=False, preexec_fn=_small_files
    )
    assert done.returncode == 2
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("surefoot: ")]
    assert re.fullmatch(r"surefoot: The report must be written to `.*`, but that failed: .*`--out`\).", said)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "some").exists()
    # What was there stays as it was.
    out.mkdir(parents=True)
    (out / "replay.json").write_text("old")
    again = subprocess.run(
        [*args, "--out", str(out)], capture_output=True, text=True, check=False, preexec_fn=_small_files
    )
    assert again.returncode == 2
    assert [entry.name for entry in out.iterdir()] == ["replay.json"]
    assert (out / "replay.json").read_text() == "old"


def test_agreeing_rounds_are_the_learners_under_a_guard_too() -> None:
    policy = guarded(0.1, delta=0.05, ridge=1.0, reward_bounds=(0.0, 1.0)).new_policy(
        Problem(dim=2, actions=2, noise=0.5, theta_bound=2.0, feature_bound=1.0, baseline_reward=0.5, seed=1)
    )
    # The first action looks best to a learner that knows nothing, and is the baseline.
    assert policy.decide(np.eye(2), baseline=0, baseline_reward=None).source == "learner"


def test_a_plan_is_about_what_its_configuration_says(tmp_path: Path) -> None:
    path, config = visits(tmp_path / "log.csv"), tmp_path / "e.toml"
    run("fit-baseline", str(path), "--baseline", "banner", "--reward-bounds", "0,1", "--out", str(config))
    args = ["plan", "--config", str(config), "--lift", "0.5", "--days", "1", "--runs", "4", "--json"]
    found = json.loads(run(*args))
    assert {answer["policy"] for answer in found["answers"]} == {"SafeLUCB"}
    assert (found["settings"]["known"], found["settings"]["clicks"]) == (False, True)
    assert found["settings"]["dim"] == read_configuration(config).phi.dim
    both = json.loads(run(*args, "--policy", "safe,paper"))
    assert {answer["policy"] for answer in both["answers"]} == {"SafeLUCB", "CLUCB2"}


@pytest.mark.parametrize("width", [0, 3])
def test_planned_worlds_of_a_configuration_have_a_theta_for_each_action(width: int) -> None:
    phi = Disjoint(actions=3, context_dim=width, context_bound=1.0) if width else OneHot(actions=3)
    world = MappedWorld(dim=phi.dim, actions=3, phi=phi, theta_bound=4.0, baseline_reward=0.2, lift=0.5)
    for realisation in world.realisations(0, range(5)):
        block = realisation.take(20)
        np.testing.assert_allclose(block.means[:, 0], 0.2)
        np.testing.assert_allclose(block.means[:, 1], 0.3)
        assert block.means.max() <= 0.3 + 1e-12
        assert realisation.theta_bound == 4.0 >= np.linalg.norm(realisation.theta)
        lengths = np.linalg.norm(block.features, axis=2)
        assert lengths.max() <= realisation.feature_bound
        # Rows of different actions have nothing in common.
        products = np.einsum("tad,tbd->tab", block.features, block.features)
        assert np.count_nonzero(products * (1 - np.eye(3))) == 0


def test_a_theta_for_each_action_takes_longer_than_one_for_all() -> None:
    settings = {
        "noise": 0.5,
        "baseline_reward": 0.3,
        "lift": 0.3,
        "per_day": 2_000,
        "days": 4,
        "alphas": [0.2],
        "runs": 12,
    }
    phi = Disjoint(actions=5, context_dim=3, context_bound=1.0)
    shared, own = (
        plan(dim=phi.dim, actions=5, known=False, policies=["safe"], phi=one, **settings).answers[0]  # type: ignore[arg-type]
        for one in (None, phi)
    )
    assert own.free_round > 1.5 * shared.free_round
    assert own.violations == 0


def test_why_a_proposal_had_no_share_is_told_apart() -> None:
    cost = surefoot.ceiling(0.0, 1.0, alpha=0.1)
    made = {
        "nothing to decide": (Guard(alpha=0.1, delta=0.05), "old"),
        "'cost' allows no share yet": (Guard(metrics={"cost": cost}, delta=0.05), "new"),
        "got no share, though": (Guard(alpha=0.1, delta=0.05, cap=0.0), "new"),
    }
    for sentence, (guard, proposal) in made.items():
        shop = Experiment.create(open_journal("memory:"), "shop", guard, mode="guarded")
        answer = shop.decide(baseline="old", proposal=proposal)
        assert sentence in answer.explanation
        assert sentence in Guard(**guard.settings).decide(baseline="old", proposal=proposal).certificate.explain()
