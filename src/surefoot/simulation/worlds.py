"""Worlds: distributions over realisations (`surefoot.simulation.realisations`), from which simulations draw."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count, finite_array, positive
from surefoot.errors import ConfigError, InputError
from surefoot.simulation.realisations import Baseline as Baseline
from surefoot.simulation.realisations import Block as Block
from surefoot.simulation.realisations import FixedRealisation as FixedRealisation
from surefoot.simulation.realisations import FreshRealisation as FreshRealisation
from surefoot.simulation.realisations import Realisation as Realisation
from surefoot.simulation.realisations import child
from surefoot.simulation.rewards import Gaussian, Rewards

Instance = Literal["as-written", "normalized"]


@dataclass(frozen=True)
class World(ABC):
    """A distribution over realisations: the base of all worlds.

    A world of your own is a frozen dataclass that defines `realise`; `fixed` says whether rows stay the same, and means
    with them. `_parts(seed)` gives `realise` a generator and what every realisation takes.

    Parameters
    ----------
    dim : int
        Number of features of an action.
    actions : int
        Number of actions.
    baseline : Baseline
        What the company plays today.
    rewards : Rewards
        How rewards scatter around their means.
    delay : float
        Mean number of rounds after which a reward arrives.

    Raises
    ------
    ConfigError
        If a number is out of range.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Halves(World):
    ...     def realise(self, seed):
    ...         rng, shared = self._parts(seed)
    ...         rows = rng.random((self.actions, self.dim)) / self.dim
    ...         theta = np.full(self.dim, 0.5)
    ...         return FixedRealisation(rows=rows, theta=theta, theta_bound=1.0, feature_bound=1.0, **shared)
    >>> (run,) = Halves(actions=12).realisations(seed=1, runs=[0])
    >>> run.take(3).means.shape
    (1, 12)
    """

    dim: int = 4
    actions: int = 100
    baseline: Baseline = field(default_factory=lambda: Baseline(rank=10))
    rewards: Rewards = field(default_factory=Gaussian)
    delay: float = 0.0

    fixed = True

    def __post_init__(self) -> None:
        count("dim", self.dim, least=2, hint="dim is the number of features of one action.")
        count("actions", self.actions, least=2, hint="actions is the number of actions.")
        self.baseline.check(self.actions)
        if not (self.delay >= 0 and math.isfinite(self.delay)):
            raise ConfigError(f"`delay >= 0` must hold, but got {self.delay}. It is the mean delay in rounds.")

    @abstractmethod
    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw one realisation.

        Parameters
        ----------
        seed : numpy.random.SeedSequence
            The same seed draws the same realisation.

        Returns
        -------
        Realisation
            The drawn world.
        """

    def realisations(self, seed: int, runs: Sequence[int]) -> list[Realisation]:
        """The realisations of some run numbers; run 7 is the same whichever others are asked for.

        Parameters
        ----------
        seed : int
            Seed of the simulation.
        runs : sequence of int
            Run numbers.

        Returns
        -------
        list of Realisation
            One per run number.
        """
        return [self.realise(np.random.SeedSequence(seed, spawn_key=(run,))) for run in runs]

    def _parts(self, seed: np.random.SeedSequence) -> tuple[np.random.Generator, dict[str, Any]]:
        # Apart, so that the noise stays the same however many numbers a world draws for itself.
        shared = {"rewards": self.rewards, "baseline": self.baseline, "delay": self.delay, "seed": child(seed, 1)}
        return np.random.default_rng(child(seed, 0)), shared


