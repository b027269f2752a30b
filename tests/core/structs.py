"""The structs of the core that are saved: one of each that has seen something, and how it is used."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from surefoot.arrays import Matrix
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


def policy(dim: int) -> Any:
    """SafeLUCB in the core, after some rounds."""
    told = settings_with(alpha=0.3, noise=0.1, sum_delta=0.01, range_low=0.0, range_high=1.0)
    core, rng = sized("SafeLUCB", dim)(dim, told), np.random.default_rng(dim)
    for _ in range(50):
        rows = rows_of(dim) * rng.uniform(0.5, 1.0, size=(5, 1))
        evidence = core.decide(rows, False, 1, 0.0, 0.2, 0.9, native.FREE)
        core.learn(evidence.features, float(rng.uniform()), evidence.is_learner)
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
        core = PLAYED[dim].copy()
        try:
            core.memory.assign(memory)
        except (TypeError, ValueError):  # it is of the other dimension
            continue
        for order in (native.FREE, native.FREE, native.HOLD):
            evidence = core.decide(rows_of(dim), False, 1, 0.0, 0.2, 0.9, order)
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


PLAYED = {dim: policy(dim) for dim in (3, 4)}
STRUCTS: dict[str, Struct] = {}
for _dim in (3, 4):
    STRUCTS |= {
        f"ridge-{_dim}": Struct(lambda dim=_dim: PLAYED[dim].ridge.copy(), use_ridge),  # type: ignore[misc]
        f"ledger-{_dim}": Struct(lambda dim=_dim: PLAYED[dim].ledger.copy(), use_ledger),  # type: ignore[misc]
        f"memory-{_dim}": Struct(lambda dim=_dim: PLAYED[dim].memory.copy(), use_memory),  # type: ignore[misc]
    }
STRUCTS |= {
    "UCB": Struct(lambda: arms("UCB"), use_arms, load=flat_load),
    "ConservativeUCB": Struct(lambda: arms("ConservativeUCB"), use_arms, load=flat_load),
}
