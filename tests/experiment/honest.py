"""Honest experiments for audits to look at: every mode, rewards that come late and in any order, or never."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import surefoot
from surefoot.experiment import Experiment
from surefoot.journal import Journal, open_journal
from tests.experiment.worlds import Clock
from tests.policies import safe_runs
from tests.worlds import World

# Here the noise may take a reward below 0.
CONSTRAINTS: dict[str, Any] = {
    **safe_runs.CONSTRAINTS,
    "realised_path": {"name": "realised_path", "lowest_reward": -1.0},
}
Make = Callable[[dict[str, Any]], Any]


def safe(**extra: Any) -> Make:
    return lambda told: surefoot.SafeLUCB(**{"alpha": 0.1, "reward_range": (0.0, 1.0), **told, **extra})


def new_world(seed: int, *, dim: int = 3, changing: bool = True) -> World:
    return World(np.random.default_rng(seed), dim, 5, 0.05, changing=changing, moving=changing)


def known_reward(policy: Any, mean: float, round_: int) -> Any:
    """CLUCB is told the mean, SafeLUCB sometimes, as a number or an interval; the others never."""
    if isinstance(policy, surefoot.CLUCB):
        return mean
    if isinstance(policy, surefoot.SafeLUCB):
        return [None, mean, [0.9 * mean, 1.1 * mean]][round_ % 3]
    return None


def rounds_of(policy: Any, world: World, seed: int) -> Iterator[tuple[dict[str, Any], Callable[[int], float]]]:
    """What `decide` is asked, and the reward of each action, one round after the other."""
    is_arms = isinstance(policy, surefoot.UCB | surefoot.ConservativeUCB)
    fixed = None if world.changing or is_arms else surefoot.Catalogue(world.round()[0])
    for round_ in itertools.count():
        rows, baseline, means = world.round()
        question = {
            "features": None if is_arms else rows if fixed is None else fixed,
            "baseline": baseline,
            "baseline_reward": known_reward(policy, float(means[baseline]), round_),
            "decision_id": f"{seed}-{round_}",
        }
        yield question, lambda action, means=means: world.reward(float(means[action]))  # type: ignore[misc]


def played(
    make: Make,
    rounds: int,
    *,
    journal: Journal | None = None,
    window: float | None = None,
    lag: int = 0,
    seed: int = 5,
    changing: bool = True,
    dim: int = 3,
    held: bool = True,
    lost: float = 0.1,
    history: int = 0,
) -> Journal:
    """An honest experiment with every mode, rewards that come late and in any order, and some that never come."""
    journal, clock, world = journal or open_journal("memory:"), Clock(), new_world(seed, dim=dim, changing=changing)
    policy = make(world.settings(ridge=0.3, delta=0.05))
    rng, waiting = np.random.default_rng(seed), list[tuple[str, float]]()
    before = [world.round() for _ in range(history)]
    logged = [(rows[b], world.reward(float(means[b]))) for rows, b, means in before]
    experiment = Experiment.create(
        journal,
        "shop",
        policy,
        mode="shadow" if held else "guarded",
        reward_window=window,
        history=(np.array([x for x, _ in logged]), [y for _, y in logged]) if history else None,
        clock=clock,
        snapshot_every=97,
    )
    asked = rounds_of(policy, world, seed)
    for round_ in range(rounds):
        clock.now += 1.0
        if held and round_ in (10, 70, 80):
            experiment.set_mode("paused" if round_ == 70 else "guarded", reason="a test")
        question, reward = next(asked)
        answer = experiment.book(**question) if held and round_ % 23 == 22 else experiment.decide(**question)
        if rng.random() >= lost:
            waiting.append((answer.decision_id, reward(answer.action)))
        elif window is None:  # lost for a reason that has nothing to do with anything
            experiment.abandon(answer.decision_id, reason="a test")
        while len(waiting) > lag:
            experiment.reward(*waiting.pop(int(rng.integers(len(waiting)))))
    experiment.reward("nobody", 1.0)
    return journal
