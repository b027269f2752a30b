"""A log whose matrices do not fit into memory is refused before any of them is made."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surefoot.errors import ConfigError
from surefoot.replay import evaluation
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.columns import Columns
from surefoot.replay.evaluation import replay
from surefoot.replay.replayed_policy import Declared, guarded
from surefoot.replay.table_log import read_log
from surefoot.simulation.policy_specs import Problem, Spec

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
    monkeypatch.setattr(evaluation, "available_memory", lambda: 20 * 10**9)
    log, declared = wide(), Declared(noise=0.5, theta_bound=1.0, baseline_reward=0.3)
    with pytest.raises(
        ConfigError, match=rf"12 matrices of 20,500 x 20,500 .* take 40.3 GB, and 20.0 GB are free: {TOLD}"
    ):
        fit_baseline(log)  # type: ignore[arg-type]
    specs = [Spec("LUCB"), Spec("SafeLUCB", alpha=0.1)]
    with pytest.raises(ConfigError, match=f"6.5 matrices .*{TOLD}"):
        replay(log, specs, declared=declared)  # type: ignore[arg-type]


def test_blocks_of_actions_and_policies_of_your_own_are_not_counted_as_whole_matrices() -> None:
    def make(problem: Problem) -> Any:
        raise NotImplementedError

    guard = guarded(0.1, delta=0.01, ridge=1.0, reward_bounds=(0.0, 1.0))
    assert evaluation.replayed_matrices([Spec("LUCB"), guard, Spec(make, name="mine")], 0) == 16
    assert evaluation.replayed_matrices([Spec("LUCB")], 20) == 3.25


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak of a process")
@pytest.mark.parametrize("spec", [Spec("LUCB"), Spec("SafeLUCB", alpha=0.1)])
@pytest.mark.parametrize("actions", [2, 20])
def test_what_a_replay_takes_is_at_most_what_is_asked_and_no_less_than_a_third(spec: Spec, actions: int) -> None:
    """In a process of its own, whose peak is that of the replay."""
    program = f"""
from pathlib import Path
import numpy as np
from surefoot import Disjoint
from surefoot.replay import Declared, replay
from surefoot.replay.log import ContextLog
from surefoot.replay.evaluation import replayed_matrices
from surefoot.simulation import Spec
rng, (width, n) = np.random.default_rng(0), (2000 // {actions} - 1, 100)
log = ContextLog(
    contexts=rng.random((n, width)) / np.sqrt(width),
    phi=Disjoint(actions={actions}, context_dim=width, context_bound=1.0),
    rewards=rng.random(n), actions=rng.integers({actions}, size=n), baselines=0, propensities=np.full(n, 1 / {actions}),
)
spec = {spec!r}
def peak():
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before = peak()
replay(log, [spec], declared=Declared(noise=0.5, theta_bound=1.0, baseline_reward=0.5))
print((peak() - before) / (8 * log.dim**2 * replayed_matrices([spec], {actions})))
"""
    share = float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
    assert 1 / 3 < share <= 1


def test_sizes_below_a_gigabyte_are_told_in_megabytes() -> None:
    with pytest.raises(ConfigError, match=r"take 40\.3 GB, and 300 MB are free"):
        evaluation.check_memory(wide(), 12, available=300_000_000)  # type: ignore[arg-type]
