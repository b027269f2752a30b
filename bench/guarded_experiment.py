"""The guard in an experiment: a durable decision beside a linear one, what committed coins cost it, and an audit."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import surefoot
from bench.experiment import ROWS, new_experiment
from bench.timing import HEADER, Ratio, compare, seconds_per_round
from surefoot.audit import audit
from surefoot.experiment import Answer, Experiment
from surefoot.experiment.coins import Coins
from surefoot.journal import Journal, open_journal
from surefoot.policies.coin import draw_coin

AUDITED, MEASURED, BATCH = 100_000, 20_000, 200
AUDIT_BAR = 60.0
NO_DEARER = 1.0
COMMITTED, PAIRS, LENGTH = 1.02, 300, 100  # the most that committed coins may cost, and how that is measured


def new_guarded(journal: Journal, name: str = "guard") -> Experiment:
    """A guard over one metric."""
    return Experiment.create(journal, name, surefoot.Guard(alpha=0.1, delta=0.05), mode="guarded")


def durable(folder: Path) -> Ratio:
    """One durable decision of a guard and one of SafeLUCB over ten actions, by one caller on SQLite."""
    with open_journal(folder / "guard.journal") as ours, open_journal(folder / "linear.journal") as theirs:
        guard, linear = new_guarded(ours), new_experiment(theirs)

        def guarded(rounds: int) -> None:
            for _ in range(rounds):
                guard.decide(baseline="big-model", proposal="small-model")

        def plain(rounds: int) -> None:
            for n in range(rounds):
                linear.decide(ROWS[n % len(ROWS)], baseline=0)

        return compare(
            "a durable decision of a guard on SQLite, beside SafeLUCB's",
            lambda: seconds_per_round(guarded, 200),
            lambda: seconds_per_round(plain, 200),
            bar=NO_DEARER,
            turns=15,
        )


class SystemCoins(Coins):
    """Coins that nobody can compute again."""

    def begin(self, turn: Any) -> None:
        """There is nothing to commit to."""

    def draw(self, turn: Any, round_: int) -> float:
        """The coin of the system."""
        return draw_coin(None, round_)


def committed(folder: Path) -> float:
    """How many times the CPU time of a durable decision it takes with committed coins: the median of many pairs."""

    def seconds(experiment: Experiment) -> float:
        began = time.process_time()
        for _ in range(LENGTH):
            experiment.decide(baseline="big-model", proposal="small-model")
        return time.process_time() - began

    with open_journal(folder / "committed.journal") as ours, open_journal(folder / "system.journal") as theirs:
        with patch("surefoot.experiment.experiment.Coins", SystemCoins):
            plain = new_guarded(theirs)
        guard = new_guarded(ours)
        ratios = list[float]()
        for turn in range(PAIRS):
            first, second = (guard, plain) if turn % 2 else (plain, guard)
            taken = {first: seconds(first), second: seconds(second)}
            ratios.append(taken[guard] / taken[plain])
        return statistics.median(ratios)


def write(journal: Journal, name: str, decisions: int) -> None:
    """An honest experiment, rewards a batch late."""
    rng, experiment = np.random.default_rng(1), new_guarded(journal, name)
    for _ in range(decisions // BATCH):
        answers = experiment.decide_all([{"baseline": "big-model", "proposal": "small-model"}] * BATCH)
        made = [answer for answer in answers if isinstance(answer, Answer)]
        means = [0.6 if answer.source == "learner" else 0.5 for answer in made]
        experiment.reward_all(
            [(answer.decision_id, float(rng.random() < mean)) for answer, mean in zip(made, means, strict=True)]
        )


def audit_seconds(folder: Path, decisions: int = MEASURED) -> float:
    """Seconds of an audit of that many decisions."""
    with open_journal(folder / "audit.journal") as journal:
        write(journal, "audited", decisions)
        began = time.process_time()
        report = audit(journal, "audited")
        taken = time.process_time() - began
    assert report.is_clean, list(report.findings)
    return taken


def main(decisions: int = MEASURED) -> bool:
    """Print everything; true where every bar holds."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        ratio, cost = durable(Path(folder)), committed(Path(folder))
        taken = audit_seconds(Path(folder), decisions)
    needed = taken * AUDITED / decisions
    how = "measured" if decisions == AUDITED else f"extrapolated from {decisions:,} in {taken:.1f} s"
    verdict = "holds" if needed < AUDIT_BAR else "DOES NOT HOLD"
    print(f"\n{HEADER.replace('surefoot', '   guard').replace('   plain', '  linear')}\n{ratio.row()}")
    dear = "holds" if cost < COMMITTED else "DOES NOT HOLD"
    print(f"a durable decision with committed coins, beside the system's: {cost:.3f} (bar {COMMITTED:g})  {dear}")
    print(f"audit of {AUDITED:,} guarded decisions: {needed:.1f} s, {how} (bar {AUDIT_BAR:g} s)  {verdict}")
    return ratio.holds and cost < COMMITTED and needed < AUDIT_BAR


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
