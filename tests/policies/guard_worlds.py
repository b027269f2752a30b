"""Worlds in which a guard must keep its promise: constant, drifting, and made by an adversary who knows the share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.simulation.guard_simulation import GuardWorld
from tests.worlds import Array

Made = Callable[[], GuardWorld]


def constant(learner: Any, baseline: Any) -> Made:
    return lambda: lambda t, share, rng: (learner, baseline)


def drifting(means: Callable[[int], tuple[Any, Any]]) -> Made:
    return lambda: lambda t, share, rng: means(t)


def knowing(means: Callable[[Array], tuple[Any, Any]]) -> Made:
    """An adversary that answers to the share of the round."""
    return lambda: lambda t, share, rng: means(share)


def trap(level: float) -> Made:
    """Good until it is trusted so far, then worthless for ever."""

    def made() -> GuardWorld:
        sprung: list[Any] = []

        def world(t: int, share: Array, rng: np.random.Generator) -> tuple[Any, Any]:
            if not sprung:
                sprung.append(np.zeros(share.shape, dtype=bool))
            sprung[0] |= share >= level
            return np.where(sprung[0], 0.0, 0.6), 0.3

        return world

    return made


def sawtooth(learner: float, baseline: float) -> Made:
    """Plays dead whenever the share is above where it was a hundred rounds ago."""

    def made() -> GuardWorld:
        past: list[Array] = []

        def world(t: int, share: Array, rng: np.random.Generator) -> tuple[Any, Any]:
            past.append(share.copy())
            before = past[max(0, t - 100)]
            return np.where(share > before + 1e-9, 0.0, learner), np.where(share > before + 1e-9, 1.0, baseline)

        return world

    return made


def random_walk(t: int, share: Array, rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.random(share.shape), rng.random(share.shape)


WORLDS: dict[str, Made] = {
    "better": constant(0.4, 0.3),
    "equal": constant(0.3, 0.3),
    "just at the floor": constant(0.27, 0.3),
    "just below the floor": constant(0.26, 0.3),
    "worthless": constant(0.0, 0.3),
    "worthless beside a perfect baseline": constant(0.0, 1.0),
    "a baseline that earns nothing": constant(0.5, 0.0),
    "rare, better": constant(0.03, 0.02),
    "rare, worse": constant(0.01, 0.02),
    "certain": constant(1.0, 1.0),
    "a rising baseline": drifting(lambda t: (0.4, 0.3 if t < 700 else 0.9)),
    "a falling learner": drifting(lambda t: (0.6 if t < 700 else 0.0, 0.4)),
    "seasons": drifting(lambda t: (0.4, 0.3 + 0.25 * np.sin(2 * np.pi * t / 700))),
    "good and bad by turns": drifting(lambda t: (0.5 if (t // 400) % 2 == 0 else 0.05, 0.3)),
    "slowly worse": drifting(lambda t: (max(0.0, 0.6 - t / 3000), 0.3)),
    "random means": lambda: random_walk,
    "good until half trusted": trap(0.5),
    "good until trusted": trap(0.9),
    "a teaser": knowing(lambda share: (np.where(share >= 0.3, 0.0, 0.9), np.where(share >= 0.3, 0.9, 0.1))),
    "a baseline best when it is not played": knowing(lambda share: (0.3, np.minimum(1.0, share + 0.05))),
    "worst in proportion": knowing(lambda share: (np.maximum(0.0, 0.8 - share), 0.4)),
    "worthless above alpha": knowing(
        lambda share: (np.where(share > 0.11, 0.0, 1.0), np.where(share > 0.11, 1.0, 0.5))
    ),
    "a sawtooth": sawtooth(0.6, 0.3),
    "another sawtooth": sawtooth(0.9, 0.1),
}


def teased(level: float) -> Made:
    """Agrees and pays well while the share is small; above it differs, and is worthless beside a perfect baseline."""
    return knowing(
        lambda share: (np.zeros(share.size), np.where(share >= level, 1.0, 0.6), share < level)  # type: ignore[arg-type, return-value]
    )


def by_lot(chance: float, means: Callable[[int], tuple[Any, Any]]) -> Made:
    """Agrees by lot; its means are of the round."""
    return lambda: lambda t, share, rng: (*means(t), rng.random(share.size) < chance)


def spent_at_once(rounds: int) -> Made:
    """Agreement that pays for so many rounds, and then a worthless proposal beside a perfect baseline, for ever."""
    return lambda: lambda t, share, rng: (0.0, 1.0, np.full(share.size, t < rounds))


def sprung(level: float) -> Made:
    """Half agrees, and the proposals are good, until they are trusted; then no round agrees and all are worthless."""

    def made() -> GuardWorld:
        is_sprung: list[Any] = []

        def world(t: int, share: Array, rng: np.random.Generator) -> tuple[Any, Any, Any]:
            if not is_sprung:
                is_sprung.append(np.zeros(share.shape, dtype=bool))
            is_sprung[0] |= share >= level
            agrees = ~is_sprung[0] & (rng.random(share.size) < 0.5)
            return np.where(is_sprung[0], 0.0, 0.6), np.where(is_sprung[0], 1.0, 0.3), agrees

        return world

    return made


# Worlds that turn on what rounds that agree bring.
CREDIT_WORLDS: dict[str, Made] = {
    "agreement that stops": spent_at_once(600),
    "income that dries up": by_lot(0.7, lambda t: (0.2, 0.9 if t < 500 else 0.02)),
    "income beside a bad proposal": by_lot(0.5, lambda t: (0.1, 0.5)),
    "a rising baseline": by_lot(0.5, lambda t: (0.4, 0.2 if t < 700 else 0.95)),
    "agrees until it is trusted": sprung(0.6),
    "agrees while it is not": teased(0.3),
    "agrees while it is not, from alpha on": teased(0.11),
    "agreement by turns": lambda: lambda t, share, rng: (0.2, 0.7, np.full(share.size, (t // 150) % 2 == 0)),
}
