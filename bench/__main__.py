"""`python -m bench` measures everything, `python -m bench safety` one of them; the exit code tells if all bars hold."""

import importlib
import sys

ROOMS = (
    "core", "simulation", "safety", "rare", "journal", "experiment", "audit", "replay", "service",
    "overload", "guard", "guarded_experiment", "gateway", "cluster", "leases", "edge", "bill",
)  # fmt: skip

results = [importlib.import_module(f"bench.{room}").main() for room in sys.argv[1:] or ROOMS]
sys.exit(0 if all(results) else 1)
