"""Realisations: one drawn world, round by round, and the baseline that plays in it.

Everything random comes from generators that belong to one realisation and one purpose (features, noise, delays), so
rounds taken one by one or in blocks, on one thread or many, are the same to the bit.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count
from surefoot.errors import ConfigError, InputError
from surefoot.simulation.problem import Problem
from surefoot.simulation.rewards import Rewards, RoundDraws


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive rounds of one realisation, unrolled; fixed features and means have one entry for all rounds.

    Attributes
    ----------
    features : ndarray of shape (rounds or 1, actions, dim)
        Feature rows.
    means : ndarray of shape (rounds or 1, actions)
        True mean rewards.
    baselines : ndarray of shape (rounds,)
        The row that the baseline plays.
    draws : ndarray of shape (rounds,)
        The randomness of each reward (`Rewards.draw`).
    delays : ndarray of shape (rounds,)
        Rounds after which each reward arrives.

    Examples
    --------
    >>> from surefoot.simulation import ArmsWorld
    >>> (run,) = ArmsWorld(actions=3, dim=3).realisations(seed=0, runs=[0])
    >>> run.take(5).draws.shape
    (5,)
    """

    features: NDArray[np.float64]
    means: Matrix
    baselines: NDArray[np.int64]
    draws: Vector
    delays: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the company plays today: the action of a rank, a fixed action, or a policy of its own.

    Parameters
    ----------
    rank : int, optional
        Rank of the action by its mean reward; 1 is the best.
    action : int, optional
        A row of the features.
    policy : callable, optional
        A function from the feature rows of a round to the row it plays.

    Raises
    ------
    ConfigError
        If not exactly one of them is given, or a number is out of range.

    Examples
    --------
    >>> Baseline(rank=2).row(np.eye(3), np.array([0.1, 0.9, 0.5]))
    2
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
        """Check the baseline against a number of actions.

        Parameters
        ----------
        actions : int
            Number of actions.

        Raises
        ------
        ConfigError
            If its rank or action does not exist among them.
        """
        if self.rank is not None and not 1 <= self.rank <= actions:
            raise ConfigError(f"`1 <= rank <= {actions}` must hold for {actions} actions, but got rank={self.rank}.")
        if self.action is not None and not 0 <= self.action < actions:
            raise ConfigError(f"`0 <= action < {actions}` must hold for {actions} actions, but got {self.action}.")

    def row(self, features: Matrix, means: Vector) -> int:
        """The row that the baseline plays in one round.

        Parameters
        ----------
        features : ndarray of shape (actions, dim)
            The round's feature rows.
        means : ndarray of shape (actions,)
            Their true mean rewards.

        Returns
        -------
        int
            The row.

        Raises
        ------
        InputError
            If the baseline's own policy returns a row that does not exist.
        """
        if self.rank is not None:
            # Stable, so that equal means rank alike everywhere.
            return int(np.argsort(-means, kind="stable")[self.rank - 1])
        if self.action is not None:
            return self.action
        assert self.policy is not None
        row = int(self.policy(features))
        if not 0 <= row < len(means):
            raise InputError(f"`0 <= row < {len(means)}` must hold for a baseline's policy, but it returned {row}.")
        return row


