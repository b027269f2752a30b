"""Learners that learn by acting, on tables that others collected: what a guard costs, and what other rollouts risk.

`python -m bench.acting_learners` plays each table in five orders of its rows. Guessing the class of a row pays 1 where
it is right. Today's rule is a logistic regression on two columns of sixty rows; the learner is gradient boosting that
is fitted again as rewards come in. Of two classes a reward tells which is right, so every reward teaches it; with
`--own`, only those of what it proposed. `--broken` lets proposals turn random halfway.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from bench import real_tables
from surefoot import Guard

NAMES = ("adult", "magic", "shuttle")
DELTA = 0.05
ROWS, TAUGHT, ORDERS = 20_000, 60, 5
FIRST_FIT, NEXT_FIT = 50, 1.4
TODAY = (1, 2)  # the columns that today's rule looks at
HEADS = (
    "table",
    "rollout",
    "half from round",
    "share",
    "reward over today's",
    "of unguarded, at least",
    "rounds below",
)


@dataclass(frozen=True)
class Table:
    """Rows in one order, their classes, and what today's rule guesses."""

    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    today: NDArray[np.int64]


@cache
def ordered(name: str, order: int) -> Table:
    """A table in an order by lot; the rows that today's rule was fitted to are not played."""
    features, labels = real_tables.two_classes(name)
    places = np.random.default_rng([36, order]).permutation(labels.size)[: TAUGHT + ROWS]
    features = ((features - features.mean(axis=0)) / features.std(axis=0))[places]
    labels = labels[places]
    rule = LogisticRegression().fit(features[:TAUGHT, TODAY], labels[:TAUGHT])
    return Table(features[TAUGHT:], labels[TAUGHT:], rule.predict(features[TAUGHT:, TODAY]))


@cache
def wishes(name: str, order: int, seen: bytes) -> NDArray[np.int64]:
    """What the learner guesses in every row, once it has seen the classes of some; at first by lot."""
    table, rows = ordered(name, order), np.frombuffer(seen, dtype=np.int64)
    if np.unique(table.labels[rows]).size < 2:
        return np.random.default_rng([37, order]).integers(2, size=table.labels.size)
    model = HistGradientBoostingClassifier(max_iter=25, min_samples_leaf=5, random_state=0)
    guesses: NDArray[np.int64] = model.fit(table.features[rows], table.labels[rows]).predict(table.features)
    return guesses


class Rollout(Protocol):
    """Decides how often a proposal acts."""

    def decide(self, is_new: bool, coin: float) -> tuple[float, bool]:
        """The share of a proposal, which differs from the baseline or not, and whether it acts."""

    def observe(self, reward: float) -> None:
        """The reward of what was played."""


class Guarded:
    """Our guard."""

    def __init__(self, alpha: float, order: int) -> None:
        self.guard = Guard(alpha=alpha, delta=DELTA, seed=order)

    def decide(self, is_new: bool, coin: float) -> tuple[float, bool]:
        """As the guard does, by its own coin."""
        self.decision = self.guard.decide(baseline=0, proposal=int(is_new))
        return self.decision.share, self.decision.source == "learner"

    def observe(self, reward: float) -> None:
        """Into the bank."""
        self.guard.observe(self.decision, reward)


@dataclass
class Unguarded:
    """The learner acts from the first round on; `share` is for those below."""

    share: float = 1.0
    rounds: int = 0
    is_new: bool = False
    is_learner: bool = False

    def decide(self, is_new: bool, coin: float) -> tuple[float, bool]:
        """By the share so far."""
        self.rounds += 1
        share = self.share if is_new else 0.0
        self.is_new, self.is_learner = is_new, coin < share
        return share, self.is_learner

    def observe(self, reward: float) -> None:
        """Nothing follows from it."""


@dataclass
class Canary(Unguarded):
    """A tenth of the rounds for 2,000 rounds; then all, unless the learner is seen to be worse where they differ."""

    share: float = 0.1
    rewards: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})

    def observe(self, reward: float) -> None:
        """All or nothing after 2,000 rounds."""
        if self.rounds < 2_000 and self.is_new:
            self.rewards[self.is_learner].append(reward)
        if self.rounds == 2_000:
            learner, baseline = np.array(self.rewards[True]), np.array(self.rewards[False])
            error = np.sqrt(learner.var() / learner.size + baseline.var() / baseline.size)
            self.share = float(learner.mean() - baseline.mean() > -1.64 * error)


@dataclass
class Reactive(Unguarded):
    """The learner acts until 200 rounds are below the floor together; then the baseline does, for 1,000 rounds.

    It is told what the baseline earns on average.
    """

    floor: float = 0.0
    rewards: list[float] = field(default_factory=list)
    until: int = 0

    def observe(self, reward: float) -> None:
        """Out after 200 bad rounds, in again later."""
        self.share = float(self.rounds >= self.until)
        self.rewards.append(reward)
        if len(self.rewards) == 200:
            if self.share and np.mean(self.rewards) < self.floor:
                self.until, self.share = self.rounds + 1_000, 0.0
            self.rewards.clear()


