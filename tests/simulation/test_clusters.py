"""Real clusters on this machine: Ray with three nodes, Dask with three workers; one of them is killed on the way."""

import hashlib
from pathlib import Path

from surefoot.simulation import PaperWorld, Part, Spec, Sweep

SPECS = [Spec("LUCB"), Spec("CLUCB", alpha=0.1), Spec("SafeLUCB", alpha=0.1)]
OBJECT_STORE = 80_000_000  # bytes, of each node


def sweep() -> Sweep:
    return Sweep([Part("paper", PaperWorld(), SPECS, runs=300, horizon=2_000, seed=7)])


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "results.parquet").read_bytes()).hexdigest()