class Realisation(ABC):
    """One drawn world: a theta, bounds that hold for it, and its rounds.

    Worlds make realisations. One of your own defines `_features(rounds)` and, if means are not linear, `_means`.
    """

    misspecification = 0.0  # what policies are told of how far means may lie from <theta, features>

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
        self._seed = seed
        self._noise_rng = RoundDraws(int(child(seed, 1).generate_state(1, np.uint64)[0]))

    @property
    def noise_seed(self) -> int:
        """What the randomness of its rewards is drawn from, a number for every round."""
        return self._noise_rng.seed

    # A generator takes as long to make as hundreds of rounds to play, and few worlds need these two.
    @cached_property
    def _feature_rng(self) -> np.random.Generator:
        return np.random.default_rng(child(self._seed, 0))

    @cached_property
    def _delay_rng(self) -> np.random.Generator:
        return np.random.default_rng(child(self._seed, 2))

    @abstractmethod
    def _features(self, rounds: int) -> NDArray[np.float64]:
        """Feature rows of the next rounds."""

    def _means(self, features: NDArray[np.float64]) -> Matrix:
        means: Matrix = features @ self.theta
        return means

    def take(self, rounds: int) -> Block:
        """The next rounds.

        Parameters
        ----------
        rounds : int
            How many.

        Returns
        -------
        Block
            The rounds. Taken one by one or together, they are the same to the bit.

        Raises
        ------
        ConfigError
            If rewards with these means cannot be drawn.
        """
        features = self._features(rounds)
        means = self._means(features)
        self.rewards.check(means)
        rows = [self.baseline.row(x, m) for x, m in zip(features, means, strict=True)]
        baselines = np.ascontiguousarray(np.broadcast_to(np.array(rows, dtype=np.int64), (rounds,)))
        draws = self.rewards.draw(self._noise_rng, rounds)
        delays = np.zeros(rounds, dtype=np.int64)
        if self._delay > 0:  # an exponential number rounded down is geometric, and has this mean with this scale
            scale = 1.0 / math.log1p(1.0 / self._delay)
            # The generator may give 0 and never 1, so 1 minus it has a logarithm.
            delays = np.floor(-scale * np.log1p(-self._delay_rng.random(rounds))).astype(np.int64)
        return Block(features, means, baselines, draws, delays)

    def problem(self, first: Block, *, seed: int = 0) -> Problem:
        """What a policy may know of this world.

        Parameters
        ----------
        first : Block
            Its first round, or more.
        seed : int
            For a policy that draws.

        Returns
        -------
        Problem
            Sizes, bounds, and the baseline's mean reward in the first round.
        """
        actions, dim = first.features.shape[1:]
        return Problem(
            dim=dim,
            actions=actions,
            noise=self.rewards.noise,
            theta_bound=self.theta_bound,
            feature_bound=self.feature_bound,
            baseline_reward=float(first.means[0, first.baselines[0]]),
            misspecification=self.misspecification,
            seed=seed,
        )

    def settings(self, *, ridge: float, delta: float) -> dict[str, float]:
        """What a linear policy is told of this world.

        Parameters
        ----------
        ridge : float
            Regulariser lambda.
        delta : float
            Probability that the guarantee may fail.

        Returns
        -------
        dict
            delta, noise, ridge, theta_bound and feature_bound, as policies take them.
        """
        return {
            "delta": delta,
            "noise": self.rewards.noise,
            "ridge": ridge,
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
        }


class FixedRealisation(Realisation):
    """A realisation with the same feature rows in every round.

    Parameters
    ----------
    rows : ndarray of shape (actions, dim)
        The feature rows. All other arguments are those of `Realisation`.

    Examples
    --------
    >>> from surefoot.simulation import PaperWorld
    >>> (run,) = PaperWorld().realisations(seed=0, runs=[0])
    >>> run.rows.shape
    (100, 4)
    """

    def __init__(self, *, rows: Matrix, **rest: Any) -> None:
        super().__init__(**rest)
        self.rows = rows

    def _features(self, rounds: int) -> NDArray[np.float64]:
        return self.rows[None]


class FreshRealisation(Realisation):
    """A realisation with new feature rows in every round.

    Parameters
    ----------
    draw : callable
        A function from a generator to the rows of one round. All other arguments are those of `Realisation`.

    Examples
    --------
    >>> from surefoot.simulation import ContextualWorld
    >>> (run,) = ContextualWorld().realisations(seed=0, runs=[0])
    >>> run.take(3).features.shape
    (3, 20, 8)
    """

    def __init__(self, *, draw: Callable[[np.random.Generator], Matrix], **rest: Any) -> None:
        super().__init__(**rest)
        self._draw = draw

    def _features(self, rounds: int) -> NDArray[np.float64]:
        return np.stack([self._draw(self._feature_rng) for _ in range(rounds)])


def child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """The child that `seed.spawn` gives there, without changing `seed`, so that it draws the same world again."""
    key = (*seed.spawn_key, number)
    return np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size)
