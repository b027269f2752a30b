"""Experiments on a real disk: shared flushes, a million events opened through a snapshot, and flat memory."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import surefoot
from bench.timing import HEADER, at_once, compare, seconds_per_round
from surefoot.experiment import Answer, AsyncExperiment, Experiment
from surefoot.experiment.experiment import SNAPSHOT_EVERY
from surefoot.journal import Journal, Transaction, open_journal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.rounds import events
from surefoot.rounds.format import encode

CALLERS, EVENTS, TAIL, PAGE = 32, 1_000_000, 2_000, 1_000
NAME = "bench"
OPEN_BAR, MEMORY_BAR = 10.0, 1.2
SLOW_FLUSH = 2e-3
ROWS = [np.abs(np.random.default_rng(seed).normal(size=(10, 4))) * 0.2 for seed in range(64)]
REWARDS = [np.clip(rows @ [0.6, 0.3, 0.5, 0.4], 0.0, 1.0) for rows in ROWS]


def new_experiment(journal: Journal, *, snapshot_every: int = SNAPSHOT_EVERY) -> Experiment:
    """SafeLUCB over ten actions in four dimensions."""
    policy = surefoot.SafeLUCB(
        dim=4, alpha=0.1, delta=0.01, noise=0.2, theta_bound=1.0, feature_bound=2.0, reward_range=(0.0, 1.0)
    )
    return Experiment.create(journal, NAME, policy, mode="guarded", snapshot_every=snapshot_every)


class Visitors:
    """Who calls an experiment. Rewards are handed in between the turns that are measured, so that it is one in use."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment, self._rewards = experiment, list[tuple[str, float]]()

    def one_by_one(self, rounds: int) -> None:
        """A caller who waits for each decision."""
        for n in range(rounds):
            self._rewarded(n, self._experiment.decide(ROWS[n % len(ROWS)], baseline=0))

    def in_threads(self, rounds: int) -> None:
        """32 such callers, each in a thread of its own."""
        at_once([self.one_by_one] * CALLERS, rounds)

    def in_a_loop(self, rounds: int) -> None:
        """32 such callers in one event loop."""
        asyncio.run(self._await_all(rounds))

    def seconds(self, play: Callable[[int], None], rounds: int) -> float:
        """Wall time of a round; what it earned is handed in afterwards."""
        taken = seconds_per_round(play, rounds)
        while self._rewards:
            self._experiment.reward_all(self._rewards[:PAGE])
            del self._rewards[:PAGE]
        return taken

    async def _await_all(self, rounds: int) -> None:
        async with AsyncExperiment(self._experiment) as shop:
            await asyncio.gather(*(self._await_each(shop, rounds // CALLERS) for _ in range(CALLERS)))

    async def _await_each(self, shop: AsyncExperiment, rounds: int) -> None:
        for n in range(rounds):
            self._rewarded(n, await shop.decide(ROWS[n % len(ROWS)], baseline=0))

    def _rewarded(self, n: int, answer: Answer) -> None:
        self._rewards.append((answer.decision_id, float(REWARDS[n % len(ROWS)][answer.action])))


def shared_flushes(folder: Path) -> bool:
    """Durable decisions of 32 callers, against one caller and one flush each."""
    with open_journal(folder / "flushes.journal") as journal:
        visitors = Visitors(new_experiment(journal))
        visitors.seconds(visitors.in_threads, 1_000)
        in_a_loop, in_threads = (
            compare(
                f"a durable decision on SQLite, {CALLERS} callers in an event loop",
                lambda play=play: visitors.seconds(play, 40 * CALLERS),  # type: ignore[misc]
                lambda: visitors.seconds(visitors.one_by_one, 200),
                bar=4.0,
                turns=25,  # a disk is noisier than a processor
            )
            for play in (visitors.in_a_loop, visitors.in_threads)
        )
    print(
        f"{HEADER.replace('surefoot', '32 callers').replace('   plain', 'one alone')}\n{in_a_loop.row()}\n"
        f"  for comparison, in threads, where each caller must be woken on its own: {in_threads.ratio:.2f} times"
    )
    return in_a_loop.holds


class SlowDisk(SqliteJournal):
    """The same journal on a disk that takes longer to flush, as most do."""

    def _flush(self) -> None:
        time.sleep(SLOW_FLUSH)
        super()._flush()


def slow_flushes(folder: Path) -> str:
    """The same ratio where a flush is dear: there the shared ones count, here the work on a decision does."""
    with SlowDisk(folder / "slow.journal") as journal:
        visitors = Visitors(new_experiment(journal))
        visitors.seconds(visitors.in_threads, 1_000)
        one = visitors.seconds(visitors.one_by_one, 200)
        ways = {"in an event loop": visitors.in_a_loop, "in threads": visitors.in_threads}
        ratios = {way: one / visitors.seconds(play, 40 * CALLERS) for way, play in ways.items()}
    told = ", ".join(f"{ratio:.1f} times {way}" for way, ratio in ratios.items())
    return f"  for comparison, with {SLOW_FLUSH * 1e3:g} ms more for each flush: {told}"


def visit(experiment: Experiment, rounds: int) -> None:
    """Decisions and their rewards, in batches."""
    for done in range(0, rounds, 100):
        requests = [{"features": ROWS[n % len(ROWS)], "baseline": 0} for n in range(done, done + 100)]
        answers = [answer for answer in experiment.decide_all(requests) if not isinstance(answer, Exception)]
        experiment.reward_all([(answer.decision_id, 0.3) for answer in answers])


def refusals(transaction: Transaction) -> None:
    """A page of rewards of decisions that nobody made: the quickest events to write that are events all the same."""
    for _ in range(PAGE):
        name = f"nobody-{transaction.head.number}"
        record = events.Reward(decision_id=name, values={events.METRIC: 0.5}, refused="unknown")
        transaction.append(events.REWARD, encode(record), time=time.time())


def write_experiment(path: Path, events: int) -> float:
    """An experiment of that many events whose newest snapshot is TAIL events old; seconds to replay it without one."""
    with open_journal(path) as journal:
        visit(new_experiment(journal, snapshot_every=0), 1_000)
        while journal.head(NAME).number < events - TAIL:
            journal.transact(NAME, refusals)
        began = time.perf_counter()
        experiment = Experiment.open(journal, NAME, snapshot_every=0)
        replay = time.perf_counter() - began
        experiment.snapshot()
        visit(experiment, TAIL // 2)
        return replay


OPENED = """
import resource, sys, time
from bench.experiment import NAME, visit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
began = time.perf_counter()
journal = open_journal(sys.argv[1])
experiment = Experiment.open(journal, NAME)
taken = time.perf_counter() - began
for rounds in map(int, sys.argv[2:]):
    visit(experiment, rounds)
    print(taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def opened_apart(path: Path, *rounds: int) -> list[tuple[float, float]]:
    """In a fresh process: seconds to open the experiment, and megabytes after each so many rounds more."""
    command = [sys.executable, "-W", "ignore", "-c", OPENED, str(path), *map(str, rounds)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    return [(float(seconds), float(size)) for seconds, _, size in (line.partition(" ") for line in lines if line)]


def open_large(folder: Path) -> bool:
    """Opening a million events through a snapshot, and the memory that this and going on takes."""
    write_experiment(folder / "small.journal", 10_000)
    replay = write_experiment(folder / "large.journal", EVENTS)
    _, small = opened_apart(folder / "small.journal", 500)[0]
    opened, large = opened_apart(folder / "large.journal", 500)[0]
    (_, early), (_, late) = opened_apart(folder / "small.journal", 2_000, 8_000)
    is_quick, is_flat, stays_flat = opened < OPEN_BAR, large < MEMORY_BAR * small, late < MEMORY_BAR * early
    print(
        f"opening {EVENTS:,} events through a snapshot: {opened:.2f} s (bar {OPEN_BAR:g} s)  {_verdict(is_quick)}\n"
        f"  for comparison, replaying them all without one: {replay:.1f} s\n"
        f"memory of a process that opens 1,000,000 / 10,000 events: {large:.0f} / {small:.0f} MB = {large / small:.2f} "
        f"(bar {MEMORY_BAR:g})  {_verdict(is_flat)}\n"
        f"memory after 10,000 / 2,000 rounds with their rewards: {late:.0f} / {early:.0f} MB = {late / early:.2f} "
        f"(bar {MEMORY_BAR:g})  {_verdict(stays_flat)}"
    )
    return is_quick and is_flat and stays_flat


def _verdict(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


def main() -> bool:
    """Print everything; true where every bar holds."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        shares = shared_flushes(Path(folder))
        print(slow_flushes(Path(folder)))
        return open_large(Path(folder)) and shares


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
