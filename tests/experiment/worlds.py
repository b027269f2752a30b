"""Policies, rows and a clock for experiments in tests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import surefoot
from surefoot.experiment import Experiment
from surefoot.policies import Policy

LINEAR: dict[str, Any] = {"dim": 2, "delta": 0.01, "noise": 0.2, "theta_bound": 1.0, "feature_bound": 1.0}
SAFE: dict[str, Any] = {**LINEAR, "alpha": 0.2, "reward_range": (0.0, 1.0)}
PAPER: dict[str, Any] = {**LINEAR, "alpha": 0.3, "ridge": 1.0}

POLICIES: dict[str, Callable[[], Policy]] = {
    "SafeLUCB": lambda: surefoot.SafeLUCB(**SAFE),
    "SafeLUCB dual": lambda: surefoot.SafeLUCB(**SAFE, radius="dual"),
    "SafeLUCB residual": lambda: surefoot.SafeLUCB(**SAFE, radius="residual", optimism="facts"),
    "SafeLUCB checkpoints": lambda: surefoot.SafeLUCB(**SAFE, constraint={"name": "checkpoints", "every": 10}),
    "SafeLUCB ledger": lambda: surefoot.SafeLUCB(**SAFE, gate="ledger", misspecification=0.01),
    "CLUCB": lambda: surefoot.CLUCB(**PAPER),
    "CLUCB2": lambda: surefoot.CLUCB2(**PAPER),
    "CLUCB2 latest": lambda: surefoot.CLUCB2(**PAPER, nesting="latest"),
    "LUCB": lambda: surefoot.LUCB(**LINEAR, ridge=1.0),
    "ConservativeUCB": lambda: surefoot.ConservativeUCB(arms=3, alpha=0.3, delta=0.05, noise=0.2),
    "UCB": lambda: surefoot.UCB(arms=3),
}
THETA = np.array([0.8, 0.4])


def safe_policy() -> surefoot.SafeLUCB:
    return surefoot.SafeLUCB(**SAFE)


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """Draws rounds and rewards for any policy, the same ones for the same seed."""

    policy: str = "SafeLUCB"
    seed: int = 0
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def question(self) -> dict[str, Any]:
        """Arguments of `decide`."""
        if "UCB" in self.policy and "LUCB" not in self.policy:
            return {"features": None, "baseline": 1}
        rows = self.rng.uniform(0.0, 0.7, size=(int(self.rng.integers(2, 5)), 2))
        known = float(rows[0] @ THETA) if self.policy == "CLUCB" else None
        if self.policy.startswith("SafeLUCB") and self.rng.random() < 0.3:
            mean = float(rows[0] @ THETA)
            known = [0.9 * mean, 1.1 * mean] if self.rng.random() < 0.5 else mean  # type: ignore[assignment]
        return {"features": rows, "baseline": 0, "baseline_reward": known}

    def reward(self) -> float:
        return float(self.rng.uniform(0.0, 1.0))


def play(experiment: Experiment, world: World, clock: Clock, rounds: int, *, seconds: float = 1.0) -> list[str]:
    """Decide and reward in a scattered order; the ids in the order of their decisions."""
    ids, waiting = list[str](), list[str]()
    for _ in range(rounds):
        clock.now += seconds
        answer = experiment.decide(**world.question())
        ids.append(answer.decision_id)
        waiting.append(answer.decision_id)
        while waiting and world.rng.random() < 0.6:
            chosen = waiting.pop(int(world.rng.integers(len(waiting))))
            experiment.reward(chosen, world.reward())
    return ids
