"""The structs of the core that are saved: one of each that has seen something, and how it is used."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.core import native
from surefoot.linear.ridge import sized
from tests.linear.scoring import settings_with


class Struct(NamedTuple):
    """How one is made, used, saved and loaded."""

    make: Callable[[], Any]
    use: Callable[[Any], None]
    save: Callable[[Any], Any] = lambda state: state.save()
    load: Callable[[Any, Any], None] = lambda state, saved: state.load(saved)


def rows_of(dim: int, count: int = 5) -> Matrix:
    """Rows of length 1, all of them worth something."""
    rows = np.abs(np.random.default_rng(dim).normal(size=(count, dim)))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def policy(dim: int, rounds: int = 50) -> Any:
    """SafeLUCB in the core, after some rounds."""
    told = settings_with(alpha=0.3, noise=0.1, sum_delta=0.01, range_low=0.0, range_high=1.0)
    core, rng = sized("SafeLUCB", dim)(dim, told), np.random.default_rng(dim)
    for _ in range(rounds):
        rows = rows_of(dim) * rng.uniform(0.5, 1.0, size=(5, 1))
        *_, evidence = core.decide(rows, False, 1, 0.0, 0.2, 0.9, native.FREE)
        core.learn(evidence.features, float(rng.uniform()), evidence.is_learner)
    return core


@cache
def saved_parts(dim: int) -> dict[str, Vector]:
    """What ridge, ledger and memory have saved; numbers alone, since the core's objects should not outlive a test."""
    core = policy(dim)
    return {name: getattr(core, name).save() for name in PARTS}


def restored(dim: int) -> Any:
    """The same policy, quickly."""
    core = policy(dim, rounds=0)
    for name, saved in saved_parts(dim).items():
        getattr(core, name).load(saved)
    return core


def use_ridge(ridge: Any) -> None:
    rows = rows_of(ridge.dim)
    for _ in range(40):
        ridge.absorb(rows[0], 0.3)
    ridge.refresh()
    ridge.choose_dual(settings_with(radius=3), rows[1])
    _ = ridge.gram, ridge.moment, ridge.log_det, ridge.count, ridge.width(rows[0]), ridge.guarded_radius(1.0)
    for radius in range(5):
        ridge.radius(settings_with(radius=radius))


def use_ledger(ledger: Any) -> None:
    rows = rows_of(ledger.played.size)
    ledger.book_learner(rows[0], rows[1], 0.2)
    ledger.book_baseline(rows[1], 0.2)
    _ = ledger.learner_rounds, ledger.baseline_rounds, ledger.conserved, ledger.displaced, ledger.conserved_reward


def use_memory(memory: Any) -> None:
    for dim in (3, 4):
        core = restored(dim)
        try:
            core.memory.assign(memory)
        except (TypeError, ValueError):  # it is of the other dimension
            continue
        for order in (native.FREE, native.FREE, native.HOLD):
            *_, evidence = core.decide(rows_of(dim), False, 1, 0.0, 0.2, 0.9, order)
            _ = evidence.split
            core.learn(evidence.features, 0.3, True)


def arms(rule: str) -> Any:
    core = getattr(native, rule)(arms=3, noise=0.5, alpha=0.3, delta=0.1, known=-1.0)
    for round_ in range(1, 9):
        arm, *_ = core.decide(0, round_, native.FREE)
        core.learn(arm, 0.1 * round_)
    return core


def use_arms(core: Any) -> None:
    for round_ in range(9, 15):
        arm, *_ = core.decide(1, round_, native.FREE)
        core.learn(max(arm, 0), 0.3)


def flat_load(core: Any, saved: Any) -> None:
    core.load(np.ascontiguousarray(saved, dtype=np.float64).ravel() if isinstance(saved, np.ndarray) else saved)


def part_of(name: str, dim: int) -> Any:
    return getattr(restored(dim), name).copy()


PARTS = {"ridge": use_ridge, "ledger": use_ledger, "memory": use_memory}
STRUCTS = {f"{name}-{dim}": Struct(partial(part_of, name, dim), use) for dim in (3, 4) for name, use in PARTS.items()}
STRUCTS |= {rule: Struct(partial(arms, rule), use_arms, load=flat_load) for rule in ("UCB", "ConservativeUCB")}
