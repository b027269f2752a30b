"""The engine against a plain NumPy loop of the same policy, on one core, in one run; and how it scales."""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from bench.plain import PlainCLUCB, TextbookCLUCB
from bench.timing import HEADER, Ratio, compare, one_core
from surefoot.simulation import PaperWorld, Spec, simulate

SPEC, SAFE = Spec("CLUCB", alpha=0.1), Spec("SafeLUCB", alpha=0.1)
RUNS = 4
SAFE_MOST = 2.0  # times what CLUCB takes
APART = 0.9  # of the rate of two processes, that two threads must reach
MEMORY_BAR = 500


def engine_seconds(rounds: int, spec: Spec = SPEC) -> float:
    """Seconds per round of the engine on one core, 100 actions x 4 dims, worlds and noise included."""
    start = time.perf_counter()
    simulate(PaperWorld(), [spec], runs=RUNS, horizon=rounds, threads=1)
    return (time.perf_counter() - start) / (RUNS * rounds)


def plain_seconds(rounds: int, make: type[PlainCLUCB] = PlainCLUCB) -> float:
    """Seconds per round of the plain loop over the same world."""
    realisation = PaperWorld().realisations(0, [0])[0]
    block = realisation.take(rounds)
    rows, means = block.features[0], block.means[0]
    settings = realisation.problem(block).settings(ridge=1.0, delta=0.001)
    policy = make(dim=4, alpha=0.1, **settings)
    baseline = int(block.baselines[0])
    reward = float(means[baseline])
    start = time.perf_counter()
    for draw in block.draws:
        action, is_learner = policy.decide(rows, baseline, reward)
        policy.observe(rows[action], is_learner, means[action] + draw)
    return (time.perf_counter() - start) / rounds


def ratios() -> list[Ratio]:
    """Simulated rounds against the plain loop over the same horizon, both phases included; and SafeLUCB's."""
    what = "one simulated CLUCB round, 100 actions x 4 dims, one core"
    with one_core():
        plain = compare(what, lambda: engine_seconds(40_000), lambda: plain_seconds(40_000), bar=120.0, turns=5)
        textbook = compare(
            "  against NumPy before profiling",
            lambda: engine_seconds(40_000),
            lambda: plain_seconds(40_000, TextbookCLUCB),
            bar=None,
            turns=5,
        )
    safe = compare(
        "one simulated SafeLUCB round, against one of CLUCB (right)",
        lambda: engine_seconds(40_000, SAFE),
        lambda: engine_seconds(40_000),
        bar=1 / SAFE_MOST,
        turns=9,
    )
    return [plain, textbook, safe]


CHILD = """
import sys
from bench.simulation import engine_seconds
engine_seconds(1_000)
print("ready", flush=True)
sys.stdin.readline()
print(engine_seconds(40_000))
"""


def seconds_apart(processes: int) -> float:
    """Seconds per round of engines in processes of their own that run at once: what the machine itself allows."""
    command = [sys.executable, "-c", CHILD]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    return max(float(child.communicate()[0]) for child in children)


def scaling() -> tuple[bool, list[str]]:
    """Threads and rounds: close to linear in both, as far as the machine's cores are independent of each other."""

    def seconds(threads: int, horizon: int) -> float:
        start = time.perf_counter()
        simulate(PaperWorld(), [Spec("LUCB"), SPEC], runs=80, horizon=horizon, threads=threads)
        return time.perf_counter() - start

    seconds(1, 100)
    pairs = [(seconds(1, 20_000), seconds(2, 20_000)) for _ in range(9)]
    speedup = statistics.median(one / two for one, two in pairs)
    apart = [(seconds_apart(1), seconds_apart(2)) for _ in range(7)]
    limit = statistics.median(2.0 * one / two for one, two in apart)
    pairs = [(seconds(2, 10_000), seconds(2, 40_000)) for _ in range(5)]
    growth = statistics.median(long / short for short, long in pairs)
    holds = speedup >= APART * limit
    verdict = f"bar {APART} of the next line's: {'holds' if holds else 'DOES NOT HOLD'}"
    return holds, [
        f"two threads / one thread: {speedup:.2f} times the rate (2 = linear; {os.cpu_count()} cores here; {verdict})",
        f"two separate processes / one: {limit:.2f} times the rate, which is what the machine allows",
        f"four times the rounds take {growth:.2f} times as long (4 = linear)",
    ]


FULL_SCALE = """
import json, resource, time
from surefoot.simulation import PaperWorld, Spec, simulate
grid = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
start = time.perf_counter()
simulate(PaperWorld(), [Spec("LUCB"), *(Spec("CLUCB", alpha=alpha) for alpha in grid)], runs=1_000, horizon=40_000)
print(json.dumps([time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def full_scale() -> tuple[bool, str]:
    """LUCB and seven CLUCB as in the paper, in a process of its own whose machine code is on disk: time and memory."""
    done = subprocess.run([sys.executable, "-c", FULL_SCALE], capture_output=True, text=True, check=True)
    seconds, peak = json.loads(done.stdout)
    what = "LUCB + seven CLUCB, 1,000 runs x 40,000 rounds, one reading"
    verdict = "holds" if peak < MEMORY_BAR else "DOES NOT HOLD"
    return peak < MEMORY_BAR, f"{what}: {seconds:.0f} s, peak {peak:.0f} MB (bar {MEMORY_BAR} MB)  {verdict}"


def main() -> bool:
    """Print everything; true where the bar holds."""
    np.seterr(all="raise")
    found = ratios()
    print(HEADER)
    for ratio in found:
        print(ratio.row())
    print(f"(SafeLUCB's bar says: at most {SAFE_MOST:g} times the time)")
    is_parallel, lines = scaling()
    print("\n".join(lines))
    is_small, line = full_scale()
    print(line)
    return all(ratio.holds for ratio in found) and is_parallel and is_small
