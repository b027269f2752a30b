"""Journals of experiments that earlier versions ran, kept as files with what those versions decided next.

`python -m tests.experiment.old_experiments` writes those of today's version; a file that exists is never written again.
"""

import gzip
import json
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.records import ModeName
from tests.experiment.worlds import Clock
from tests.policies.old_states import BASELINE, METRICS, Case, chance, linear

FOLDER = Path(__file__).parent / "fixtures"
BEFORE, AFTER = 40, 12
NAME = "shop"


@dataclass(frozen=True)
class Setup:
    """How an experiment was created."""

    make: Callable[[], Any]
    reward_window: float | None = None
    is_guard: bool = False
    is_catalogue: bool = False
    history: int = 0
    mode: ModeName = "shadow"  # until round 5


SETUPS: dict[str, Setup] = {
    "safe": Setup(
        lambda: surefoot.SafeLUCB(**linear(3, alpha=0.1, reward_range=(0.0, 1.0), holdout=0.2, seed=4)), history=3
    ),
    "safe-window": Setup(
        lambda: surefoot.SafeLUCB(**linear(3, alpha=0.1, radius="residual", reward_range=(0.0, 1.0))),
        reward_window=6.0,
        is_catalogue=True,
    ),
    "guard": Setup(lambda: surefoot.Guard(metrics=METRICS, delta=0.2, seed=5), is_guard=True),
}


@dataclass
class Visitors:
    """Asks and rewards an experiment; what comes is a matter of the round alone."""

    experiment: Experiment
    setup: Setup
    clock: Clock

    def play(self, rounds: range) -> list[list[Any]]:
        """What was answered in each of these rounds."""
        return [self._round(round_) for round_ in rounds]

    def _round(self, round_: int) -> list[Any]:
        self.clock.now = 1_000_000.0 + round_
        if round_ == 5:
            self.experiment.set_mode("guarded", reason="a test")
        case = Case(self.setup.make, dim=3, actions=4, is_catalogue=self.setup.is_catalogue)
        rows = case.rows(round_)
        if self.setup.is_guard:
            guarded = self.experiment.decide(baseline="old", proposal="new", decision_id=f"d-{round_}")
            stands = self.experiment.status().guard
            assert stands is not None
            decided: list[Any] = [guarded.source, guarded.share, *stands.banks.values()]
        else:
            given = surefoot.Catalogue(rows) if self.setup.is_catalogue else rows
            answer = self.experiment.decide(given, baseline=BASELINE, decision_id=f"d-{round_}")
            proved = answer.record.certificate
            decided = [answer.source, answer.action, proved.guaranteed, proved.required]
        # The rewards of every three rounds come with the last of them, newest first; one of each nine never comes.
        if round_ % 3 == 0:
            for late in (round_, round_ - 1, round_ - 2):
                self._reward(late, case)
        return decided

    def _reward(self, round_: int, case: Case) -> None:
        if round_ % 9 == 4:
            if self.setup.reward_window is None:
                self.experiment.abandon(f"d-{round_}", reason="a test")
            return
        answer = self.experiment.find(f"d-{round_}")
        if self.setup.is_guard:
            good = 0.5 * chance("good", round_) + 0.5 * (answer.source == "learner")
            self.experiment.reward(f"d-{round_}", {"quality": good, "cost": 2.0 * (1.0 - good)})
            return
        self.experiment.reward(f"d-{round_}", case.mean(case.rows(round_)[answer.action]))


def write(path: Path, setup: Setup) -> None:
    """Run an experiment, and keep its journal, where it ended, and what came next."""
    with tempfile.TemporaryDirectory() as folder:
        file, clock = Path(folder) / "experiment.journal", Clock()
        case = Case(setup.make, dim=3)
        logged = [case.rows(-1 - n)[BASELINE] for n in range(setup.history)]
        with open_journal(file) as journal:
            experiment = Experiment.create(
                journal,
                NAME,
                setup.make(),
                mode=setup.mode,
                reward_window=setup.reward_window,
                history=(np.array(logged), [case.mean(row) for row in logged]) if logged else None,
                clock=clock,
                snapshot_every=50,
            )
            visitors = Visitors(experiment, setup, clock)
            visitors.play(range(1, BEFORE + 1))
            number, hash_ = journal.head(NAME)
            kept = {"version": surefoot.__version__, "number": number, "hash": hash_}
            kept["is_clean"] = audit(journal, NAME).is_clean
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        path.with_suffix(".journal.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        with open_journal(file) as journal:
            again = Experiment.open(journal, NAME, clock=clock)
            kept["next"] = Visitors(again, setup, clock).play(range(BEFORE + 1, BEFORE + 1 + AFTER))
    path.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n")


def restore(name: str, path: Path) -> dict[str, Any]:
    """Put a kept journal there, and say what is known of it."""
    path.write_bytes(gzip.decompress((FOLDER / f"{name}.journal.gz").read_bytes()))
    kept: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return kept


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, setup in SETUPS.items():
        if not (FOLDER / f"{name}.json").exists():
            write(FOLDER / name, setup)
