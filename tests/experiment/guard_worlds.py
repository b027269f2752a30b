"""Guards of every kind in experiments: settings, and runs with late rewards, abandons, units and changes of mode."""

from typing import Any

import numpy as np

from surefoot import Guard, ceiling, floor
from surefoot.experiment import Experiment
from surefoot.journal import Journal, open_journal
from tests.experiment.worlds import Clock

SETTINGS: dict[str, dict[str, Any]] = {
    "one metric": {"alpha": 0.3},
    "odd bounds": {"alpha": 0.07, "reward_bounds": (0.5, 2.0), "reserve": 3.0},
    "spending": {"alpha": 0.3, "goal": "save", "baseline_ceiling": 0.6},
    "several metrics": {
        "metrics": {"quality": floor(0, 1, alpha=0.3), "cost": ceiling(0, 2, alpha=0.4, reserve=9.0, default=0.5)}
    },
    "exhausted reserve": {
        "metrics": {"quality": floor(0, 1, alpha=0.3, reserve=4.0), "cost": ceiling(0, 2, alpha=0.4, reserve=4.0)},
        "ramp": "gate",
    },
    "played": {"alpha": 0.3, "promise": "played", "reserve": 20.0},
    "units": {"alpha": 0.4, "unit_window": 6},
    "settled after": {"alpha": 0.3, "settle_after": 4, "default_reward": 0.2},
    "settled at the worst": {"alpha": 0.3, "settle_after": 7},
    "schedule": {"alpha": 0.2, "schedule": (0.05, 0.1, 0.4), "cap": 0.5, "seed": 11},
}


def new_guard(kind: str = "one metric", **settings: Any) -> Guard:
    return Guard(**{"delta": 0.2, **SETTINGS[kind], **settings})


def rewards_of(guard: Guard, rng: np.random.Generator, is_learner: bool) -> list[dict[str, float]]:
    """The learner is better at everything; now and then the metrics come one by one."""
    values = {}
    for name, metric in guard.metrics.items():
        good = rng.random() ** (0.3 if is_learner == (metric.kind == "floor") else 2.0)
        values[name] = metric.low + (metric.high - metric.low) * good
    return [{name: value} for name, value in values.items()] if rng.random() < 0.3 else [values]


def play(experiment: Experiment, guard: Guard, clock: Clock, rounds: int, *, seed: int = 1, lost: float = 0.05) -> None:
    """Rounds whose rewards come in any order, some never; with units, users come back."""
    rng, waiting = np.random.default_rng(seed), list[tuple[str, dict[str, float]]]()
    is_windowed = experiment.settings.reward_window is not None or guard.settings["settle_after"] is not None
    for number in range(rounds):
        clock.now += 1.0
        request: dict[str, Any] = {"baseline": "old", "proposal": "old" if number % 29 == 28 else {"new": [number % 3]}}
        if guard.settings["unit_window"] is not None and rng.random() < 0.8:
            request["unit"] = f"user-{rng.integers(12)}"
        if rng.random() < 0.2:
            request["prediction"] = {name: 0.5 * metric.high for name, metric in guard.metrics.items()}
        decide = experiment.book if number % 31 == 30 else experiment.decide
        answer = decide(**request, decision_id=f"{seed}-{number}")
        if rng.random() >= lost:
            parts = rewards_of(guard, rng, answer.source == "learner")
            waiting += [(answer.decision_id, part) for part in parts if rng.random() < (0.9 if is_windowed else 0.99)]
        elif not is_windowed and "unit" not in request and number % 2:
            experiment.abandon(answer.decision_id, reason="a test")
        while waiting and rng.random() < 0.6:
            experiment.reward(*waiting.pop(int(rng.integers(len(waiting)))))
    for entry in waiting:
        experiment.reward(*entry)


def played(
    kind: str, rounds: int, *, journal: Journal | None = None, window: float | None = None, **settings: Any
) -> tuple[Journal, Experiment, Clock]:
    """An honest experiment with every mode."""
    clock, guard, journal = Clock(), new_guard(kind, **settings), journal or open_journal("memory:")
    experiment = Experiment.create(
        journal, "shop", guard, mode="shadow", reward_window=window, clock=clock, snapshot_every=97
    )
    play(experiment, guard, clock, 10, seed=1)
    experiment.set_mode("guarded", reason="a test")
    play(experiment, guard, clock, rounds // 2, seed=2)
    experiment.set_mode("paused")
    play(experiment, guard, clock, 15, seed=3)
    experiment.set_mode("guarded")
    play(experiment, guard, clock, rounds - rounds // 2, seed=4)
    return journal, experiment, clock