@dataclass(frozen=True)
class PaperWorld(World):
    """Section 5 of the paper: fixed features and theta from N(0, I), every mean reward positive, a baseline of rank 10.

    B = ||theta|| and D = max ||phi||.

    Parameters
    ----------
    dim, actions, baseline, rewards, delay
        As in `World`.
    instance : {"normalized", "as-written"}
        "normalized" divides theta by the best mean reward, so that the best action pays 1. "as-written" keeps the
        draws, whose means do not lie in [0, 1] as Assumption 2 asks.

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> (run,) = PaperWorld(actions=20).realisations(seed=1, runs=[0])
    >>> round(float(run.take(1).means.max()), 9)
    1.0
    """

    instance: Instance = "normalized"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.instance not in ("as-written", "normalized"):
            raise ConfigError(f"`instance` must be 'as-written' or 'normalized', but got {self.instance!r}.")

    def realise(self, seed: np.random.SeedSequence) -> FixedRealisation:
        """Draw theta, then rows until enough have a positive mean reward."""
        rng, shared = self._parts(seed)
        theta = rng.standard_normal(self.dim)
        rows = np.empty((0, self.dim))
        while len(rows) < self.actions:
            # Half of them have a positive mean, so that one or two passes are enough.
            more = rng.standard_normal((2 * self.actions, self.dim))
            rows = np.concatenate([rows, more[more @ theta > 0]])
        rows = np.ascontiguousarray(rows[: self.actions])
        if self.instance == "normalized":
            # As written, means leave [0, 1], which the theorems assume (docs/errata.md).
            theta = theta / (rows @ theta).max()
        theta_bound, feature_bound = float(np.linalg.norm(theta)), float(np.linalg.norm(rows, axis=1).max())
        return FixedRealisation(rows=rows, theta=theta, theta_bound=theta_bound, feature_bound=feature_bound, **shared)


@dataclass(frozen=True)
class ContextualWorld(World):
    """New feature rows of length 1 in every round, with every mean reward in [0, 1].

    Parameters
    ----------
    dim, actions, baseline, rewards, delay
        As in `World`.
    sign : {"nonnegative", "any"}
        Nonnegative rows, or rows of any sign with an intercept.

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> (run,) = ContextualWorld(sign="any").realisations(seed=1, runs=[0])
    >>> bool((run.take(100).means >= 0).all())
    True
    """

    actions: int = 20
    dim: int = 8
    sign: Literal["nonnegative", "any"] = "nonnegative"
    fixed = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sign not in ("nonnegative", "any"):
            raise ConfigError(f"`sign` must be 'nonnegative' or 'any', but got {self.sign!r}.")

    def realise(self, seed: np.random.SeedSequence) -> FreshRealisation:
        """Draw theta on a sphere such that every mean reward lies in [0, 1], whatever rows come."""
        rng, shared = self._parts(seed)
        theta = rng.standard_normal(self.dim)
        if self.sign == "nonnegative":
            theta = np.abs(theta) / np.linalg.norm(theta)
        else:  # rows are (1, u) / sqrt(2) with ||u|| = 1: means are (t_0 + <t, u>) / sqrt(2) with t_0 = ||t||
            theta[0] = np.linalg.norm(theta[1:])
            theta = theta / (math.sqrt(2) * theta[0])
        draw = nonnegative_rows if self.sign == "nonnegative" else intercept_rows
        return FreshRealisation(
            draw=lambda features: draw(features, self.actions, self.dim),
            theta=theta,
            theta_bound=float(np.linalg.norm(theta)),
            feature_bound=1.0 + 1e-9,  # rows are scaled to length 1, up to rounding
            **shared,
        )


@dataclass(frozen=True)
class ArmsWorld(World):
    """Plain arms: one-hot features, mean rewards uniform in [low, high].

    Parameters
    ----------
    dim, actions, baseline, rewards, delay
        As in `World`; `dim` and `actions` must be equal.
    low, high : float
        Range of the arms' mean rewards.

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> (run,) = ArmsWorld(actions=3, dim=3).realisations(seed=1, runs=[0])
    >>> run.theta.shape
    (3,)
    """

    actions: int = 10
    dim: int = 10
    low: float = 0.0
    high: float = 1.0
    baseline: Baseline = field(default_factory=lambda: Baseline(rank=3))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim != self.actions:
            raise ConfigError(f"`dim == actions` must hold for plain arms, but got {self.dim} and {self.actions}.")
        if not 0 <= self.low < self.high:
            raise ConfigError(f"`0 <= low < high` must hold, but got low={self.low}, high={self.high}.")

    def realise(self, seed: np.random.SeedSequence) -> FixedRealisation:
        """Draw the mean reward of every arm."""
        rng, shared = self._parts(seed)
        theta = self.low + (self.high - self.low) * rng.random(self.actions)
        bound = self.high * math.sqrt(self.actions)
        return FixedRealisation(rows=np.eye(self.actions), theta=theta, theta_bound=bound, feature_bound=1.0, **shared)


