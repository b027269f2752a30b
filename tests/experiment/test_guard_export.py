"""A guard's log as it is exported, and what its status says: what was booked, reported or not, and unit by unit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import surefoot
from surefoot import Experiment, Guard, open_journal
from surefoot.cli.commands import app
from surefoot.errors import ConfigError
from surefoot.experiment.export import export
from surefoot.journal import Journal
from surefoot.replay.columns import Columns
from surefoot.replay.evaluation import replay
from surefoot.replay.replayed_policy import Declared
from surefoot.replay.table_log import read_log
from surefoot.simulation.policy_specs import Spec
from tests.experiment.worlds import Clock

LEVEL = 0.95
WINDOWS: dict[str, dict[str, Any]] = {
    "rounds": {"guard": {"settle_after": 40, "default_reward": 0.0}},
    "seconds": {"guard": {"default_reward": 0.0}, "experiment": {"reward_window": 40.0}},
    "units": {"guard": {"unit_window": 40}},
}


def least(runs: int, level: float = LEVEL) -> int:
    """How many of these intervals cover at the least, if they cover at their level."""
    return int(binom.ppf(1e-4, runs, level))


def clicks(window: str, seed: int, rounds: int = 1_200) -> tuple[Journal, Experiment]:
    """Only clicks are reported: 0.10 of the proposal's rounds, 0.05 of the baseline's."""
    rng, journal, clock = np.random.default_rng([8, seed]), open_journal("memory:"), Clock()
    settings, options = WINDOWS[window].get("guard", {}), WINDOWS[window].get("experiment", {})
    guard = Guard(alpha=0.3, delta=0.05, ramp="free", seed=seed, **settings)
    shop = Experiment.create(journal, "shop", guard, mode="guarded", clock=clock, **options)
    for number in range(rounds):
        unit = f"u{number}" if window == "units" else None
        answer = shop.decide(baseline="old", proposal="new", unit=unit)
        if rng.random() < (0.10 if answer.source == "learner" else 0.05):
            shop.reward(answer.decision_id, 1.0)
        clock.now += 1.0
    return journal, shop


def estimates(path: Path, reward: str = "reward_reward") -> Any:
    """What replay says of always playing the proposal, and of the baseline."""
    declared = Declared(noise=0.5, theta_bound=2.0, baseline_reward=0.3)
    if path.suffix == ".dsjson":
        log = read_log(path, baseline="1")
    else:
        table = pl.read_csv(path).filter(pl.col(reward).is_not_null())
        log = read_log(table, columns=Columns("source", reward, "probability", ()), baseline="baseline")
    (outcome,) = replay(log, [Spec("LUCB")], declared=declared, evaluator="importance")
    return outcome.estimates["snips"]


def of_baseline(journal: Journal, folder: Path, *, both: bool) -> Any:
    """What replay says of the baseline in a log as CSV; of `both`, after seeing that DSJSON says the same."""
    export(journal, "shop", folder / "shop.csv")
    estimate = estimates(folder / "shop.csv")["baseline"]
    if both:
        export(journal, "shop", folder / "shop.dsjson")
        assert str(estimates(folder / "shop.dsjson")["baseline"]) == str(estimate)
    return estimate


@pytest.mark.parametrize("window", WINDOWS)
def test_where_only_clicks_are_reported_log_and_status_have_the_rates(window: str, tmp_path: Path) -> None:
    runs, hits, learner, baseline = 20, 0, list[float](), list[float]()
    for seed in range(runs):
        journal, shop = clicks(window, seed)
        estimate = of_baseline(journal, tmp_path, both=seed < 2)
        hits += estimate.low <= 0.05 <= estimate.high
        status = shop.status().guard
        assert status is not None
        reward = status.metrics["reward"]
        learner.append(reward.learner_mean)
        baseline.append(reward.baseline_mean)
        assert reward.lift == pytest.approx(learner[-1] / baseline[-1] - 1)
    assert hits >= least(runs)
    # 360 and 840 rounds in each of 20 runs, whose means scatter around 0.10 and 0.05; four standard errors.
    assert np.mean(learner) == pytest.approx(0.10, abs=4 * np.sqrt(0.10 * 0.90 / 340 / 20))
    assert np.mean(baseline) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 800 / 20))


def test_rows_of_an_open_window_have_no_reward_yet_for_only_some_of_them_can_have_one(tmp_path: Path) -> None:
    for window in WINDOWS:
        journal, _ = clicks(window, 3, rounds=100)
        export(journal, "shop", tmp_path / "shop.parquet")
        table = pl.read_parquet(tmp_path / "shop.parquet")
        assert table["is_settled"].sum() == table["reward_reward"].count() == 60
        assert table["is_settled"].to_list() == [True] * 60 + [False] * 40
        assert export(journal, "shop", tmp_path / "shop.dsjson") == 60
        first = table.filter(pl.col("is_settled"))
        # A click is no default, and what was not reported is one; a unit that brought nothing earned 0.
        assert (first["is_default_reward"] == (first["reward_reward"] == 0.0)).all()
        lines = [json.loads(line) for line in (tmp_path / "shop.dsjson").read_text().splitlines()]
        assert [line["o"][0]["is_default"] for line in lines] == first["is_default_reward"].to_list()


def served(seed: int) -> Journal:
    """A proposal that is as good as today's answer, and takes three times as long."""
    rng, journal = np.random.default_rng([9, seed]), open_journal("memory:")
    metrics = {
        "quality": surefoot.floor(0.0, 1.0, alpha=0.3, reserve=400.0),
        "latency": surefoot.ceiling(0.0, 1.0, alpha=0.9, reserve=400.0),
    }
    guard = Guard(metrics=metrics, delta=0.05, ramp="gate", cap=0.5, seed=seed)
    models = Experiment.create(journal, "models", guard, mode="guarded")
    for _ in range(600):
        answer = models.decide(baseline="big", proposal="small")
        slow = 3.0 if answer.source == "learner" else 1.0
        models.reward(
            answer.decision_id, {"quality": float(rng.random() < 0.5), "latency": slow * 0.1 + 0.1 * rng.random()}
        )
    return journal


