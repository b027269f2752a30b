"""Worlds that play against a policy while every declaration is true: they choose what it learns, and when.

One direction pays nothing on average: now and then a prize, otherwise a little less than nothing. A policy that learns
a streak of prizes without the blanks around it believes in that direction, gives away a baseline that pays for sure,
and its true means fall below the floor. Nothing here looks into the policy.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from surefoot.client import Client
from surefoot.experiment import Experiment
from surefoot.policies import Policy
from tests.worlds import Array

ALPHA = 0.05
WORTH = 0.1  # mean reward of the sure direction
SURE, PRIZE, NOTHING = np.array([0.01, 0.0]), np.array([0.0, 1.0]), np.array([0.0, 0.0])
FULL = np.array([1.0, 0.0])
TEMPTATIONS = 10  # visits in a row on which a policy that was fooled may lose


@dataclass(frozen=True)
class Luck:
    """How often a prize comes, and how many in a row it takes to fool a policy; within so many visits most runs see it.

    A coin with few prizes needs the fewest visits: there the best sub-Gaussian scale is nearly exact. `mean` is what
    the direction of the prizes pays on average, if not nothing.
    """

    odds: float
    streak: int = 1
    visits: int = 60
    mean: float = 0.0

    @property
    def theta(self) -> Array:
        """The truth."""
        return np.array([WORTH, self.mean])

    @property
    def scale(self) -> float:
        """The least sub-Gaussian scale of this coin.  (Kearns and Saul 1998)"""
        if self.odds == 0.5:
            return 0.5
        return math.sqrt((1 - 2 * self.odds) / (2 * math.log((1 - self.odds) / self.odds)))

    def declared(self, delta: float, **extra: Any) -> dict[str, Any]:
        """What a linear policy is told of this world; all of it is true."""
        told = {"dim": 2, "alpha": ALPHA, "delta": delta, "noise": self.scale, "ridge": 0.3}
        return {**told, "theta_bound": 1.01 * float(np.linalg.norm(self.theta)), "feature_bound": 1.0, **extra}


class Player(Protocol):
    """Whoever decides and takes rewards: a policy, an experiment, a service."""

    def decide(self, rows: Array, known: float | None) -> tuple[Any, int]:
        """Ask with the first row as baseline; what the reward is handed in by, and the row that was played."""

    def reward(self, made: Any, value: float) -> None:
        """Hand in a reward."""


@dataclass
class Direct:
    """A policy, called directly."""

    policy: Policy

    def decide(self, rows: Array, known: float | None) -> tuple[Any, int]:
        made = self.policy.decide(rows, baseline=0, baseline_reward=known)
        return made, made.action

    def reward(self, made: Any, value: float) -> None:
        self.policy.observe(made, value)


@dataclass
class Journaled:
    """A policy inside an experiment."""

    experiment: Experiment

    def decide(self, rows: Array, known: float | None) -> tuple[Any, int]:
        answer = self.experiment.decide(rows, baseline=0, baseline_reward=known)
        return answer.decision_id, answer.action

    def reward(self, made: Any, value: float) -> None:
        assert self.experiment.reward(made, value).is_accepted


@dataclass
class Served:
    """A policy inside an experiment behind a service."""

    client: Client
    experiment: str

    def decide(self, rows: Array, known: float | None) -> tuple[Any, int]:
        named = {str(index): row.tolist() for index, row in enumerate(rows)}
        decision = self.client.decide(self.experiment, named, baseline="0", baseline_reward=known)
        assert not decision.is_fallback
        return decision.decision_id, int(decision.action)

    def reward(self, made: Any, value: float) -> None:
        assert self.client.reward(self.experiment, made, value).is_accepted


@dataclass
class InOrder:
    """A player whose rewards wait, outside of it, until those of all earlier decisions have come."""

    player: Player
    made: list[Any] = field(default_factory=list)
    arrived: dict[int, float] = field(default_factory=dict)
    learned: int = 0

    def decide(self, rows: Array, known: float | None) -> tuple[Any, int]:
        made, action = self.player.decide(rows, known)
        self.made.append(made)
        return len(self.made) - 1, action

    def reward(self, made: Any, value: float) -> None:
        self.arrived[made] = value
        while self.learned in self.arrived:
            self.player.reward(self.made[self.learned], self.arrived.pop(self.learned))
            self.learned += 1


@dataclass
class Visit:
    """A round that was played, and what came of it."""

    made: Any
    reward: float
    is_prize: bool
    is_baseline: bool


@dataclass
class Adversary:
    """Shows visits to a player, and keeps the account in true means."""

    player: Player
    luck: Luck
    rng: np.random.Generator
    slack: float = 0.0
    is_below: bool = False

    def visit(self, *rows: Array, known: float | None = None) -> Visit:
        """Have one visit decided, the first row the baseline's; its reward happens now, and is known to us alone."""
        made, action = self.player.decide(np.array(rows), known)
        mean, owed = float(self.luck.theta @ rows[action]), float(self.luck.theta @ rows[0])
        self.slack += mean - (1 - ALPHA) * owed
        self.is_below |= self.slack < -1e-9
        share = float(rows[action][1])
        is_prize = bool(share > 0 and self.rng.random() < self.luck.odds)
        return Visit(made, mean + share * (is_prize - self.luck.odds), is_prize, is_baseline=action == 0)

    def hand_in(self, *visits: Visit) -> None:
        """Let the player have these rewards, one after the other."""
        for visit in visits:
            self.player.reward(visit.made, visit.reward)

    def tempt(self, *, is_told: bool = False) -> list[Visit]:
        """Visits with a sure baseline beside the prize, as long as the player gives it away."""
        known = WORTH * float(SURE[0]) if is_told else None
        made = [self.visit(SURE, PRIZE, known=known)]
        while not made[-1].is_baseline and len(made) < TEMPTATIONS:
            made.append(self.visit(SURE, PRIZE, known=known))
        return made


