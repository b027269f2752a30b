"""What a server's memory comes to over very many decisions, with rewards and without: flat, but for what is pending.

Run `python -m bench.memory [DECISIONS]`; 300,000 by default, which takes some minutes.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np

from bench.load import request, send
from bench.service import SETTINGS, answers, free_port

DECISIONS, STEPS, BATCH = 300_000, 10, 500
WARM = 2  # steps until caches and histories have their size
PER_PENDING = 1_000  # bytes that a decision without a reward may keep in memory
FLAT = 16e6  # bytes that may come and go all the same: the allocator's own, and a snapshot in the making


def bodies(count: int, first: int, *, rewarded: bool) -> Iterator[tuple[str, bytes]]:
    """Batches of decisions with ten actions in four dimensions, and then their rewards."""
    rng = np.random.default_rng(first)
    for at in range(first, first + count, BATCH):
        rows = np.abs(rng.normal(size=(10, 4))) * 0.2
        actions = [{"id": f"action-{n}", "features": row.tolist()} for n, row in enumerate(rows)]
        ids = [f"visit-{n}" for n in range(at, at + BATCH)]
        yield (
            "decision-batches",
            json.dumps({"decisions": [{"decision_id": i, "actions": actions} for i in ids]}).encode(),
        )
        if rewarded:
            yield "reward-batches", json.dumps({"rewards": [{"decision_id": i, "value": 0.3} for i in ids]}).encode()


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """A server: its port and its process."""
    port = free_port()
    command = ["-m", "surefoot.cli", "serve", "--database", str(folder / "memory.journal"), "--port", str(port)]
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
    try:
        while not answers(port, "/readyz"):
            time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(60)


def resident(pid: int) -> float:
    """Bytes that the process holds."""
    return float(next(line.split()[1] for line in Path(f"/proc/{pid}/status").open() if line.startswith("VmRSS"))) * 1e3


def grown(decisions: int, *, rewarded: bool) -> tuple[float, list[float]]:
    """Bytes by which memory grew from the first steps to the last, and its size after each."""
    with tempfile.TemporaryDirectory(dir=".") as folder, serving(Path(folder)) as (port, pid):
        told = {"name": "bench", "mode": "guarded", "settings": SETTINGS}
        httpx.post(f"http://127.0.0.1:{port}/v1/experiments", json=told, timeout=120).raise_for_status()
        sizes = list[float]()
        for step in range(STEPS):
            count = decisions // STEPS // BATCH * BATCH
            sent = bodies(count, step * count, rewarded=rewarded)
            requests = (request("POST", f"/v1/experiments/bench/{kind}", body) for kind, body in sent)
            batches = count // BATCH * (2 if rewarded else 1)
            # One after the other where rewards must find their decisions.
            load = asyncio.run(send(port, requests.__next__, connections=1, count=batches))
            assert not load.failed
            sizes.append(resident(pid))
        return sizes[-1] - sizes[WARM - 1], sizes


def main(decisions: int = DECISIONS) -> bool:
    """Print both; true where memory is flat but for what is pending."""
    holds = True
    for rewarded in (True, False):
        extra, sizes = grown(decisions, rewarded=rewarded)
        later = decisions * (STEPS - WARM) // STEPS
        most = FLAT + (0 if rewarded else PER_PENDING * later)
        holds &= extra <= most
        print(
            f"{decisions:,} decisions {'with their rewards' if rewarded else 'without a reward'}: "
            f"{', '.join(f'{size / 1e6:.0f}' for size in sizes)} MB; {extra / 1e6:+.1f} MB over the last {later:,} "
            f"({extra / later:+.0f} bytes each; bar {most / 1e6:.0f} MB)  "
            f"{'holds' if extra <= most else 'DOES NOT HOLD'}"
        )
    return holds


if __name__ == "__main__":
    sys.exit(0 if main(*map(int, sys.argv[1:2])) else 1)