def test_the_reward_of_an_exported_log_is_a_floor_and_a_cost_keeps_its_sign(tmp_path: Path) -> None:
    paying = 0
    for seed in range(20):
        export(served(seed), "models", path := tmp_path / "models.dsjson")
        paying += estimates(path)["gain"].low > 0
    assert paying <= binom.ppf(1 - 1e-4, 20, (1 - LEVEL) / 2)
    export(journal := served(0), "models", path, metric="latency")
    costs = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(line["_label_cost"] > 0 for line in costs)
    assert estimates(path)["gain"].high < 0
    with pytest.raises(ConfigError, match="`metric` must be one of latency, quality, but got 'speed'"):
        export(journal, "models", path, metric="speed")


def test_of_several_floors_one_must_be_named(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "shop.journal")
    metrics = {"clicks": surefoot.floor(0.0, 1.0, alpha=0.1), "revenue": surefoot.floor(0.0, 1.0, alpha=0.1)}
    shop = Experiment.create(journal, "shop", Guard(metrics=metrics, delta=0.05), mode="guarded")
    answer = shop.decide(baseline="old", proposal="new")
    shop.reward(answer.decision_id, {"clicks": 0.25, "revenue": 0.75})
    out = tmp_path / "shop.dsjson"
    with pytest.raises(ConfigError, match=r"room for one reward.*clicks, revenue.*--metric"):
        export(journal, "shop", out)
    assert not out.exists()
    command = ["experiment", "export", str(tmp_path / "shop.journal"), "shop", str(out), "--metric", "revenue"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())["o"][0]["v"] == 0.75


def visits(seed: int, units: int = 120) -> tuple[Journal, Experiment]:
    """Some units like what they see, and say so at every visit: their visits are no independent draws."""
    rng, journal = np.random.default_rng([10, seed]), open_journal("memory:")
    guard = Guard(alpha=0.4, delta=0.05, ramp="free", unit_window=10, seed=seed)
    shop = Experiment.create(journal, "shop", guard, mode="guarded")
    for number in range(units):
        likes = rng.random() < 0.5
        for _ in range(8):
            answer = shop.decide(baseline="old", proposal="new", unit=f"u{number}")
            if likes:
                shop.reward(answer.decision_id, 0.1)
    return journal, shop


def test_the_visits_of_a_unit_are_one_row(tmp_path: Path) -> None:
    runs, hits = 40, 0
    for seed in range(runs):
        journal, shop = visits(seed)
        estimate = of_baseline(journal, tmp_path, both=seed < 2)
        hits += estimate.low <= 0.4 <= estimate.high
    assert hits >= least(runs)
    journal, shop = visits(0)
    assert export(journal, "shop", tmp_path / "shop.parquet") == 120
    assert export(journal, "shop", tmp_path / "shop.dsjson") == 110  # those that are settled
    table = pl.read_parquet(tmp_path / "shop.parquet")
    assert table.height == 120
    assert (table["visits"] == 8).all()
    assert set(table.filter(pl.col("is_settled"))["reward_reward"].round(9)) == {0.0, 0.8}
    status = shop.status().guard
    assert status is not None
    sides = table.filter(pl.col("is_settled")).group_by("source").agg(pl.col("reward_reward").mean())
    means = dict(sides.iter_rows())
    assert status.metrics["reward"].learner_mean == pytest.approx(means["learner"])
    assert status.metrics["reward"].baseline_mean == pytest.approx(means["baseline"])


def test_what_was_booked_at_its_worst_has_no_reward_and_a_metric_may_have_its_default_alone(tmp_path: Path) -> None:
    journal, clock = open_journal("memory:"), Clock()
    metrics = {"clicks": surefoot.floor(0.0, 1.0, alpha=0.1, default=0.0), "stars": surefoot.floor(1.0, 5.0, alpha=0.1)}
    guard = Guard(metrics=metrics, delta=0.05)
    shop = Experiment.create(journal, "shop", guard, mode="guarded", reward_window=10.0, clock=clock)
    answers = [shop.decide(baseline="old", proposal="new") for _ in range(4)]
    shop.reward(answers[0].decision_id, {"clicks": 1.0, "stars": 4.0})
    shop.reward(answers[1].decision_id, {"stars": 2.0})
    shop.reward(answers[2].decision_id, {"clicks": 1.0})
    shop.abandon(answers[3].decision_id, reason="lost")
    clock.now += 10.0
    shop.close_windows()
    export(journal, "shop", tmp_path / "shop.parquet")
    rows = pl.read_parquet(tmp_path / "shop.parquet")
    assert rows["is_settled"].all()
    assert rows["reward_clicks"].to_list() == [1.0, 0.0, 1.0, None]
    assert rows["reward_stars"].to_list() == [4.0, 2.0, None, None]
    assert rows["is_default_reward"].to_list() == [False, True, False, False]
    status = shop.status().guard
    assert status is not None
    assert all(np.nansum([one.learner_mean, one.baseline_mean]) > 0 for one in status.metrics.values())
