"""Two columns that hardly differ: a log does not show how long theta is along their difference.

The adversary keeps to everything that is declared. Rewards are exactly linear, and live contexts lie in the log's
ranges: only that the two columns, which agreed in the log, come apart.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from surefoot.experiment.configuration import Configuration, read_configuration
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.table_log import read_log
from tests.cli.shell import shell
from tests.replay.linear_worlds import nearly_equal

SLOPE, BETTER, DELTA = 14.0, 0.65, 0.001


def log_of(path: Path, seed: int, rows: int = 2_000) -> Path:
    """Today's action pays 0.5, and 14 times the difference of two columns more, which the log does not show."""
    rng = np.random.default_rng([34, seed])
    net, apart, is_new = rng.random(rows), rng.uniform(-0.0005, 0.0005, rows), rng.random(rows) < 0.5
    paid = rng.random(rows) < np.where(is_new, BETTER, 0.5 + SLOPE * apart)
    table = {"action": np.where(is_new, "new", "today"), "reward": paid.astype(int), "net": net, "gross": net + apart}
    pl.DataFrame(table | {"propensity": 0.5}).write_csv(path)
    return path


def worst_slack(config: Configuration, seed: int) -> float:
    """The new action is as good as it looks; once it is free, the columns come apart, and today's pays 0.9."""
    rng, policy = np.random.default_rng([35, seed]), config.new_policy()
    slack = worst = 0.0
    for t in range(7_000):
        apart, net = 0.0 if t < 3_000 else 0.4 / SLOPE, rng.uniform(0.1, 0.9)
        means = {"new": BETTER, "today": 0.5 + SLOPE * apart}
        decision = policy.decide(config.rows({"net": net, "gross": net + apart}), baseline=config.baseline_row)
        mean = means[config.actions[decision.action]]
        policy.observe(decision, float(rng.random() < mean))
        slack += mean - (1 - config.alpha) * means["today"]
        worst = min(worst, slack)
    return worst


@pytest.mark.parametrize("runs", [6, pytest.param(40, marks=pytest.mark.long)])
def test_what_fit_baseline_writes_keeps_the_floor_where_equal_columns_come_apart(runs: int, tmp_path: Path) -> None:
    broken = 0
    for seed in range(runs):
        log, out = log_of(tmp_path / "log.csv", seed), tmp_path / f"{seed}.toml"
        args = ["--baseline", "today", "--reward-bounds", "0,1", "--delta", str(DELTA), "--out", str(out)]
        said = shell("fit-baseline", log, *args, folder=tmp_path).out
        (doubt,) = [line for line in said.splitlines() if "Length of theta" in line]
        assert "DOUBTFUL" in doubt
        assert all(name in doubt for name in ("net", "gross"))
        config = read_configuration(out)
        assert config.theta_bound >= np.sqrt(2) * SLOPE
        broken += worst_slack(config, seed) < 0
    assert broken <= binom.ppf(1 - 1e-4, runs, DELTA)


@pytest.mark.parametrize("rows", [500, 2_000, 8_000])
@pytest.mark.parametrize("gap", [0.0003, 0.004, 0.03, 0.1, 0.3])
def test_the_declared_length_is_not_short_however_much_of_it_the_rewards_show(gap: float, rows: int) -> None:
    """From nothing to all that their range allows: between the two lies what is easily overlooked."""
    for effect in (0.003, 0.03, 0.06, 0.1, 0.2, 0.45):
        for seed in range(3):
            world = nearly_equal(seed, rows=rows, gap=gap, effect=effect)
            fit = fit_baseline(world.log, reward_bounds=(0.0, 1.0))
            assert fit.declared.theta_bound >= np.linalg.norm(world.theta), (effect, seed)


def test_the_doubt_leaves_out_columns_that_vary(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    table = pl.read_csv(log_of(tmp_path / "log.csv", 0)).with_columns(age=rng.integers(18, 70, 2_000))
    fit = fit_baseline(read_log(table, baseline="today"))
    (doubt,) = [doubt for doubt in fit.doubts if doubt.assumption.startswith("Length")]
    assert doubt.is_doubtful
    assert "age" not in doubt.seen
