"""A decision at the edge: in memory and into the log, against the service over HTTP on the same machine, in one run."""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from tests.edge.edges import new_edge, new_keys, settings_of
from tests.service.servers import running

from surefoot.arrays import Matrix
from surefoot.edge import Edge, GuardEdge

MOST_MICROSECONDS = 50.0
ROUNDS, WARM, TURNS = 3000, 3000, 5
SIZES = [(4, 5), (4, 10), (10, 10), (20, 20)]


def world(dim: int, actions: int) -> tuple[list[Matrix], list[Matrix]]:
    """Rows and their means."""
    rng = np.random.default_rng(dim)
    rows = [np.abs(rng.normal(size=(actions, dim))) * (0.4 / dim**0.5) for _ in range(64)]
    theta = rng.uniform(0.2, 0.8, size=dim) / dim**0.5 * 1.5
    return rows, [np.clip(one @ theta, 0.0, 1.0) for one in rows]


def timed(calls: int, call: Callable[[int], Any]) -> list[float]:
    """Microseconds of each call."""
    found = []
    for n in range(calls):
        began = time.perf_counter()
        call(n)
        found.append(1e6 * (time.perf_counter() - began))
    return found


def warm(edge: Edge, rows: list[Matrix], means: list[Matrix]) -> None:
    """Rounds until the learner is free."""
    for n in range(WARM):
        made = edge.decide(rows[n % 64], baseline=0)
        edge.reward(made.decision_id, float(means[n % 64][made.action]))
        if (n + 1) % 100 == 0:
            edge.renew()


def measured(address: str, folder: Path, dim: int, actions: int) -> tuple[list[float], list[float], float]:
    """Microseconds of decisions here and over HTTP, and the learner's share."""
    rows, means = world(dim, actions)
    told = {"alpha": 0.1, "delta": 0.01, "noise": 0.2, "theta_bound": 1.0, "feature_bound": 2.0, "reward_range": [0, 1]}
    name = f"shop{dim}x{actions}"
    body = {"name": name, "settings": {"dim": dim, **told}, "mode": "guarded", "ledger": "sharded"}
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        assert client.post("/v1/experiments", json=body).status_code == 201
        asked = [{"actions": [{"id": str(k), "features": row.tolist()} for k, row in enumerate(one)]} for one in rows]
        path = f"/v1/experiments/{name}/decisions"
        here, there, learner = list[float](), list[float](), 0
        with new_edge(address, folder, f"till{dim}x{actions}", experiment=name) as edge:
            warm(edge, rows, means)
            for _ in range(TURNS):  # in turn: a noisy neighbour hits both
                made = [edge.decide(rows[n % 64], baseline=0) for n in range(100)]
                learner += sum(one.source == "learner" for one in made)
                here += timed(ROUNDS // TURNS, lambda n: edge.decide(rows[n % 64], baseline=0))
                there += timed(40, lambda n: client.post(path, json=asked[n % 64]).raise_for_status())
    return here, there, learner / (100 * TURNS)


def measured_guard(address: str, folder: Path) -> tuple[list[float], list[float], float]:
    """The same of a guard: microseconds of coins here and over HTTP, and the proposal's share."""
    name, told = "models", {"alpha": 0.1, "delta": 0.05, "reserve": 1000.0, "ramp": "gate"}
    body = {"name": name, "policy": "Guard", "settings": told, "mode": "guarded", "ledger": "sharded"}
    pair: dict[str, Any] = {"baseline": "big-model", "proposal": "small-model"}
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        assert client.post("/v1/experiments", json=body).status_code == 201
        path, here, there, learner = f"/v1/experiments/{name}/decisions", list[float](), list[float](), 0
        places: dict[str, Any] = {"log": folder / "app.log", "key": folder / "head.pub"}
        with GuardEdge(address, experiment=name, shard="app", in_background=False, **places) as edge:
            for _ in range(TURNS):
                learner += sum(edge.decide(**pair).source == "learner" for _ in range(100))
                here += timed(ROUNDS // TURNS, lambda _: edge.decide(**pair))
                there += timed(40, lambda _: client.post(path, json=pair).raise_for_status())
                edge.renew()
    return here, there, learner / (100 * TURNS)


def main() -> bool:
    """Print everything; true where every bar holds."""
    print(f"{'microseconds of a decision':<28} {'median':>8} {'99%':>8} {'over HTTP':>10} {'ratio':>7} {'learner':>8}")
    is_quick = True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        new_keys(folder)
        with running(settings_of(folder, lease_seconds=0.2)) as address:
            calls: dict[str, Any] = {
                f"{k} actions, {dim} dimensions": partial(measured, dim=dim, actions=k) for dim, k in SIZES
            }
            for name, call in {**calls, "a guard": measured_guard}.items():
                here, there, learner = call(address, folder)
                median, service = statistics.median(here), statistics.median(there)
                print(
                    f"{name:<28} {median:>8.1f} {np.quantile(here, 0.99):>8.1f} {service:>10,.0f} "
                    f"{service / median:>7.0f} {learner:>8.2f}"
                )
                is_quick &= median < MOST_MICROSECONDS
    print(f"every median below {MOST_MICROSECONDS:g} microseconds: {is_quick}")
    return is_quick
