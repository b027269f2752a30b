"""What a cluster costs on one machine: the same sweep of about a minute on threads, on Ray and on Dask, in one run.

`python -m bench.cluster ray dask dask-quiet`. Threads are measured before and after the clusters, and ratios are to the
mean of both. The bar is on seconds of the processor, of this program and of all that it started, for those on the clock
depend on who else uses the machine; the start of a cluster is measured apart.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from surefoot.simulation import PaperWorld, Part, Spec, Sweep, run_sweep
from surefoot.simulation.workers import Where, workers_on

SECONDS = 60.0  # of the sweep on threads
TRIAL = 160  # runs by which the minute is guessed
BAR = 1.10
SPECS = [Spec("LUCB"), Spec("CLUCB", alpha=0.1), Spec("CLUCB2", alpha=0.1), Spec("SafeLUCB", alpha=0.1)]


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock and of processors, for the start of the workers and for the sweep."""

    start: float
    clock: float
    processor: float


def sweep(runs: int) -> Sweep:
    return Sweep([Part("paper", PaperWorld(), SPECS, runs=runs, horizon=40_000)])


def processor_seconds() -> float:
    """Of this program, and of whatever it started that still runs."""
    whole = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        whole += times.user + times.system
    return whole


def measured(on: Where, runs: int) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        with workers_on(on) as executor:
            started, used = time.perf_counter(), processor_seconds()
            run_sweep(sweep(runs), Path(folder) / "sweep", on=executor)
            return Cost(started - begun, time.perf_counter() - started, processor_seconds() - used)


QUIET = {  # as docs/cluster.md recommends
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "10s",
}


@contextmanager
def dask_address(settings: Mapping[str, Any] | None = None) -> Iterator[str]:
    import dask
    from distributed import LocalCluster

    local = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with dask.config.set(settings or {}), LocalCluster(**local) as cluster:
        yield cluster.scheduler_address.replace("tcp", "dask")


@contextmanager
def ray_address() -> Iterator[str]:
    yield "ray"


PLACES: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "ray": ray_address,
    "dask": dask_address,
    "dask-quiet": lambda: dask_address(QUIET),
}


def main() -> bool:
    return report(["ray"])


def report(kinds: list[str]) -> bool:
    trial = measured(None, TRIAL)
    runs = max(1, round(SECONDS / trial.clock)) * TRIAL
    before = measured(None, runs)
    costs = {}
    for kind in kinds:
        with PLACES[kind]() as address:
            costs[kind] = measured(address, runs)
    after = measured(None, runs)
    clock, processor = (before.clock + after.clock) / 2, (before.processor + after.processor) / 2
    print(f"{runs} runs of {len(SPECS)} policies x 40,000 rounds; chunks of 20 runs")
    print(f"{'':<12}{'start':>8}{'clock':>9}{'ratio':>8}{'processor':>11}{'ratio':>8}{'bar':>7}")
    holds = []
    for kind, cost in {"threads": before, **costs, "threads again": after}.items():
        ratio = cost.processor / processor
        told = f"{kind:<14}{cost.start:>6.1f}{cost.clock:>9.1f}{cost.clock / clock:>8.2f}"
        told += f"{cost.processor:>11.1f}{ratio:>8.2f}"
        if kind in costs:
            holds.append(ratio < BAR)
            told += f"{BAR:>7.2f}  {'holds' if holds[-1] else 'DOES NOT HOLD'}"
        print(told)
    return all(holds)


if __name__ == "__main__":
    sys.exit(0 if report(sys.argv[1:] or ["ray", "dask", "dask-quiet"]) else 1)
