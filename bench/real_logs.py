"""Logs that others collected, through the documented commands: what the product said, and whether that was right.

`python -m bench.real_logs FOLDER` writes each log whose package is installed (`requirements/long.txt`), runs `surefoot
fit-baseline` and `surefoot replay` on it, and prints a line of docs/real-data.md. `--live` plays the tables of classes
on, where every mean is known: a learner that was taught by the log acts under a guard, as the doubt about linearity
advises. `--learned` shows what LUCB earns on those tables, with each radius that `surefoot replay` tries by default.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench import real_tables
from bench.rare_logs import emails, folder_of, shuffled
from surefoot.policies import Guard
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.columns import Columns
from surefoot.replay.doubts import LINEARITY
from surefoot.replay.table_log import read_log

CLASSES = ("penbased", "satimage", "letter")
LOGGED, PLAYED = 5_000, 3_000  # rows of a table of classes in its log, and beyond it
ALPHA, DELTA = 0.1, 0.001
POLICIES = ("SafeLUCB", "Guard")
HEADS = ("log", "rows", "doubted", "baseline", "θ to declare", "SafeLUCB: learner, lift", "guard: learner, lift")


def open_bandit(policy: str) -> pl.DataFrame:
    """10,000 impressions of 34 products in a fashion shop, by lot or by a Thompson sampler. (Saito et al. 2020)"""
    return pl.read_csv(folder_of("obp") / "dataset" / "obd" / policy / "men" / "men.csv")


def guessed(name: str) -> pl.DataFrame:
    """A log of guesses at a table of classes."""
    return real_tables.classes(name, seed=0).played_by_lot(slice(0, _logged(name)), 0)


@dataclass(frozen=True)
class RealLog:
    """A log, and what the commands must be told of it."""

    make: Callable[[], pl.DataFrame]
    options: tuple[str, ...]


LOGS: Mapping[str, RealLog] = {
    "open bandit, random": RealLog(lambda: open_bandit("random"), ("--baseline", "0")),
    "open bandit, bts": RealLog(lambda: open_bandit("bts"), ("--baseline", "13")),
    **{name: RealLog(lambda name=name: guessed(name), ("--baseline-column", "today")) for name in CLASSES},  # type: ignore[misc]
    "movielens": RealLog(
        lambda: real_tables.movielens().drawn(10_000, 0)[0], ("--baseline", "Comedy", "--reward-bounds", "0,1")
    ),
    "school": RealLog(
        lambda: shuffled(real_tables.school(), 0),
        ("--baseline", "regular", "--estimate-propensities", "--reward-bounds", "0,1300"),
    ),
    "emails": RealLog(lambda: shuffled(emails(), 0), ("--baseline", "elsewhere")),
}


def surefoot(*words: str) -> subprocess.CompletedProcess[str]:
    """One command, as one types it."""
    return subprocess.run([sys.executable, "-m", "surefoot", *words], capture_output=True, text=True, check=False)


def said(name: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """What `fit-baseline` and `replay` say of a log, and whether a configuration was refused for its doubt."""
    log, path = LOGS[name], folder / f"{name.replace(', ', '-').replace(' ', '-')}.csv"
    log.make().write_csv(path)
    told, chosen = (str(path), *log.options), [word for one in POLICIES for word in ("--policy", one)]
    fit = json.loads(surefoot("fit-baseline", *told, "--json").stdout)
    is_refused = "speaks against it" in surefoot("fit-baseline", *told, "--out", str(path.with_suffix(".toml"))).stderr
    replayed = surefoot("replay", *told, *chosen, "--json")
    if replayed.returncode:
        raise RuntimeError(f"{name}: {replayed.stderr}")
    return fit, json.loads(replayed.stdout), is_refused


def line_of(name: str, folder: Path) -> str:
    """A line of the table in docs/real-data.md."""
    fit, replayed, is_refused = said(name, folder)
    doubted = [doubt["assumption"].split(":")[0].lower() for doubt in replayed["doubts"] if doubt["is_doubtful"]]
    assert is_refused == ("linearity" in doubted)
    mean = fit["baseline_reward"]
    digits = 1 if mean["value"] > 10 else 4
    cells = [
        name,
        f"{replayed['settings']['rows']:,}",
        ", ".join(doubted) or "nothing",
        f"{mean['value']:.{digits}f} [{mean['low']:.{digits}f}, {mean['high']:.{digits}f}]",
        f"{replayed['settings']['theta_bound']:.3g}",
        *(_played(policy, digits) for policy in replayed["policies"]),
    ]
    return "| " + " | ".join(cells) + " |"


def _played(policy: Mapping[str, Any], digits: int) -> str:
    share, gain = policy["learner_rounds"] / policy["rounds"], policy["estimates"]["rejection"]["gain"]
    differing = policy.get("differing_rounds")
    of = f" ({policy['differing_learner_rounds'] / differing:.0%})" if differing else ""
    return f"{share:.0%}{of}, {gain['value']:+.{digits}f} [{gain['low']:+.{digits}f}, {gain['high']:+.{digits}f}]"


def _logged(name: str) -> int:
    return min(LOGGED, len(real_tables.classes(name, seed=0).labels) - PLAYED)


@dataclass(frozen=True)
class LiveRun:
    """A learner under a guard on rows beyond the log, its coins averaged."""

    is_doubted: bool
    differing: float  # how many of the rounds the learner wished to change
    share: float  # of those
    worst: float
    averaged: float
    owed: float

    @property
    def is_below(self) -> bool:
        """Whether the policy's mean was below its floor in any round."""
        return self.worst < 0


