"""One experiment on several servers: one ledger that all of them lock, against shards that lease a floor, in one run.

Servers are processes with threads that decide and reward; where they meet is one PostgreSQL. Shards write to SQLite
files of their own. Transactions are PostgreSQL's own count. `python -m bench.leases --guard` measures a guard's bank.
"""

import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from tests.journal.servers import PostgresServer, new_database, running_server

import surefoot
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import open_journal

NAME, THREADS, SERVERS, SECONDS, TURNS = "shop", 8, 3, 4.0, 3
FASTER, MOST_TRANSACTIONS = 3.0, 0.01
EVERY, WARM = 1000, 80
ROWS = [np.abs(np.random.default_rng(seed).normal(size=(10, 4))) * 0.2 for seed in range(64)]
REWARDS = [np.clip(rows @ [0.6, 0.3, 0.5, 0.4], 0.0, 1.0) for rows in ROWS]
QUESTIONS = [{"features": rows, "baseline": 0} for rows in ROWS]
PROPOSALS = [{"baseline": "old", "proposal": "new"}] * len(QUESTIONS)
FORKS = multiprocessing.get_context("spawn")


def new_policy(*, is_guard: bool) -> surefoot.SafeLUCB | surefoot.Guard:
    """SafeLUCB over ten actions in four dimensions, or a guard."""
    if is_guard:
        return surefoot.Guard(alpha=0.1, delta=0.01, reserve=10.0)
    told: dict[str, Any] = {"noise": 0.2, "theta_bound": 1.0, "feature_bound": 2.0, "reward_range": (0.0, 1.0)}
    return surefoot.SafeLUCB(dim=4, alpha=0.1, delta=0.01, **told)


def caller(shop: Experiment, until: float) -> int:
    """Decides and rewards until then; how often."""
    done, is_guard = 0, _is_guard(shop)
    while time.monotonic() < until and is_guard:
        made = shop.decide(baseline="old", proposal="new")
        shop.reward(made.decision_id, 0.7 if made.source == "learner" else 0.6)
        done += 1
    while time.monotonic() < until:
        answer = shop.decide(ROWS[done % len(ROWS)], baseline=0)
        shop.reward(answer.decision_id, float(REWARDS[done % len(ROWS)][answer.action]))
        done += 1
    return done


def _is_guard(shop: Experiment) -> bool:
    return shop.settings.policy in ("Guard", "LeasedGuard")


def serve(open_: Callable[..., Experiment], args: tuple[Any, ...], ready: Any, go: Any, done: Any) -> None:
    """A server: it opens the experiment, waits for the others, and has threads call it."""
    shop = open_(*args)
    # Before it is measured: the first leases are short, since what is learned first is worth most.
    asked: Any = PROPOSALS if _is_guard(shop) else QUESTIONS
    for _ in range(WARM if isinstance(shop, Experiment) else 1):
        shop.reward_all([(one.decision_id, 0.1) for one in shop.decide_all(asked) if not isinstance(one, Exception)])
    ready.release()
    go.wait()
    until = time.monotonic() + SECONDS
    with ThreadPoolExecutor(THREADS) as threads:
        done.put(sum(threads.map(caller, [shop] * THREADS, [until] * THREADS)))


def locked(url: str) -> Experiment:
    """Today's: every decision is a transaction on one ledger."""
    return Experiment.open(open_journal(url), NAME)


def shard(url: str, path: str, name: str) -> Experiment:
    """A shard with a journal of its own."""
    return Experiment.join(open_journal(url), NAME, open_journal(path), shard=name, every=EVERY, seconds=5.0)


def transactions(url: str) -> int:
    """Commits of the database so far."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        found = connection.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        row = found.fetchone()
    assert row is not None
    return int(row[0])


def measured(server: PostgresServer, servers: int, *, is_sharded: bool, is_guard: bool) -> tuple[float, float]:
    """Decisions a second, and transactions for each of them."""
    url = new_database(server)
    with tempfile.TemporaryDirectory() as folder, open_journal(url) as journal:
        if is_sharded:
            create_shared(journal, NAME, new_policy(is_guard=is_guard), mode="guarded", skew=5.0)
        else:
            Experiment.create(journal, NAME, new_policy(is_guard=is_guard), mode="guarded")
        ready, go, done = FORKS.Semaphore(0), FORKS.Event(), FORKS.Queue()
        calls: list[Any] = [(shard, (url, str(Path(folder) / f"{k}.db"), str(k))) for k in range(servers)]
        if not is_sharded:
            calls = [(locked, (url,))] * servers
        processes = [FORKS.Process(target=serve, args=(*call, ready, go, done)) for call in calls]
        for process in processes:
            process.start()
        for _ in processes:
            ready.acquire()
        before = transactions(url)
        go.set()
        decided = sum(done.get() for _ in processes)
        for process in processes:
            process.join()
        return decided / SECONDS, (transactions(url) - before) / decided


def main(*, is_guard: bool = False) -> bool:
    """Print everything; true where every bar holds."""
    setups = {"one ledger, 3 servers": (SERVERS, False), "1 shard": (1, True), "3 shards": (SERVERS, True)}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in setups}
    with running_server() as server:
        for _ in range(TURNS):  # in turn: a noisy neighbour hits all of them
            for name, (servers, is_sharded) in setups.items():
                found[name].append(measured(server, servers, is_sharded=is_sharded, is_guard=is_guard))
    print(f"{'one experiment on PostgreSQL':<32} {'decisions/s':>12} {'transactions per decision':>28}")
    for name, runs in found.items():
        rates, each = zip(*runs, strict=True)
        print(f"{name:<32} {statistics.median(rates):>12,.0f} {statistics.median(each):>28.4f}")
    today = [rate for rate, _ in found["one ledger, 3 servers"]]
    faster = statistics.median(rate / old for (rate, _), old in zip(found["3 shards"], today, strict=True))
    most = statistics.median(each for _, each in found["3 shards"])
    print(f"3 shards against one ledger: {faster:.1f} times the decisions (the bar says {FASTER:g})")
    print(f"transactions per decision: {most:.4f} (the bar says at most {MOST_TRANSACTIONS:g})")
    return faster >= FASTER and most <= MOST_TRANSACTIONS


if __name__ == "__main__":
    sys.exit(0 if main(is_guard="--guard" in sys.argv) else 1)
