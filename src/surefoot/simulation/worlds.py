"""Worlds: what happens outside the policy. A world draws realisations; a realisation unrolls round by round.

Everything random comes from generators that belong to one realisation and one purpose (its features, its noise, its
delays), so that rounds taken one by one or in blocks, on one thread or many, are the same rounds to the bit.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count, finite_array, positive
from surefoot.errors import ConfigError, InputError
from surefoot.simulation.rewards import Gaussian, Rewards

Instance = Literal["as-written", "normalized"]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some consecutive rounds of one realisation; fixed features have one entry for all rounds.

    features (rounds or 1, actions, dim), means (rounds or 1, actions), baselines, draws and delays (rounds)
    """

    features: NDArray[np.float64]
    means: Matrix
    baselines: NDArray[np.int64]
    draws: Vector
    delays: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the company plays today: the action of a rank (1 the best), a fixed action, or a policy of one's own.

    A policy is a function from the feature rows of a round to the row it plays.
    """

    rank: int | None = None
    action: int | None = None
    policy: Callable[[Matrix], int] | None = None

    def __post_init__(self) -> None:
        given = [self.rank is not None, self.action is not None, self.policy is not None]
        if sum(given) != 1:
            raise ConfigError("A baseline must be given by exactly one of `rank`, `action` and `policy`.")
        if self.rank is not None:
            count("rank", self.rank, hint="rank 1 is the action with the best mean reward.")
        if self.action is not None:
            count("action", self.action, least=0, hint="action is a row of the features.")

    def check(self, actions: int) -> None:
        """Raise where this baseline cannot exist among so many actions."""
        if self.rank is not None and not 1 <= self.rank <= actions:
            raise ConfigError(f"`1 <= rank <= {actions}` must hold for {actions} actions, but got rank={self.rank}.")
        if self.action is not None and not 0 <= self.action < actions:
            raise ConfigError(f"`0 <= action < {actions}` must hold for {actions} actions, but got {self.action}.")

    def row(self, features: Matrix, means: Vector) -> int:
        """The row that it plays."""
        if self.rank is not None:
            return int(np.argsort(-means, kind="stable")[self.rank - 1])
        if self.action is not None:
            return self.action
        assert self.policy is not None
        row = int(self.policy(features))
        if not 0 <= row < len(means):
            raise InputError(f"`0 <= row < {len(means)}` must hold for a baseline's policy, but it returned {row}.")
        return row


class Realisation(ABC):
    """One drawn world: a theta, bounds that hold in it, and its rounds."""

    def __init__(
        self,
        *,
        theta: Vector,
        rewards: Rewards,
        baseline: Baseline,
        theta_bound: float,
        feature_bound: float,
        delay: float,
        seed: np.random.SeedSequence,
    ) -> None:
        self.theta = theta
        self.rewards = rewards
        self.baseline = baseline
        self.theta_bound = theta_bound
        self.feature_bound = feature_bound
        self._delay = delay
        streams = _children(seed, 3)
        self._feature_rng, self._noise_rng, self._delay_rng = (np.random.default_rng(stream) for stream in streams)

    @abstractmethod
    def _features(self, rounds: int) -> NDArray[np.float64]:
        """Feature rows of the next rounds."""

    def _means(self, features: NDArray[np.float64]) -> Matrix:
        means: Matrix = features @ self.theta
        return means

    def take(self, rounds: int) -> Block:
        """The next rounds."""
        features = self._features(rounds)
        means = self._means(features)
        self.rewards.check(means)
        rows = [self.baseline.row(x, m) for x, m in zip(features, means, strict=True)]
        baselines = np.broadcast_to(np.array(rows, dtype=np.int64), (rounds,)).copy()
        draws = self.rewards.draw(self._noise_rng, rounds)
        delays = np.zeros(rounds, dtype=np.int64)
        if self._delay > 0:  # an exponential number rounded down is geometric, and has this mean with this scale
            scale = 1.0 / math.log1p(1.0 / self._delay)
            delays = np.floor(-scale * np.log1p(-self._delay_rng.random(rounds))).astype(np.int64)
        return Block(features, means, baselines, draws, delays)

    def settings(self, *, ridge: float, delta: float) -> dict[str, float]:
        """What a linear policy is told of this world."""
        return {
            "delta": delta,
            "noise": self.rewards.noise,
            "ridge": ridge,
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
        }


class FixedRealisation(Realisation):
    """The same feature rows in every round."""

    def __init__(self, *, rows: Matrix, **rest: Any) -> None:
        super().__init__(**rest)
        self.rows = rows

    def _features(self, rounds: int) -> NDArray[np.float64]:
        return self.rows[None]


class FreshRealisation(Realisation):
    """New feature rows in every round, from a function of a generator."""

    def __init__(self, *, draw: Callable[[np.random.Generator], Matrix], **rest: Any) -> None:
        super().__init__(**rest)
        self._draw = draw

    def _features(self, rounds: int) -> NDArray[np.float64]:
        return np.stack([self._draw(self._feature_rng) for _ in range(rounds)])


@dataclass(frozen=True)
class World(ABC):
    """A distribution over realisations. `delay` is the mean number of rounds after which a reward arrives."""

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
        """Draw one realisation; the same seed draws the same one."""

    def realisations(self, seed: int, runs: Sequence[int]) -> list[Realisation]:
        """The realisations of some run numbers: run 7 is the same whichever others are asked for."""
        return [self.realise(np.random.SeedSequence(seed, spawn_key=(run,))) for run in runs]

    def _parts(self, seed: np.random.SeedSequence) -> tuple[np.random.Generator, dict[str, Any]]:
        own, rest = _children(seed, 2)
        shared = {"rewards": self.rewards, "baseline": self.baseline, "delay": self.delay, "seed": rest}
        return np.random.default_rng(own), shared


@dataclass(frozen=True)
class PaperWorld(World):
    """Section 5: fixed features and theta from N(0, I), every mean reward positive, a baseline of rank 10.

    instance="as-written" keeps them as drawn, so that means are not in [0, 1] as Assumption 2 asks; "normalized"
    divides theta by the best mean reward, so that the best action pays 1. B = ||theta||, D = max ||phi|| in both.
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
            more = rng.standard_normal((2 * self.actions, self.dim))
            rows = np.concatenate([rows, more[more @ theta > 0]])
        rows = np.ascontiguousarray(rows[: self.actions])
        if self.instance == "normalized":
            theta = theta / (rows @ theta).max()
        theta_bound, feature_bound = float(np.linalg.norm(theta)), float(np.linalg.norm(rows, axis=1).max())
        return FixedRealisation(rows=rows, theta=theta, theta_bound=theta_bound, feature_bound=feature_bound, **shared)


