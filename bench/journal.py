"""The journal on a real disk: shared flushes, a file journal, and a million events opened and read."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.timing import HEADER, Ratio, at_once, compare, seconds_per_round
from surefoot.journal import Journal, Transaction, canonical, open_journal

CALLERS, EVENTS, TAIL = 32, 1_000_000, 10_000
NAME = "bench"
# A decision over five actions in four dimensions, as long as those of an experiment.
PAYLOAD = canonical(
    {"action": 3, "features": [[0.1234567890123, 0.2, 0.3, 0.4]] * 5, "guaranteed": 12.5, "source": "x"}
)
OPEN_BAR, MEMORY_BAR, FILE_BAR = 10.0, 1.2, 15.0


def append_one_by_one(journal: Journal, prefix: str) -> Callable[[int], None]:
    """A caller who waits for each event to be durable before the next."""

    def play(rounds: int) -> None:
        for n in range(rounds):
            key = f"{prefix}-{time.perf_counter_ns()}-{n}"
            append = partial(Transaction.append, kind="decision", payload=PAYLOAD, time=0.0, key=key)
            journal.transact(NAME, append, keys=[key])

    return play


def shared_flushes(folder: Path) -> Ratio:
    """Durable transactions per second of 32 callers, against one caller and one flush each."""
    with open_journal(folder / "flushes.journal") as journal:
        journal.create(NAME, b"{}", time=0.0)
        callers = [append_one_by_one(journal, str(caller)) for caller in range(CALLERS)]
        return compare(
            f"one durable transaction on SQLite, {CALLERS} callers against one",
            lambda: seconds_per_round(lambda rounds: at_once(callers, rounds), 200 * CALLERS),
            lambda: seconds_per_round(append_one_by_one(journal, "alone"), 400),
            bar=4.0,
        )


def file_microseconds(folder: Path) -> float:
    """Median microseconds of a transaction of one event in a file journal without sync, as an edge decides on."""
    with open_journal(folder / "app.log", sync=False) as journal:
        journal.create(NAME, b"{}", time=0.0)
        play = append_one_by_one(journal, "edge")
        play(2_000)
        return 1e6 * statistics.median(seconds_per_round(play, 1) for _ in range(20_000))


def write_events(path: Path, events: int) -> None:
    """A journal whose newest snapshot stands TAIL events before its end."""

    def batch(transaction: Transaction) -> None:
        for _ in range(1_000):
            number = transaction.head.number
            transaction.append("decision", PAYLOAD, time=0.0, key=f"d{number}")

    with open_journal(path) as journal:
        journal.create(NAME, b"{}", time=0.0)
        for done in range(0, events, 1_000):
            if done == events - TAIL:
                journal.transact(NAME, snapshot)
            journal.transact(NAME, batch)


def snapshot(transaction: Transaction) -> None:
    """A state of half a megabyte, which the chain vouches for."""
    transaction.append("snapshot", canonical({"state": transaction.attach(bytes(500_000))}), time=0.0)


def open_through_snapshot(path: Path) -> float:
    """Seconds to open the journal, fetch the newest snapshot, and read and check the events after it."""
    start = time.perf_counter()
    with open_journal(path) as journal:
        newest = journal.latest(NAME, "snapshot")
        assert newest is not None
        assert journal.attachment(NAME, newest.value()["state"]) is not None
        assert sum(1 for _ in journal.read(NAME, newest.number)) == TAIL
    return time.perf_counter() - start


READ_ALL = """
import resource, sys
from surefoot.journal import open_journal
with open_journal(sys.argv[1], read_only=True) as journal:
    count = sum(1 for event in journal.read("bench"))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def memory_of_reading(path: Path) -> float:
    """Peak memory, in megabytes, of a process that reads and checks every event."""
    output = subprocess.run([sys.executable, "-c", READ_ALL, str(path)], capture_output=True, text=True, check=True)
    return int(output.stdout.split()[1]) / 1024


def main() -> bool:
    """Measure on the disk of the current folder, print, and tell whether every bar holds."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        ratio = shared_flushes(folder)
        print(HEADER, ratio.row(), sep="\n")
        print(f"durable transactions per second: {1 / ratio.ours:,.0f} together, {1 / ratio.theirs:,.0f} one by one")
        microseconds = file_microseconds(folder)
        print(f"a transaction of {len(PAYLOAD)} bytes in a file without sync: {microseconds:.1f} us (bar {FILE_BAR:g})")
        start = time.perf_counter()
        write_events(folder / "long.journal", EVENTS)
        write_events(folder / "short.journal", EVENTS // 10)
        size = (folder / "long.journal").stat().st_size / 2**20
        print(f"{EVENTS:,} events, {size:,.0f} MiB, written in {time.perf_counter() - start:.0f} s")
        seconds = open_through_snapshot(folder / "long.journal")
        print(f"opened through its snapshot, {TAIL:,} events after it: {seconds:.2f} s (bar {OPEN_BAR:g} s)")
        long, short = (memory_of_reading(folder / f"{name}.journal") for name in ("long", "short"))
        print(f"peak memory of reading all: {long:.0f} MiB, of a tenth: {short:.0f} MiB (bar {MEMORY_BAR:g} times)")
    return ratio.holds and microseconds <= FILE_BAR and seconds <= OPEN_BAR and long <= MEMORY_BAR * short


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