def a_stack(adversary: Adversary, *, newest_first: bool = True, early: bool = False) -> None:
    """A day of visits whose rewards come at night. Which end of the pile they come from never looks at a reward.

    What the visits look like does: after a streak of prizes the rest of the day shows nothing (or the day ends
    `early`). So the newest rewards are nothing and that streak, and the blanks before it come last.
    """
    luck, prizes, waiting = adversary.luck, 0, list[Visit]()
    for _ in range(luck.visits):
        if prizes == luck.streak and early:
            break
        waiting.append(adversary.visit(PRIZE if prizes < luck.streak else NOTHING))
        if prizes < luck.streak:
            prizes = prizes + 1 if waiting[-1].is_prize else 0
    while waiting and not adversary.is_below:
        visit = waiting.pop(-1 if newest_first else 0)
        adversary.hand_in(visit)
        if visit.is_prize:
            waiting += adversary.tempt()
    adversary.tempt()


def bad_news_late(adversary: Adversary) -> None:
    """A prize is reported at once, a blank in the evening: when a reward comes tells what it is."""
    late = list[Visit]()
    for _ in range(adversary.luck.visits):
        visit = adversary.visit(PRIZE)
        if visit.is_prize:
            adversary.hand_in(visit, *adversary.tempt())
        else:
            late.append(visit)
    adversary.hand_in(*late)
    adversary.tempt()


def a_change_after_luck(adversary: Adversary, *, is_told: bool) -> None:
    """The baseline and its known mean stay the same until a streak of prizes; before these are reported, it changes.

    Rewards come in the order of the decisions, prizes a little later than blanks. With `is_told` the mean of the new
    baseline is known as well.
    """
    waiting = list[Visit]()
    for _ in range(adversary.luck.visits):
        waiting.append(adversary.visit(PRIZE, known=0.0))
        if not waiting[-1].is_prize:
            adversary.hand_in(*waiting)
            waiting.clear()
        elif len(waiting) == adversary.luck.streak:
            break
    adversary.hand_in(*waiting, adversary.visit(NOTHING, known=0.0 if is_told else None))
    adversary.tempt(is_told=is_told)


def bad_news_of_the_learner_late(adversary: Adversary) -> None:
    """The same for policies that learn from their own rounds alone: a full baseline pays for a prize now and then.

    The prizes cost as much as can be, so that the floor is all but reached before anything is learned.
    """
    late = list[Visit]()
    for _ in range(adversary.luck.visits):
        visit = adversary.visit(FULL, PRIZE, known=WORTH)
        if visit.is_baseline or visit.is_prize:
            adversary.hand_in(visit)
        else:
            late.append(visit)
    adversary.hand_in(*late)


def runs_below(
    play: Callable[[Adversary], None], player: Callable[[int], Player], luck: Luck, *, runs: int, seed: int
) -> int:
    """How many runs of an adversary against new players end below the floor."""
    below = 0
    for index in range(runs):
        adversary = Adversary(player(index), luck, np.random.default_rng([seed, index]))
        play(adversary)
        below += adversary.is_below
    return below
