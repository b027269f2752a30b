"""A decision at the edge: in memory and into its file journal, against the service over HTTP, in one run."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.service.servers import Apart
from tests.sharing.edges import ROWS, Shop, environment_of, new_keys, warmed

MOST_MICROSECONDS = 40.0
ROUNDS, TURNS = 3000, 5
PAIR = {"baseline": "big-model", "proposal": "small-model"}


def timed(calls: int, call: Callable[[], Any]) -> list[float]:
    """Microseconds of each call."""
    each = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        each.append(1e6 * (time.perf_counter() - began))
    return each


def measured(shop: Shop) -> tuple[list[float], list[float], list[float]]:
    """Microseconds of decisions and of rewards here, and of decisions over HTTP."""
    shop.create()
    asked: dict[str, Any] = {"features": ROWS, "baseline": 0} if shop.kind == "rows" else PAIR
    rows = [{"id": str(k), "features": row.tolist()} for k, row in enumerate(ROWS)]
    body = {"actions": rows} if shop.kind == "rows" else PAIR
    here, rewards, there, answers = list[float](), list[float](), list[float](), list[Any]()
    with shop.edge("till") as edge:
        warmed(edge)
        for _ in range(TURNS):  # in turn: a noisy neighbour hits both
            here += timed(ROUNDS // TURNS, lambda: answers.append(edge.decide(**asked)))
            rewards += timed(len(answers), lambda: edge.reward(answers.pop(0).decision_id, 0.5))
            there += timed(40, lambda: shop.ask("POST", f"/v1/experiments/{shop.name}/decisions", body))
            edge.leases.renew()
    return here, rewards, there


def main() -> bool:
    """Print everything; true where every bar holds."""
    print(f"{'microseconds':<10} {'decision':>9} {'99%':>8} {'reward':>8} {'over HTTP':>10} {'ratio':>7}")
    is_quick = True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        new_keys(folder)
        environment = environment_of(folder, lease_seconds=0.2)
        # In one process the edge would wait for the server's threads.
        with Apart(folder, environment=environment, database=folder / "own.db") as server:
            for kind in ("rows", "pair"):
                here, rewards, there = measured(Shop(server.address, folder, folder, name=f"shop-{kind}", kind=kind))
                median, service = statistics.median(here), statistics.median(there)
                print(
                    f"{kind:<12} {median:>7.1f} {np.quantile(here, 0.99):>8.1f} {statistics.median(rewards):>8.1f} "
                    f"{service:>10,.0f} {service / median:>7.0f}"
                )
                is_quick &= median < MOST_MICROSECONDS
    print(f"every decision's median below {MOST_MICROSECONDS:g} microseconds: {is_quick}")
    return is_quick
