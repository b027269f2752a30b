"""Settings in which the theorems apply, and the paper's quantities worked out apart from the code under test."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st

from surefoot import theory
from surefoot.arrays import Matrix, Vector


def setting(**values: Any) -> dict[str, Any]:
    return values


ODD = setting(dim=50, delta=0.02, noise=0.7, ridge=0.3, theta_bound=1.3, feature_bound=2.5)
PLAIN = setting(dim=3, delta=0.001, noise=1.0, ridge=1.0, theta_bound=2.0, feature_bound=1.0)
SAFE = setting(alpha=0.01, reward_floor=0.4)
MODELS = [
    ODD,
    PLAIN,
    {**ODD, "ridge": 6.25},
    {**PLAIN, "noise": 0.0, "ridge": 1e-6, "dim": 2},
    {**PLAIN, "ridge": 0.15},
]


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, float]:
    """A setting in which Theorems 2 and 4 apply: lambda from D^2 down to a trillionth of it."""
    D = draw(log_uniform(0.01, 100))
    floor = draw(st.floats(0.01, 1))
    return setting(
        d=draw(st.integers(2, 60)),
        alpha=draw(st.floats(0.005, 0.99)),
        delta=draw(log_uniform(1e-9, 0.99)),
        sigma=draw(st.just(0.0) | log_uniform(1e-6, 10)),
        lam=D * D * draw(st.just(1.0) | log_uniform(1e-12, 1)),
        B=draw(log_uniform(1e-3, 1e3)),
        D=D,
        floor=floor,
        gap=draw(st.floats(0, 1)) * (1 - floor),
    )


def rounds_bound(p: dict[str, float], *, known: bool) -> float:
    shared = setting(
        dim=int(p["d"]), alpha=p["alpha"], delta=p["delta"], noise=p["sigma"], ridge=p["lam"], theta_bound=p["B"]
    )
    shared.update(feature_bound=p["D"], reward_floor=p["floor"])
    if known:
        return theory.conservative_rounds_bound(gap_floor=p["gap"], **shared)
    return theory.clucb2_conservative_rounds_bound(**shared)


def beta(count: Any, p: dict[str, float]) -> Any:
    """The paper's radius in round `count` of those it learns from, on floats or on arrays."""
    log = np.log((1 + count * p["D"] ** 2 / p["lam"]) / p["delta"])
    return p["sigma"] * np.sqrt(p["d"] * log) + math.sqrt(p["lam"]) * p["B"]


def mp_model(model: dict[str, Any]) -> list[Any]:
    names = ("dim", "delta", "noise", "ridge", "theta_bound", "feature_bound")
    return [mpmath.mpf(model[name]) for name in names]


def surprises(rows: Matrix, ridge: float) -> Vector:
    """w of every row in the ridge regression on the rows before it."""
    gram, widths = ridge * np.eye(rows.shape[1]), []
    for x in rows:
        widths.append(math.sqrt(x @ np.linalg.solve(gram, x)))
        gram = gram + np.outer(x, x)
    return np.array(widths)


def greedy_rows(count: int, dim: int, ridge: float, D: float) -> Matrix:
    """Always the direction known least: the sequence for which the lemma is meant."""
    gram, rows = ridge * np.eye(dim), []
    for _ in range(count):
        rows.append(D * np.linalg.eigh(gram)[1][:, 0])
        gram = gram + np.outer(rows[-1], rows[-1])
    return np.array(rows)


BOUNDS: dict[str, Callable[..., float]] = {
    "clucb rounds": theory.conservative_rounds_bound,
    "clucb2 rounds": theory.clucb2_conservative_rounds_bound,
    "clucb regret": lambda **kw: theory.clucb_regret_bound(1_000, **kw),
    "clucb2 regret": lambda **kw: theory.clucb2_regret_bound(1_000, **kw),
}
