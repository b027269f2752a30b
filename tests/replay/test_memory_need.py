"""A log whose matrices do not fit into memory is refused before any of them is made."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from surefoot.errors import ConfigError
from surefoot.replay import memory_need
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.columns import Columns
from surefoot.replay.estimators import replay
from surefoot.replay.open_log import read_log
from surefoot.replay.rehearsal import expected_seconds
from surefoot.replay.replayed_policy import Declared
from surefoot.simulation.policy_specs import Spec

TOLD = r"20 actions have 1,025 columns each. Take fewer buckets"


def wide() -> object:
    rng, n = np.random.default_rng(0), 400
    table = pl.DataFrame(
        {
            "agent": [f"agent {k}" for k in range(n)],
            "action": [f"a{k % 20}" for k in range(n)],
            "reward": (rng.random(n) < 0.3).astype(int),
            "propensity": 0.05,
        }
    )
    return read_log(table, baseline="a0", columns=Columns(propensity="propensity", hashed={"agent": 1024}))


def test_twenty_actions_of_a_thousand_buckets_are_refused_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_need, "available_memory", lambda: 20 * 10**9)
    log, declared = wide(), Declared(noise=0.5, theta_bound=1.0, baseline_reward=0.3)
    with pytest.raises(
        ConfigError, match=rf"12 matrices of 20,500 x 20,500 .* take 40.3 GB, and 20.0 GB are free: {TOLD}"
    ):
        fit_baseline(log)  # type: ignore[arg-type]
    specs = [Spec("LUCB"), Spec("SafeLUCB", alpha=0.1)]
    with pytest.raises(ConfigError, match=f"16 matrices .*{TOLD}"):
        replay(log, specs, declared=declared)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"16 matrices .*{TOLD}"):
        expected_seconds(log, specs, declared=declared, evaluator="rejection")  # type: ignore[arg-type]


def test_what_a_container_may_take_counts(tmp_path: Path) -> None:
    assert memory_need._left_in_container(tmp_path) == []
    (tmp_path / "memory.current").write_text("300\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_need._left_in_container(tmp_path) == []
    (tmp_path / "memory.max").write_text("1000\n")
    assert memory_need._left_in_container(tmp_path) == [700]
    (tmp_path / "memory.stat").write_text("anon 100\nfile 200\ninactive_file 150\nactive_file 50\n")
    assert memory_need._left_in_container(tmp_path) == [850]  # the cache of files makes room
    assert 0 < memory_need.available_memory() < 2**50


def test_sizes_below_a_gigabyte_are_told_in_megabytes() -> None:
    with pytest.raises(ConfigError, match=r"take 40\.3 GB, and 300 MB are free"):
        memory_need.check_memory(wide(), 12, available=300_000_000)  # type: ignore[arg-type]
