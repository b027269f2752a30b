"""The demo's world: a shop whose visitors are drawn from known numbers, so that one can see whether it learns them.

A visitor is new (-1) or returning (+1), and clicks on what is shown with the probability

    mean[shown] + slope[shown] * visitor

so the features of an action are a one for its mean and the visitor for its slope: dim = 2 * actions.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from surefoot.arrays import Matrix
from surefoot.service.demo_visitors import Demo


@dataclass(frozen=True)
class ShopChoice:
    """Something that the shop decides for every `every`-th visitor; today it always plays the first action.

    >>> offers = CHOICES[0]
    >>> offers.actions[0], round(offers.chance(0, visitor=-1), 2), round(offers.chance(2, visitor=-1), 2)
    ('bestsellers', 0.25, 0.75)
    """

    name: str
    mode: Literal["shadow", "guarded"]
    every: int
    description: str
    unit: str
    actions: tuple[str, ...]
    means: tuple[float, ...]
    slopes: tuple[float, ...]

    def chance(self, action: int, *, visitor: int) -> float:
        """The probability that this visitor clicks."""
        return self.means[action] + self.slopes[action] * visitor

    def rows(self, visitor: int) -> Matrix:
        """One row for each action."""
        one = np.eye(len(self.actions))
        return np.hstack([one, visitor * one])

    def question(self, visitor: int) -> dict[str, Any]:
        """What the shop asks the service for this visitor; the first action is the baseline by convention."""
        rows = self.rows(visitor).tolist()
        actions = [{"id": name, "features": row} for name, row in zip(self.actions, rows, strict=True)]
        return {"actions": actions, "context": {"visitor": "new" if visitor < 0 else "returning"}}

    def reward(self, answer: Mapping[str, Any], visitor: int, random: np.random.Generator) -> float | None:
        """1 for a click. Only clicks are reported: if none comes, the window closes and 0 is learned."""
        return 1.0 if random.random() < self.chance(answer["action"], visitor=visitor) else None

    def progress(self, status: Mapping[str, Any]) -> str:
        """The learner's part, and the margin."""
        margin = "no margin yet" if status["margin"] is None else f"margin {status['margin']:.1f}"
        return f"{status['learner_share']:.0%} with the learner, {margin}"

    def experiment(self, *, window: float) -> dict[str, Any]:
        """How the experiment is created: what is declared here is true of this shop."""
        settings = {
            "dim": 2 * len(self.actions),
            "alpha": 0.1,
            "delta": 0.05,
            "noise": 0.5,  # a reward in [0, 1] is never wider
            "theta_bound": 1.0,
            "feature_bound": 1.5,  # a row holds a one and a visitor: sqrt(2)
            "reward_range": [0.0, 1.0],
        }
        return {
            "name": self.name,
            "policy": "SafeLUCB",
            "settings": settings,
            "mode": self.mode,
            "reward_window": window,
            "reward_bounds": [0.0, 1.0],
            "description": self.description,
            "reward_unit": self.unit,
            "feature_names": [*self.actions, *(f"{name}, returning" for name in self.actions)],
        }


CHOICES = (
    ShopChoice(
        name="front-page",
        mode="guarded",
        every=1,
        description="Which offer to show first; a click counts 1. Today: the bestsellers. Simulated visitors.",
        unit="clicks",
        actions=("bestsellers", "new arrivals", "starter bundle", "free shipping"),
        means=(0.30, 0.30, 0.55, 0.20),
        slopes=(0.05, 0.20, -0.20, 0.10),
    ),
    ShopChoice(
        name="newsletter",
        mode="shadow",
        every=4,
        description="Which subject line to send; an opened letter counts 1. Simulated readers.",
        unit="opened letters",
        actions=("this week", "your favourites", "last chance"),
        means=(0.30, 0.40, 0.25),
        slopes=(0.05, 0.15, -0.10),
    ),
)

SHOP = Demo(
    greeting="A shop with simulated visitors: a learner starts beside what is played today.",
    rate=25.0,
    choices=CHOICES,
    visitors=lambda random: (int(random.choice((-1, 1))) for _ in itertools.count()),
)
