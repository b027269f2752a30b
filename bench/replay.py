"""Replay of a log against a plain NumPy loop over the same rows; and ten million rows in bounded memory."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.plain import PlainCLUCB, PlainLinUCB, StackedLinUCB, settings
from bench.timing import HEADER, Ratio, compare, one_core
from surefoot import Disjoint
from surefoot.replay import ArrayLog, Declared, replay
from surefoot.replay.log import ContextLog
from surefoot.simulation import Spec

ACTIONS = 20
SHAPES = ((4, 8, 20.0), (20, 10, 20.0), (100, 4, 20.0))  # actions, dims, bar
DISJOINT = ((34, 29), (10, 100), (100, 10))  # actions, features of each
ROWS = 10_000_000
GROWTH = 1.25  # the peak of ten million rows over that of one million

WRITE = """
import sys
import numpy as np, polars as pl
rows, rng = int(sys.argv[2]), np.random.default_rng(0)
contexts = rng.random((rows, 4), dtype=np.float32)
actions = rng.integers(0, 20, rows)
rewards = (rng.random(rows) < 0.3 + 0.4 * contexts[:, 0] * (actions / 20)).astype(np.float32)
table = pl.DataFrame({**{f"x{j}": contexts[:, j] for j in range(4)}, "action": actions.astype(np.int32),
                      "reward": rewards, "propensity": np.full(rows, 0.05)})
table.write_parquet(sys.argv[1], row_group_size=250_000)
"""
READ = """
import json, re, sys, time
from pathlib import Path
from surefoot.replay import Declared, read_log, replay
from surefoot.simulation import Spec
peak = 0
def look(*_):
    # Memory of its own: pages of the mapped file belong to the system, which takes them back when it needs them.
    global peak
    peak = max(peak, int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]))
start = time.perf_counter()
features = {str(a): (a / 20,) for a in range(20)}
log = read_log(sys.argv[1], baseline="3", action_features=features)
read = time.perf_counter()
(found,) = replay(log, [Spec("CLUCB", alpha=0.1)], declared=Declared(0.5, 2.0, 0.33), evaluator="importance",
                  progress=look)
print(json.dumps({"rows": found.rows, "dim": log.dim, "survey": read - start, "replay": time.perf_counter() - read,
                  "peak": peak / 1024}))
"""


def ratio(actions: int, dim: int, bar: float) -> Ratio:
    """Rounds of CLUCB over a log in memory, every one decided and learned from, against the plain loop."""
    rng = np.random.default_rng(0)
    features = np.abs(rng.normal(size=(20_000, actions, dim)))
    theta = np.abs(rng.normal(size=dim))
    rewards = features @ (theta / np.linalg.norm(theta))
    log = ArrayLog(features=features, actions=0, rewards=rewards, baselines=3)
    told = settings(dim, log.feature_bound)
    spec = Spec("CLUCB", alpha=told["alpha"], delta=told["delta"])
    declared = Declared(noise=told["noise"], theta_bound=told["theta_bound"], baseline_reward=1.0)

    def ours() -> float:
        start = time.perf_counter()
        replay(log, [spec], declared=declared, evaluator="full")
        return (time.perf_counter() - start) / len(features)

    def plain() -> float:
        policy, rounds = PlainCLUCB(**told), 2_000
        start = time.perf_counter()
        for t in range(rounds):
            action, is_learner = policy.decide(features[t], 3, 1.0)
            policy.observe(features[t, action], is_learner, float(rewards[t, action]))
        return (time.perf_counter() - start) / rounds

    with one_core():
        return compare(f"one replayed CLUCB round, {actions} actions x {dim} dims", ours, plain, bar=bar, turns=7)


def disjoint(actions: int, width: int, peer: type[PlainLinUCB] | type[StackedLinUCB]) -> Ratio:
    """Rounds of LUCB with one theta per action, feature rows included, against LinUCB with one inverse per action."""
    rng, rounds = np.random.default_rng(0), 600
    contexts = rng.random((rounds, width - 1)) / np.sqrt(width)
    rewards = (rng.random((rounds, actions)) < 0.3).astype(np.float64)
    phi = Disjoint(actions=actions, context_dim=width - 1, context_bound=1.0)
    log = ContextLog(contexts=contexts, phi=phi, rewards=rewards, baselines=0)
    declared = Declared(noise=0.5, theta_bound=1.0, baseline_reward=0.3)

    def ours() -> float:
        start = time.process_time()
        replay(log, [Spec("LUCB")], declared=declared, evaluator="full")
        return (time.process_time() - start) / rounds

    def plain() -> float:
        policy, start = peer(actions=actions, dim=width, width=1.0), time.process_time()
        for context, paid in zip(contexts, rewards, strict=True):
            row = np.append(1.0, context)
            action = policy.decide(row)
            policy.observe(action, row, float(paid[action]))
        return (time.process_time() - start) / rounds

    with one_core():
        beside = "in one product" if peer is StackedLinUCB else "action by action"
        return compare(f"LUCB, one theta for each of {actions} x {width}; LinUCB {beside}", ours, plain, bar=None)


def large(rows: int = ROWS) -> tuple[bool, list[str]]:
    """A Parquet log of many rows, read and replayed in a process of its own; its memory must not grow with the rows."""
    lines, peaks = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in (rows // 10, rows):
            path = Path(folder) / f"{number}.parquet"
            subprocess.run([sys.executable, "-c", WRITE, str(path), str(number)], check=True)
            done = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            peaks.append(found["peak"])
            size = f"{found['rows']:>12,} rows of {ACTIONS} actions x {found['dim']} dims"
            taken = f"survey {found['survey']:.1f} s, replay {found['replay']:.1f} s"
            lines.append(f"{size}: {taken}, peak {found['peak']:,.0f} MB")
            path.unlink()
    growth = peaks[1] / peaks[0]
    lines.append(f"ten times the rows take {growth:.2f} times the memory (at most {GROWTH} counts as bounded)")
    return growth <= GROWTH, lines


def main() -> bool:
    """Print everything; true where every bar holds."""
    found = [ratio(*shape) for shape in SHAPES] + [
        disjoint(*shape, peer) for shape in DISJOINT for peer in (PlainLinUCB, StackedLinUCB)
    ]
    print(HEADER)
    for one in found:
        print(one.row())
    is_bounded, lines = large()
    print("\n".join(lines))
    return all(one.holds for one in found) and is_bounded


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
