"""Logs whose mean rewards are exactly linear in the context, of every size and rarity, with what is true of each."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.linear.features import Disjoint
from surefoot.replay.log import ContextLog

RATES = (0.004, 0.02, 0.1, 0.3)
ROWS = (500, 2_000, 8_000)


@dataclass(frozen=True)
class World:
    """A log and what is true of it."""

    log: ContextLog
    theta: NDArray[np.float64]
    means: NDArray[np.float64]  # (rows, actions)
    kind: str


def linear_world(
    seed: int, *, rate: float | None = None, rows: int | None = None, skewed: bool | None = None, bent: float = 0.0
) -> World:
    """Clicks at a rate, or rewards with normal noise (rate 0); drawn by the seed where not given.

    Some logs have two columns that hardly differ, so that least squares is of no use along their difference. `bent`
    adds that share of a curve along the first column to every mean.
    """
    rng = np.random.default_rng([18, seed])
    actions, width = int(rng.choice([2, 3, 5])), int(rng.choice([1, 3, 6]))
    rows = int(rng.choice(ROWS)) if rows is None else rows
    rate = float(rng.choice([0.0, *RATES])) if rate is None else rate
    skewed = bool(rng.random() < 0.5) if skewed is None else skewed
    contexts = rng.random((rows, width))
    is_collinear = width >= 3 and rng.random() < 0.3
    if is_collinear:
        contexts[:, 1] = np.clip(contexts[:, 0] + 0.003 * rng.normal(size=rows), 0, 1)
    contexts /= math.sqrt(width)
    base = rate or 0.5
    theta = base / 2 * rng.normal(size=(actions, 1 + width)) * rng.choice([0.3, 1.0])
    # Slopes add up to at most 0.9 of the rate, so that every mean is a probability.
    theta[:, 1:] *= np.minimum(1.0, 0.9 * base / np.maximum(np.abs(theta[:, 1:]).sum(1), 1e-12))[:, None]
    theta[:, 0] = base * rng.uniform(1.0, 1.3, size=actions)
    means = np.hstack([np.ones((rows, 1)), contexts]) @ theta.T
    means += bent * base * ((contexts[:, :1] * math.sqrt(width) - 0.5) ** 2 * 4 - 1 / 3)
    odds = rng.dirichlet(np.full(actions, 3.0)) * 0.7 + 0.3 / actions if skewed else np.full(actions, 1 / actions)
    played = rng.choice(actions, size=rows, p=odds)
    paid = means[np.arange(rows), played]
    drawn = (rng.random(rows) < paid).astype(float)
    rewards = drawn if rate else paid + rng.choice([0.1, 0.5]) * rng.normal(size=rows)
    log = ContextLog(
        contexts=contexts,
        phi=Disjoint(actions=actions, context_dim=width, context_bound=1.0),
        rewards=rewards,
        actions=played,
        baselines=0,
        propensities=odds[played],
    )
    kind = f"rate {rate:g}, {rows} rows, {actions} x {width}{' collinear' if is_collinear else ''}"
    return World(log, theta.ravel(), means, kind)


def nearly_equal(seed: int, *, rows: int, gap: float, effect: float) -> World:
    """Clicks on two actions, of which the new one pays `effect` more or less by the difference of two columns.

    The columns differ by at most `gap`, so that theta is as long as sqrt(2) effect / gap.
    """
    rng = np.random.default_rng([34, seed])
    column, apart = rng.random(rows) * 0.7, rng.uniform(-1, 1, rows)
    contexts, slope = np.stack([column, column + gap * apart], axis=1), effect / gap
    theta = np.array([[0.5, 0.0, 0.0], [0.5, -slope, slope]])
    means = np.hstack([np.ones((rows, 1)), contexts]) @ theta.T
    played = rng.integers(2, size=rows)
    log = ContextLog(
        contexts=contexts,
        phi=Disjoint(actions=2, context_dim=2, context_bound=1.5),
        rewards=(rng.random(rows) < means[np.arange(rows), played]).astype(float),
        actions=played,
        baselines=0,
        propensities=np.full(rows, 0.5),
    )
    return World(log, theta.ravel(), means, f"{rows} rows, gap {gap:g}, effect {effect:g}")
