"""A sweep on a real cluster of this machine that loses a node meanwhile: `cluster_run KIND FOLDER`.

In a process of its own, for a cluster leaves threads and handlers behind. It prints digests and errors as JSON.
"""

import hashlib
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from surefoot.errors import SurefootError
from surefoot.simulation import PaperWorld, Part, Spec, Sweep, run_sweep, simulate
from surefoot.simulation.workers import workers_on

SPECS = [Spec("LUCB"), Spec("CLUCB", alpha=0.1), Spec("SafeLUCB", alpha=0.1)]
NODES = 3
OBJECT_STORE = 80_000_000  # bytes of each node; the least that Ray takes is a little below


def sweep() -> Sweep:
    return Sweep([Part("paper", PaperWorld(), SPECS, runs=200, horizon=1_500, seed=7)])


def digest_of_sweep(folder: Path, **options: Any) -> str:
    run_sweep(sweep(), folder, **options)
    return hashlib.sha256((folder / "results.parquet").read_bytes()).hexdigest()


@contextmanager
def ray_cluster(port: int | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": OBJECT_STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "ray_client_server_port": port})
    others = [cluster.add_node(**node, wait=False) for _ in range(NODES - 1)]
    cluster.wait_for_nodes()
    os.environ["RAY_ADDRESS"] = cluster.address
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        yield (
            f"ray://127.0.0.1:{port}" if port else "ray",
            lambda: cluster.remove_node(others.pop(), allow_graceful=False),
        )
    finally:
        ray.shutdown()
        cluster.shutdown()


def ray_by_client() -> AbstractContextManager[tuple[str, Callable[[], None]]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    return ray_cluster(port)


@contextmanager
def dask_cluster() -> Iterator[tuple[str, Callable[[], None]]]:
    from distributed import LocalCluster

    options: dict[str, Any] = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=NODES - 1, threads_per_worker=1, **options) as cluster:
        pids = [worker.process.pid for worker in cluster.workers.values()]
        # Only once: another one is started in its place.
        yield cluster.scheduler_address.replace("tcp", "dask"), lambda: os.kill(pids.pop(), signal.SIGKILL)


class Loses:
    """Kills a node as soon as something is done, and remembers how much that was."""

    def __init__(self, kill: Callable[[], None]) -> None:
        self.kill, self.share = kill, 0.0

    def __call__(self, done: int, total: int) -> None:
        if done and not self.share:
            self.share = done / total
            self.kill()


def fail(problem: object) -> object:
    raise ValueError("no policy today")


def error_of(on: Any) -> list[str]:
    try:
        simulate(PaperWorld(), [Spec(fail, name="mine")], runs=1, horizon=5, on=on)
    except SurefootError as error:
        return [type(error).__name__, str(error)]
    return []


def main(kind: str, folder: Path) -> None:
    cluster = {"ray": ray_cluster, "ray-client": ray_by_client, "dask": dask_cluster}[kind]
    with cluster() as (on, kill):
        loses = Loses(kill)
        swept = digest_of_sweep(folder / kind, on=on, progress=loses)
        with workers_on(on) as workers:
            error = error_of(workers)
    print(json.dumps({"sweep": swept, "lost_after": loses.share, "error": error}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