@dataclass(frozen=True)
class FunctionWorld(World):
    """A world from a plain function that returns each round's feature rows, and a given theta.

    Parameters
    ----------
    dim, actions, baseline, rewards, delay
        As in `World`.
    function : callable
        A function from a generator to the rows of one round, an array of shape (actions, dim).
    theta : sequence of float
        The true theta, of length `dim`.
    feature_bound : float
        D: bound on the length of every row.
    means : callable, optional
        A function from rows to mean rewards in place of <theta, phi>, for worlds that are not linear.

    Raises
    ------
    ConfigError
        If a setting is invalid or missing.

    Examples
    --------
    >>> world = FunctionWorld(
    ...     dim=2, actions=3, baseline=Baseline(action=0), theta=[0.5, 0.2], function=lambda rng: rng.random((3, 2)) / 2
    ... )
    >>> (run,) = world.realisations(seed=1, runs=[0])
    >>> run.take(4).features.shape
    (4, 3, 2)
    """

    function: Callable[[np.random.Generator], Matrix] | None = None
    theta: Sequence[float] = ()
    feature_bound: float = 1.0
    means: Callable[[Matrix], Vector] | None = None
    fixed = False

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("feature_bound", self.feature_bound, hint="feature_bound bounds the length of every row.")
        if self.function is None or len(self.theta) != self.dim:
            raise ConfigError("`function` must be given, and `theta` must have `dim` entries.")

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """The function's rounds; each realisation has its own generator."""
        _, shared = self._parts(seed)
        theta = finite_array("theta", np.array(self.theta, dtype=np.float64), ndim=1)
        bound = float(np.linalg.norm(theta))
        realisation = _FunctionRealisation(
            draw=self._checked_rows, theta=theta, theta_bound=bound, feature_bound=self.feature_bound, **shared
        )
        realisation.truth = self.means
        return realisation

    def _checked_rows(self, rng: np.random.Generator) -> Matrix:
        assert self.function is not None
        rows = finite_array("features", self.function(rng), ndim=2)
        if rows.shape != (self.actions, self.dim):
            raise InputError(f"`function` must return shape {(self.actions, self.dim)}, but returned {rows.shape}.")
        return rows


class _FunctionRealisation(FreshRealisation):
    truth: Callable[[Matrix], Vector] | None = None

    def _means(self, features: NDArray[np.float64]) -> Matrix:
        if self.truth is None:
            return super()._means(features)
        means = np.stack([finite_array("means", self.truth(rows), ndim=1) for rows in features])
        if means.shape[1] != features.shape[1]:
            raise InputError(f"`means` must return {features.shape[1]} numbers, but returned {means.shape[1]}.")
        return means


def nonnegative_rows(rng: np.random.Generator, actions: int, dim: int) -> Matrix:
    """Rows of length 1 without a negative entry."""
    rows = np.abs(rng.standard_normal((actions, dim)))
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def intercept_rows(rng: np.random.Generator, actions: int, dim: int) -> Matrix:
    """Rows (1, u) / sqrt(2) with ||u|| = 1."""
    rows = rng.standard_normal((actions, dim))
    rows[:, 0] = 0.0
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[:, 0] = 1.0
    halved: Matrix = rows / math.sqrt(2)
    return halved
