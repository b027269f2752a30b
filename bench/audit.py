"""How the time of an audit grows: twice the decisions must take twice the time, not four times."""

import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import Journal, open_journal

DECISIONS, TURNS, BATCH = 4_000, 5, 200
MOST = 2.4  # a quadratic part would show as a ratio towards 4
DIM, ACTIONS = 4, 10


def write(journal: Journal, name: str, decisions: int) -> None:
    """An honest experiment: fresh rows every round, rewards a batch late."""
    rng, theta = np.random.default_rng(1), np.array([0.5, 0.3, 0.2, 0.1])
    told: dict[str, Any] = {"dim": DIM, "delta": 0.01, "noise": 0.1, "theta_bound": 1.0, "feature_bound": 2.0}
    policy = surefoot.SafeLUCB(alpha=0.05, reward_range=(0.0, 1.1), **told)
    experiment = Experiment.create(journal, name, policy, mode="guarded")
    for _ in range(decisions // BATCH):
        offered = [rng.uniform(0.0, 1.0, size=(ACTIONS, DIM)) for _ in range(BATCH)]
        answers = experiment.decide_all([{"features": rows, "baseline": 0} for rows in offered])
        rewards = []
        for rows, answer in zip(offered, answers, strict=True):
            assert not isinstance(answer, surefoot.SurefootError)
            rewards.append((answer.decision_id, float(rows[answer.action] @ theta + 0.1 * rng.normal())))
        experiment.reward_all(rewards)


def seconds(journal: Journal, name: str) -> float:
    start = time.process_time()  # an audit is one thread's work, so that other processes need not disturb the ratio
    report = audit(journal, name)
    assert report.is_clean, list(report.findings)
    return time.process_time() - start


def measure(decisions: int = DECISIONS) -> tuple[float, float]:
    """Median ratio of the times at 2n and n, and seconds per decision at 2n."""
    with TemporaryDirectory() as folder, open_journal(Path(folder) / "bench.db") as journal:
        write(journal, "one", decisions)
        write(journal, "two", 2 * decisions)
        pairs = [(seconds(journal, "one"), seconds(journal, "two")) for _ in range(TURNS)]
    ratio = statistics.median(two / one for one, two in pairs)
    return ratio, statistics.median(two for _, two in pairs) / (2 * decisions)


def main() -> bool:
    ratio, each = measure()
    holds = ratio <= MOST
    print(f"\naudit: {DECISIONS:,} and {2 * DECISIONS:,} decisions, {DIM} features, {ACTIONS} actions, {TURNS} turns")
    print(f"{'time at 2n over time at n (2 is linear)':<62} {ratio:>8.2f} {MOST:>6.1f}  ", end="")
    print("holds" if holds else "DOES NOT HOLD")
    print(f"{'microseconds per decision':<62} {each * 1e6:>8.0f}")
    return holds


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
