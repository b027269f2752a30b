"""Slow references for SafeLUCB, straight from the formulas, without incremental state: no code shared with surefoot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

from tests.worlds import Array


@dataclass(frozen=True)
class Data:
    """Observations and what is assumed of them."""

    rows: Array
    rewards: Array
    noise: float
    delta: float
    ridge: float
    theta_bound: float
    feature_bound: float = 1.0
    misfit: float = 0.0

    def gram(self, ridge: float | None = None, *, count: int | None = None) -> Array:
        """X^T X + a I."""
        rows = self.rows[:count]
        found: Array = rows.T @ rows + (self.ridge if ridge is None else ridge) * np.eye(self.rows.shape[1])
        return found

    def theta(self, ridge: float | None = None, *, count: int | None = None) -> Array:
        """The ridge estimate at a."""
        moment = self.rows[:count].T @ self.rewards[:count]
        return np.asarray(np.linalg.solve(self.gram(ridge, count=count), moment))

    @property
    def log_det(self) -> float:
        """ln(det V / lambda^d)."""
        sign, value = np.linalg.slogdet(self.gram() / self.ridge)
        assert sign > 0
        return float(value)


def radius(kind: str, data: Data) -> float:
    """beta, as docs/mathematics.md and the papers have it."""
    count, dim = data.rows.shape
    sigma, bound = data.noise, math.sqrt(data.ridge) * data.theta_bound
    if kind == "paper":
        ratio = (1 + (count + 1) * data.feature_bound**2 / data.ridge) / data.delta
        beta = sigma * math.sqrt(dim * math.log(ratio)) + bound
    elif kind == "logdet":
        beta = sigma * math.sqrt(data.log_det + 2 * math.log(1 / data.delta)) + bound
    elif kind == "amm":
        beta = math.sqrt(sigma**2 * (data.log_det + 2 * math.log(1 / data.delta)) + bound**2)
    else:
        total = 0.0
        for s in range(count):
            error = data.rewards[s] - data.theta(count=s) @ data.rows[s]
            leverage = data.rows[s] @ np.linalg.solve(data.gram(count=s + 1), data.rows[s])
            total += float(error**2 * leverage)
        beta = math.sqrt(bound**2 + 2 * sigma**2 * math.log(1 / data.delta) + total)
    return beta + data.misfit * math.sqrt(count)


def dual_root(ridge: float, data: Data) -> float:
    """R^2 + a B^2 - quad(a), with quad(a) = min over theta of ||y - X theta||^2 + a ||theta||^2."""

    def quad(a: float) -> float:
        theta = data.theta(a)
        return float(np.sum((data.rewards - data.rows @ theta) ** 2) + a * theta @ theta)

    event = quad(data.ridge) + data.noise**2 * (data.log_det + 2 * math.log(1 / data.delta))
    return event + ridge * data.theta_bound**2 - quad(ridge)


def dual_lower(q: Array, ridge: float, data: Data) -> float:
    """<theta_a, q> - sqrt(root(a)) ||q||_{V_a^-1}."""
    spread = math.sqrt(dual_root(ridge, data) * float(q @ np.linalg.solve(data.gram(ridge), q)))
    return float(data.theta(ridge) @ q) - spread


@dataclass(frozen=True)
class Ellipse:
    """||factor (theta - center)|| <= 1."""

    center: Array
    factor: Array


def least(q: Array, sets: Sequence[Ellipse], normals: Array, levels: Array) -> float | None:
    """min <theta, q> over all of them by Clarabel, or None where no theta satisfies them all."""
    dim, scale = q.size, float(np.linalg.norm(q)) or 1.0
    blocks = [np.vstack([np.zeros((1, dim)), -known.factor]) for known in sets]
    limits = [np.concatenate([[1.0], -known.factor @ known.center]) for known in sets]
    cones: list[object] = [clarabel.SecondOrderConeT(dim + 1) for _ in sets]
    is_said = np.isfinite(levels)
    if is_said.any():
        lengths = np.linalg.norm(normals[is_said], axis=1)
        blocks.append(-normals[is_said] / lengths[:, None])
        limits.append(-levels[is_said] / lengths)
        cones.append(clarabel.NonnegativeConeT(int(is_said.sum())))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    matrix = sparse.csc_matrix(np.vstack(blocks))
    empty = sparse.csc_matrix((dim, dim))
    found = clarabel.DefaultSolver(empty, q / scale, matrix, np.concatenate(limits), cones, settings).solve()
    if "Infeasible" in str(found.status):
        return None
    return float(q @ np.array(found.x))
