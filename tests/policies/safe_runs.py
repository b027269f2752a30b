"""SafeLUCB against the truth: worlds that look at it before they show their rows, and an account in true means.

A run fails where a certified bound lies above the truth, or where the constraint is broken by the true means.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import binom

import surefoot
from tests.worlds import Array

FALSE_ALARM = 1e-6  # chance that a test fails although the guarantee holds exactly at delta
DELTA = 0.1
RADII = ("paper", "logdet", "amm", "dual", "residual")
GATES = ("facts", "joint", "ledger")
FACTS = ("none", "range", "known", "interval", "floor", "all")
CONSTRAINTS: dict[str, Any] = {
    "cumulative": "cumulative",
    "checkpoints": {"name": "checkpoints", "every": 7},
    "stagewise": "stagewise",
    "reserve": {"name": "reserve", "granted": 0.8},
    "realised_path": {"name": "realised_path", "lowest_reward": 0.0},
}


@dataclass
class Place:
    """A world that looks at the policy before it shows its rows; mean rewards in [0, 1]."""

    rng: np.random.Generator
    dim: int = 3
    actions: int = 5
    noise: float = 0.1
    kind: str = "plain"
    misfit: float = 0.0
    scale: float = 1.0  # the best mean reward
    rows: Array = field(init=False)

    def __post_init__(self) -> None:
        theta = np.abs(self.rng.normal(size=self.dim)) + 0.05
        self.theta = self.scale * theta / np.linalg.norm(theta)
        if self.kind == "arms":
            self.actions, self.theta = self.dim, self.scale * self.rng.uniform(0.1, 1.0, size=self.dim)
        self.theta_bound = 1.05 * float(np.linalg.norm(self.theta))
        self.rows = np.eye(self.dim) if self.kind == "arms" else self.draw(self.actions)

    def draw(self, count: int) -> Array:
        rows = np.abs(self.rng.normal(size=(count, self.dim)))
        lengths = self.rng.uniform(0.2, 1.0, size=(count, 1))
        drawn: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths
        return drawn

    def show(self, policy: Any) -> tuple[Array, int, Array]:
        """Features, the baseline's row, and the true means."""
        rows = self.rows
        if self.kind in ("changing", "moving"):
            rows = self.draw(self.actions)
        elif self.kind == "adversarial":  # the rows of which the policy thinks too well, beside a good baseline
            pool = self.draw(40)
            order = np.argsort(-(pool @ (policy.ridge.theta - self.theta)))
            rows = np.vstack([pool[order[: self.actions - 1]], pool[np.argmax(pool @ self.theta)]])
        means = rows @ self.theta
        if self.misfit:
            means = np.clip(means + self.misfit * np.sign(np.sin(1e4 * rows[:, 0])), 0.0, self.scale)
        rank = int(self.rng.integers(self.actions)) if self.kind == "moving" else min(1, self.actions - 1)
        order = np.argsort(-means)
        baseline = int(order[rank])
        return rows, baseline if means[baseline] >= self.floor else int(order[0]), means

    @property
    def floor(self) -> float:
        """What the baseline never falls below: the best row of many, drawn or fixed, pays as much."""
        return 0.5 * float((self.rows @ self.theta).max()) if self.kind in ("plain", "arms") else 0.0

    def reward(self, mean: float, *, bounded: bool) -> float:
        """One reward: a coin, or one around its mean; `bounded` ones are never negative."""
        if self.kind == "clicks":
            return float(self.rng.random() < mean)
        if bounded:
            return float(mean + min(self.noise, mean) * self.rng.uniform(-1, 1))
        return float(mean + self.noise * self.rng.normal())