@dataclass(frozen=True)
class Outcome:
    """What became of one rollout on one order, coins averaged."""

    earned: NDArray[np.float64]  # so far, round by round
    owed: NDArray[np.float64]  # by the baseline
    half: float  # the first round in which a proposal had half of the rounds
    share: float  # of the rounds in which both differ
    alpha: float

    @property
    def lift(self) -> float:
        """What was earned beyond the baseline's, as a share of that."""
        return float(self.earned[-1] / self.owed[-1] - 1.0)

    @property
    def below(self) -> int:
        """Rounds below the floor."""
        return int((self.earned < (1.0 - self.alpha) * self.owed - 1e-9).sum())


def play(
    name: str, order: int, rollout: Rollout, alpha: float, *, is_broken: bool = False, is_own: bool = False
) -> Outcome:
    """Every row once: the learner proposes, the rollout decides, and what was played teaches."""
    table, rng = ordered(name, order), np.random.default_rng([38, order])
    size, fits, seen = table.labels.size, set(_fits(table.labels.size)), list[int]()
    random, coins, wished = rng.integers(2, size=size), rng.random(size), wishes(name, order, b"")
    shares, paid, differs = np.zeros(size), np.zeros((size, 2)), np.zeros(size, dtype=np.bool_)
    for t, (today, label) in enumerate(zip(table.today, table.labels, strict=True)):
        if t in fits:
            wished = wishes(name, order, np.array(seen, dtype=np.int64).tobytes())
        guess = random[t] if is_broken and t >= size // 2 else wished[t]
        differs[t], paid[t] = guess != today, (today == label, guess == label)
        shares[t], is_learner = rollout.decide(bool(differs[t]), coins[t])
        rollout.observe(float(paid[t, int(is_learner)]))
        if not is_own or is_learner or not differs[t]:
            seen.append(t)
    earned = shares * paid[:, 1] + (1.0 - shares) * paid[:, 0]
    halves = np.flatnonzero(shares >= 0.5)
    half = float(halves[0] + 1) if halves.size else np.inf
    return Outcome(np.cumsum(earned), np.cumsum(paid[:, 0]), half, float(shares[differs].mean()), alpha)


def _fits(size: int) -> Iterator[int]:
    at = float(FIRST_FIT)
    while at < size:
        yield int(at)
        at *= NEXT_FIT


def outcomes(
    name: str, orders: Sequence[int], alpha: float = 0.1, *, is_broken: bool = False, is_own: bool = False
) -> dict[str, list[Outcome]]:
    """Of every rollout, on every order."""
    found: dict[str, list[Outcome]] = {}
    for order in orders:
        table = ordered(name, order)
        floor = (1.0 - alpha) * float((table.today == table.labels).mean())
        rollouts: dict[str, Rollout] = {
            "guard": Guarded(alpha, order),
            "unguarded": Unguarded(),
            "canary": Canary(),
            "reactive": Reactive(floor=floor),
        }
        for who, rollout in rollouts.items():
            found.setdefault(who, []).append(play(name, order, rollout, alpha, is_broken=is_broken, is_own=is_own))
    return found


def lines(name: str, found: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """What is told of a table, a line for each rollout."""
    free = [one.earned[-1] for one in found["unguarded"]]
    for who, runs in found.items():
        halves, lifts = [run.half for run in runs], [run.lift for run in runs]
        kept = min(run.earned[-1] / most for run, most in zip(runs, free, strict=True))
        cells = [
            name,
            who,
            f"{np.median(halves):,.0f} (at most {max(halves):,.0f})",
            f"{np.mean([run.share for run in runs]):.0%}",
            f"{np.mean(lifts):+.1%} (at least {min(lifts):+.1%})",
            f"{kept:.1%}",
            f"{sum(run.below for run in runs):,}",
        ]
        yield "| " + " | ".join(cells) + " |"


def curves(name: str, found: Mapping[str, Sequence[Outcome]], *, is_broken: bool) -> pl.DataFrame:
    """What was earned so far as a share of what the baseline would have, mean over orders."""
    frames = []
    for who, runs in found.items():
        mean = np.mean([run.earned / np.maximum(run.owed, 1.0) for run in runs], axis=0)
        times = np.unique(np.geomspace(30, mean.size, 60).astype(int))
        told = {"table": name, "is_broken": int(is_broken), "rollout": who}
        frames.append(
            pl.DataFrame({"round": times, "earned": mean[times - 1].round(4)}).with_columns(
                **{k: pl.lit(v) for k, v in told.items()}
            )
        )
    return pl.concat(frames)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broken", action="store_true", help="also learners whose proposals turn random halfway")
    parser.add_argument("--own", action="store_true", help="the learner sees only rewards of what it proposed")
    parser.add_argument("--curves", type=Path, help="write what a picture of both is drawn from to this file")
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--orders", type=int, default=ORDERS)
    asked = parser.parse_args()
    drawn = []
    for is_broken in (False, True) if asked.broken or asked.curves else (False,):
        print("| " + " | ".join(HEADS) + " |\n|" + "---|" * len(HEADS))
        for name in NAMES:
            found = outcomes(name, range(asked.orders), asked.alpha, is_broken=is_broken, is_own=asked.own)
            drawn.append(curves(name, found, is_broken=is_broken))
            print("\n".join(lines(name, found)), flush=True)
    if asked.curves:
        pl.concat(drawn).write_csv(asked.curves)


if __name__ == "__main__":
    main()