def taught_by(log: pl.DataFrame) -> Any:
    """A logistic regression, fitted to the guesses of the log that were right."""
    right = log.filter(pl.col("reward") == 1)
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)).fit(
        right.select("^x.*$").to_numpy(), right["action"].to_numpy()
    )


def live(name: str, seed: int, *, rows: int = PLAYED) -> LiveRun:
    """The path that the doubt advises: what the log taught proposes, and a guard decides how often it may act."""
    table = real_tables.classes(name, seed=seed)
    logged = min(LOGGED, len(table.labels) - rows)
    log, fresh = table.played_by_lot(slice(0, logged), seed), slice(logged, logged + rows)
    columns = Columns(propensity="propensity", baseline="today", context=("x*",))
    fit = fit_baseline(read_log(log, columns=columns), reward_bounds=(0.0, 1.0))
    wishes, today, labels = taught_by(log).predict(table.features[fresh]), table.today[fresh], table.labels[fresh]
    guard, shares = Guard(alpha=ALPHA, delta=DELTA, reward_bounds=(0.0, 1.0), seed=seed), np.zeros(rows)
    for t, (wish, old, label) in enumerate(zip(wishes.tolist(), today.tolist(), labels.tolist(), strict=True)):
        decision = guard.decide(baseline=old, proposal=wish)
        shares[t] = decision.share
        guard.observe(decision, float(decision.action == label))
    differs, owed = wishes != today, (today == labels).astype(float)
    averaged = shares * (wishes == labels) + (1 - shares) * owed
    worst = float(np.cumsum(averaged - (1 - ALPHA) * owed).min())
    is_doubted = any(doubt.assumption == LINEARITY and doubt.is_doubtful for doubt in fit.doubts)
    share = float(shares[differs].mean())
    return LiveRun(is_doubted, float(differs.mean()), share, worst, float(averaged.mean()), float(owed.mean()))


def live_line(name: str, seeds: Sequence[int]) -> str:
    """A line of the second table."""
    runs = [live(name, seed) for seed in seeds]
    means = (np.mean([getattr(run, what) for run in runs]) for what in ("differing", "share", "averaged", "owed"))
    differing, share, averaged, owed = means
    doubted, below = sum(run.is_doubted for run in runs), sum(run.is_below for run in runs)
    return (
        f"| {name} | {len(runs)} | {doubted} | {differing:.0%} | {share:.0%} | {owed:.3f} | {averaged:.3f} "
        f"| {min(run.worst for run in runs):+.1f} | {below} |"
    )


def learned(name: str, folder: Path) -> dict[str, float]:
    """What LUCB earns a round on a table whose classes are known, with each radius that the plain command shows."""
    table, path = real_tables.classes(name, seed=0).with_labels(slice(0, LOGGED)).drop("today"), folder / "labels.csv"
    table.write_csv(path)
    today = str(table["label"].min())
    replayed = surefoot("replay", str(path), "--label", "label", "--baseline", today, "--json")
    if replayed.returncode:
        raise RuntimeError(f"{name}: {replayed.stderr}")
    rows = json.loads(replayed.stdout)["policies"]
    return {row["label"]: row["estimates"]["full"]["reward"]["value"] for row in rows if row["policy"] == "LUCB"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--live", type=int, default=0, help="runs beyond the log for each table of classes")
    parser.add_argument("--learned", action="store_true", help="what LUCB earns on each table of classes")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    print("| " + " | ".join(HEADS) + " |\n|" + "---|" * len(HEADS))
    for name in LOGS:
        try:
            print(line_of(name, asked.folder), flush=True)
        except ModuleNotFoundError as missing:
            print(f"left out {name}: {missing}")
    for name in CLASSES if asked.learned else ():
        print(f"{name}: {', '.join(f'{label} {paid:.3f}' for label, paid in learned(name, asked.folder).items())}")
    for name in CLASSES if asked.live else ():
        print(live_line(name, range(asked.live)), flush=True)


if __name__ == "__main__":
    main()
