"""What a decision in process adds to a request of a LiteLLM gateway: the routing plugin alone, without proxy or model.

By journal: in memory, SQLite whose commits do not wait for the disk, and SQLite as it is.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import surefoot
from surefoot.arrays import Matrix
from surefoot.integrations.litellm import GuardedModels
from surefoot.journal import Journal, open_journal
from surefoot.journal.sqlite import SqliteJournal

WARM, REQUESTS, TURNS = 300, 1_000, 7
BAR = 1e-3  # seconds of the slowest of a hundred, where no disk is waited for
METRICS = {"quality": surefoot.floor(0, 1, alpha=0.05), "cost": surefoot.ceiling(0, 0.1, alpha=0.1, reserve=1)}


def journals(folder: Path) -> Iterator[tuple[str, Journal, float]]:
    """Each with the bar of its 99th percentile."""
    yield "memory:", open_journal("memory:"), BAR
    unflushed = SqliteJournal(folder / "unflushed.journal")
    unflushed._file.connection.execute("PRAGMA synchronous = OFF")
    yield "SQLite without the flush", unflushed, BAR
    yield "SQLite", open_journal(folder / "chat.journal"), np.inf


def seconds(journal: Journal) -> Matrix:
    """Of each request, by turn; its rewards come in between, and are not counted."""
    guard = surefoot.Guard(delta=0.05, goal="save", settle_after=1000, metrics=METRICS)
    chat = surefoot.Experiment.create(journal, "chat", guard, mode="guarded")
    models = GuardedModels(chat, baseline="big", proposal="small", deadline=60.0)
    taken = list[float]()

    async def requests() -> None:
        for _ in range(WARM + TURNS * REQUESTS):
            request = SimpleNamespace(candidate_models=["big", "small"], metadata={"model_group": "chat"}, signals={})
            began = time.perf_counter()
            await models.run(request)
            taken.append(time.perf_counter() - began)
            await models.reward(request.signals["surefoot"]["decision_id"], {"quality": 0.9, "cost": 0.01})

    asyncio.run(requests())
    return np.array(taken[WARM:]).reshape(TURNS, REQUESTS)


def main() -> bool:
    """Print the percentiles; true where every bar holds."""
    held = list[bool]()
    print(f"{'a decision of GuardedModels (milliseconds)':<50} {'p50':>8} {'p99':>8} {'bar':>6}")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for name, journal, bar in journals(Path(folder)):
            with journal:
                p50, p99 = np.percentile(seconds(journal), [50, 99], axis=1).min(axis=1)  # neighbours only add
            held.append(bool(p99 < bar))
            limit = f"{1e3 * bar:>6.1f}  {'holds' if held[-1] else 'DOES NOT HOLD'}" if bar < np.inf else ""
            print(f"{name:<50} {1e3 * p50:>8.3f} {1e3 * p99:>8.3f} {limit}".rstrip())
    return all(held)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