@dataclass(frozen=True)
class ContextualWorld(World):
    """New features every round: nonnegative rows, so that means lie in [0, 1]; or of any sign, with an intercept."""

    actions: int = 20
    dim: int = 8
    sign: Literal["nonnegative", "any"] = "nonnegative"
    fixed = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sign not in ("nonnegative", "any"):
            raise ConfigError(f"`sign` must be 'nonnegative' or 'any', but got {self.sign!r}.")

    def realise(self, seed: np.random.SeedSequence) -> FreshRealisation:
        """Draw theta on a sphere such that every mean reward lies in [0, 1] whatever rows come; rows have length 1."""
        rng, shared = self._parts(seed)
        theta = rng.standard_normal(self.dim)
        if self.sign == "nonnegative":
            theta = np.abs(theta) / np.linalg.norm(theta)
        else:  # rows are (1, u) / sqrt(2) with ||u|| = 1: means are (t_0 + <t, u>) / sqrt(2) with t_0 = ||t||
            theta[0] = np.linalg.norm(theta[1:])
            theta = theta / (math.sqrt(2) * theta[0])
        draw = _nonnegative_rows if self.sign == "nonnegative" else _intercept_rows
        return FreshRealisation(
            draw=lambda features: draw(features, self.actions, self.dim),
            theta=theta,
            theta_bound=float(np.linalg.norm(theta)),
            feature_bound=1.0 + 1e-9,
            **shared,
        )


@dataclass(frozen=True)
class ArmsWorld(World):
    """Plain arms, one-hot features, mean rewards uniform in [low, high]."""

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
    """A world from a plain function of a generator that returns this round's feature rows, and a given theta.

    `means`, where given, replaces <theta, phi>: a world that is not linear, to see what then happens.
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
        """The function's rounds, each realisation with its own generator."""
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


def _children(seed: np.random.SeedSequence, number: int) -> list[np.random.SeedSequence]:
    """What `seed.spawn` first gives, without changing `seed`: the same seed draws the same world again."""
    keys = [(*seed.spawn_key, child) for child in range(number)]
    return [np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size) for key in keys]


def _nonnegative_rows(rng: np.random.Generator, actions: int, dim: int) -> Matrix:
    rows = np.abs(rng.standard_normal((actions, dim)))
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _intercept_rows(rng: np.random.Generator, actions: int, dim: int) -> Matrix:
    rows = rng.standard_normal((actions, dim))
    rows[:, 0] = 0.0
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[:, 0] = 1.0
    halved: Matrix = rows / math.sqrt(2)
    return halved