@dataclass
class Ledger:
    """An account of its own, in true means: what the questions are, and whether the constraint holds."""

    alpha: float
    constraint: str
    theta: Array
    learner: Array = field(init=False)
    displaced: Array = field(init=False)
    conserved: Array = field(init=False)
    earned: float = 0.0  # true means, baseline rounds included
    received: float = 0.0  # realised rewards of the learner, baseline rounds by their means
    owed: float = 0.0
    rounds: int = 0

    def __post_init__(self) -> None:
        self.learner, self.displaced, self.conserved = np.zeros((3, self.theta.size))

    def truth(self, proposal: Array, baseline: Array) -> float:
        """<theta, q> for the question that the proposal raises."""
        if self.constraint == "stagewise":
            return float(self.theta @ (proposal - (1 - self.alpha) * baseline))
        assert self.constraint in ("cumulative", "checkpoints", "reserve", "realised_path"), "a question of its own"
        kept = self.alpha * self.conserved - (1 - self.alpha) * (self.displaced + baseline)
        played = 0.0 if self.constraint == "realised_path" else self.learner + proposal
        return float(self.theta @ (kept + played))

    def book(self, row: Array, baseline: Array, mean: float, owed: float, reward: float, is_learner: bool) -> bool:
        """Count the round, and say whether it breaks the constraint."""
        self.rounds += 1
        self.owed += owed
        self.earned += mean
        self.received += reward if is_learner else owed
        if is_learner:
            self.learner, self.displaced = self.learner + row, self.displaced + baseline
        else:
            self.conserved = self.conserved + baseline
        required = (1 - self.alpha) * self.owed - 1e-9
        if self.constraint == "stagewise":
            return mean < (1 - self.alpha) * owed - 1e-9
        if self.constraint == "checkpoints":
            return self.rounds % 7 == 0 and self.earned < required
        account = {"cumulative": self.earned, "reserve": self.earned + 0.8, "realised_path": self.received}
        return account[self.constraint] < required


@dataclass
class Outcome:
    """What happened over one run, against the truth."""

    overclaimed: bool = False
    violated: bool = False
    refuted: bool = False
    learner_rounds: int = 0


def told(facts: str, mean: float, rng: np.random.Generator) -> Any:
    if facts in ("known", "all"):
        return mean
    low, high = rng.uniform(0.5, 1.0), rng.uniform(1.0, 1.5)
    return (low * mean, high * mean) if facts == "interval" else None


def new_policy(place: Place, *, radius: str, gate: str, facts: str, constraint: str, **extra: Any) -> Any:
    settings: dict[str, Any] = {
        "dim": place.dim, "alpha": 0.1, "delta": DELTA, "noise": 0.5 if place.kind == "clicks" else place.noise,
        "theta_bound": place.theta_bound, "feature_bound": 1.0, "ridge": 0.5, "radius": radius, "gate": gate,
        "constraint": CONSTRAINTS[constraint], "misspecification": place.misfit,
    }  # fmt: skip
    if facts in ("range", "all"):
        settings["reward_range"] = (0.0, place.scale)
    if facts in ("floor", "all"):
        settings["reward_floor"] = place.floor
    return surefoot.SafeLUCB(**{**settings, **extra})


def play(
    policy: Any,
    place: Place,
    *,
    facts: str = "none",
    rounds: int = 40,
    order: Callable[[list[Any]], int] | None = None,
) -> Outcome:
    """One run; with `order`, rewards come late, several at once, and it says which of them is handed in next."""
    constraint = policy.settings["constraint"]["name"]
    account, outcome = Ledger(policy.settings["alpha"], constraint, place.theta), Outcome()
    waiting: list[Any] = []
    for _ in range(rounds):
        rows, baseline, means = place.show(policy)
        decision = policy.decide(
            rows, baseline=baseline, baseline_reward=told(facts, float(means[baseline]), place.rng)
        )
        certificate, is_learner = decision.certificate, decision.source == "learner"
        truth = account.truth(rows[certificate.proposal], rows[baseline])
        outcome.overclaimed |= certificate.guaranteed > truth + 1e-9
        mean = float(means[decision.action])
        reward = place.reward(mean, bounded=constraint == "realised_path")
        outcome.violated |= account.book(
            rows[decision.action], rows[baseline], mean, float(means[baseline]), reward, is_learner
        )
        outcome.learner_rounds += is_learner
        waiting.append((decision, reward))
        if order is None:
            policy.observe(*waiting.pop())
        elif len(waiting) > 6:
            while waiting:
                policy.observe(*waiting.pop(order(waiting)))
    outcome.refuted = policy.is_refuted
    return outcome


def most_allowed(runs: int, delta: float = DELTA) -> int:
    """The number of failures that chance alone exceeds with probability FALSE_ALARM at most."""
    return int(binom.isf(FALSE_ALARM, runs, delta))


def assert_within_delta(groups: dict[str, list[Outcome]]) -> None:
    for name, found in groups.items():
        limit = most_allowed(len(found))
        assert sum(o.overclaimed for o in found) <= limit, name
        assert sum(o.violated for o in found) <= limit, name
        assert sum(o.refuted for o in found) <= limit, name
