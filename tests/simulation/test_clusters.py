"""Real clusters on this machine, Ray's of three nodes and Dask's of three workers, that lose one on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import WorkerError
from surefoot.simulation import PaperWorld, Spec, simulate
from tests.simulation.cluster_run import digest_of_sweep


@pytest.mark.parametrize(
    "kind", ["dask", pytest.param("ray", marks=pytest.mark.long), pytest.param("ray-client", marks=pytest.mark.long)]
)
def test_a_sweep_that_loses_a_node_has_the_digest_of_one_process(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.cluster_run", kind, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert 0 < found["lost_after"] < 1, "a node must be lost in the middle"
    assert found["sweep"] == digest_of_sweep(tmp_path / "here")
    assert found["error"] == ["PolicyError", "No policy could be made for 'mine': no policy today"]


def test_a_scheduler_that_does_not_answer_is_named() -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(WorkerError, match=r"`on` must be a Dask scheduler that answers, but dask://127.0.0.1:9 does"),
    ):
        simulate(PaperWorld(), [Spec("LUCB")], runs=1, horizon=5, on="dask://127.0.0.1:9")


@pytest.mark.long
def test_ctrl_c_on_ray_leaves_a_folder_that_continues_here(tmp_path: Path) -> None:
    text = 'runs = 600\nhorizon = 6_000\nworlds.w = {kind = "paper"}\n'
    (tmp_path / "s.toml").write_text(text + 'policies = [{policy = "LUCB"}, {policy = "CLUCB", alpha = 0.1}]\n')
    out = tmp_path / "out"
    command = [sys.executable, "-m", "surefoot", "simulate", str(tmp_path / "s.toml"), "--out"]
    process = subprocess.Popen([*command, str(out), "--on", "ray"], start_new_session=True)
    deadline = time.monotonic() + 120
    while len(list(out.glob("cells/[!.]*"))) < 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(60) == 130
    assert 2 <= len(list(out.glob("cells/[!.]*"))) < 30, "it must have been stopped in the middle"
    for folder in (out, tmp_path / "whole"):
        subprocess.run([*command, str(folder), "--on", "local"], check=True, timeout=240)
    assert (out / "results.parquet").read_bytes() == (tmp_path / "whole" / "results.parquet").read_bytes()
