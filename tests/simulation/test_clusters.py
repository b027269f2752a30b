"""Real clusters on this machine, Ray's of three nodes and Dask's of three workers, that lose one on the way."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import WorkerError
from surefoot.simulation import PaperWorld, Spec, simulate
from tests.simulation.cluster_run import digest_of_replay, digest_of_sweep, write_log


@pytest.mark.parametrize("kind", ["ray", "dask"])
def test_a_sweep_and_a_replay_that_lose_a_node_have_the_digests_of_one_process(kind: str, tmp_path: Path) -> None:
    paths = write_log(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.cluster_run", kind, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert all(0 < share < 1 for share in found["lost_after"]), "nodes must be lost in the middle"
    assert found["sweep"] == digest_of_sweep(tmp_path / "here")
    assert found["replay"] == digest_of_replay(paths)
    assert found["error"] == ["PolicyError", "No policy could be made for 'mine': no policy today"]


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(
            WorkerError, match=r"`on` must be a Dask scheduler that answers, but dask://127.0.0.1:9 does"
        ),
    ):
        simulate(PaperWorld(), [Spec("LUCB")], runs=1, horizon=5, on="dask://127.0.0.1:9")
