"""Worlds, from which simulations draw: realisations, the baseline that plays in them, and distributions over them.

Most worlds are linear, as policies assume; `DriftingWorld` and `MisspecifiedWorld` break the model.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count, finite_array, nonnegative, positive
from surefoot.errors import ConfigError, InputError
from surefoot.simulation.policy_specs import Problem
from surefoot.simulation.rewards import Gaussian, Rewards, RoundDraws

Instance = Literal["as-written", "normalized"]


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
        choices = [self.rank is not None, self.action is not None, self.policy is not None]
        if sum(choices) != 1:
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


class Realisation:
    """One drawn world: a theta, bounds that hold for it, and its rounds.

    Everything random comes from generators that belong to one realisation and one purpose (features, noise, delays), so
    rounds taken one by one or in blocks, on one thread or many, are the same to the bit.

    Parameters
    ----------
    theta : ndarray of shape (dim,)
        The true theta.
    rows : ndarray of shape (actions, dim), optional
        Feature rows that are the same in every round.
    draw : callable, optional
        A function from a generator to the feature rows of one round, in place of `rows`.
    means : callable, optional
        A function from features (rounds, actions, dim) and the number of their first round to mean rewards, for worlds
        that are not linear; by default <theta, features>.
    rewards, baseline, delay
        As in `World`.
    theta_bound, feature_bound : float
        Bounds on the length of theta and of every row.
    seed : numpy.random.SeedSequence
        Seed of the realisation.
    misspecification : float
        Declared bound on how far means may lie from <theta, features>.

    Examples
    --------
    >>> (run,) = PaperWorld().realisations(seed=0, runs=[0])
    >>> run.rows.shape, run.take(3).draws.shape
    ((100, 4), (3,))
    """

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
        rows: Matrix | None = None,
        draw: Callable[[np.random.Generator], Matrix] | None = None,
        means: Callable[[NDArray[np.float64], int], Matrix] | None = None,
        misspecification: float = 0.0,
    ) -> None:
        self.theta = theta
        self.rewards = rewards
        self.baseline = baseline
        self.theta_bound = theta_bound
        self.feature_bound = feature_bound
        self.misspecification = misspecification
        self.rows: Any = rows
        self._draw, self._means = draw, means
        self._delay = delay
        self._seed = seed
        self._noise = RoundDraws(int(child(seed, 1).generate_state(1, np.uint64)[0]))
        self._round = 1

    @property
    def noise_seed(self) -> int:
        """Seed of the randomness of its rewards, one number for every round."""
        return self._noise.seed

    # A generator takes as long to make as hundreds of rounds to play, and few worlds need these two.
    @cached_property
    def _feature_rng(self) -> np.random.Generator:
        return np.random.default_rng(child(self._seed, 0))

    @cached_property
    def _delay_rng(self) -> np.random.Generator:
        return np.random.default_rng(child(self._seed, 2))

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
        if self._draw is None:
            features = self.rows[None]
        else:
            features = np.stack([self._draw(self._feature_rng) for _ in range(rounds)])
        means = features @ self.theta if self._means is None else self._means(features, self._round)
        self._round += rounds
        self.rewards.check(means)
        rows = [self.baseline.row(x, m) for x, m in zip(features, means, strict=True)]
        baselines = np.ascontiguousarray(np.broadcast_to(np.array(rows, dtype=np.int64), (rounds,)))
        draws = self.rewards.draw(self._noise, rounds)
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


@dataclass(frozen=True)
class World(ABC):
    """A distribution over realisations: the base of all worlds.

    A world of your own is a frozen dataclass that defines `realise`; `fixed` says whether rows stay the same, and means
    with them. `parts(seed)` gives `realise` a generator and what every realisation takes.

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
    ...         rng, shared = self.parts(seed)
    ...         rows = rng.random((self.actions, self.dim)) / self.dim
    ...         theta = np.full(self.dim, 0.5)
    ...         return Realisation(rows=rows, theta=theta, theta_bound=1.0, feature_bound=1.0, **shared)
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

    def parts(self, seed: np.random.SeedSequence) -> tuple[np.random.Generator, dict[str, Any]]:
        """What `realise` needs: a generator of its own, and the arguments that every realisation takes.

        Parameters
        ----------
        seed : numpy.random.SeedSequence
            Of this realisation.

        Returns
        -------
        (numpy.random.Generator, dict)
            The generator, and rewards, baseline, delay and seed for `Realisation`.
        """
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

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw theta, then rows until enough have a positive mean reward."""
        rng, shared = self.parts(seed)
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
        return Realisation(rows=rows, theta=theta, theta_bound=theta_bound, feature_bound=feature_bound, **shared)


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

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw theta on a sphere such that every mean reward lies in [0, 1], whatever rows come."""
        rng, shared = self.parts(seed)
        theta = rng.standard_normal(self.dim)
        if self.sign == "nonnegative":
            theta = np.abs(theta) / np.linalg.norm(theta)
        else:  # rows are (1, u) / sqrt(2) with ||u|| = 1: means are (t_0 + <t, u>) / sqrt(2) with t_0 = ||t||
            theta[0] = np.linalg.norm(theta[1:])
            theta = theta / (math.sqrt(2) * theta[0])
        draw = nonnegative_rows if self.sign == "nonnegative" else intercept_rows
        return Realisation(
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

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw the mean reward of every arm."""
        rng, shared = self.parts(seed)
        theta = self.low + (self.high - self.low) * rng.random(self.actions)
        bound = self.high * math.sqrt(self.actions)
        return Realisation(rows=np.eye(self.actions), theta=theta, theta_bound=bound, feature_bound=1.0, **shared)


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
        _, shared = self.parts(seed)
        theta = finite_array("theta", np.array(self.theta, dtype=np.float64), ndim=1)
        bound = float(np.linalg.norm(theta))
        return Realisation(
            draw=self._checked_rows,
            means=None if self.means is None else self._checked_means,
            theta=theta,
            theta_bound=bound,
            feature_bound=self.feature_bound,
            **shared,
        )

    def _checked_rows(self, rng: np.random.Generator) -> Matrix:
        assert self.function is not None
        rows = finite_array("features", self.function(rng), ndim=2)
        if rows.shape != (self.actions, self.dim):
            raise InputError(f"`function` must return shape {(self.actions, self.dim)}, but returned {rows.shape}.")
        return rows

    def _checked_means(self, features: NDArray[np.float64], first: int) -> Matrix:
        assert self.means is not None
        means = np.stack([finite_array("means", self.means(rows), ndim=1) for rows in features])
        if means.shape[1] != features.shape[1]:
            raise InputError(f"`means` must return {features.shape[1]} numbers, but returned {means.shape[1]}.")
        return means


@dataclass(frozen=True)
class DriftingWorld(World):
    """Theta moves between two points and back, so that what was learned grows old; rows are new in every round.

    Every mean reward lies in [0, 1], ||theta|| <= 1 at all times, and rows have length 1: what is declared stays true,
    except that there is one theta.

    Parameters
    ----------
    dim, actions, baseline, rewards, delay
        As in `World`.
    period : float
        Rounds from the first theta to the other and back.
    drift : {"wave", "jump"}
        Along a cosine, or from one to the other at once in the middle of each period.

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> (run,) = DriftingWorld(period=100, drift="jump").realisations(seed=1, runs=[0])
    >>> block = run.take(60)
    >>> is_first = np.isclose(block.means, block.features @ run.theta).all(axis=1)    # `theta` is that of round 1
    >>> bool(is_first[:50].all()), bool(is_first[50:].any())
    (True, False)
    """

    actions: int = 20
    dim: int = 8
    baseline: Baseline = field(default_factory=lambda: Baseline(rank=3))
    period: float = 10_000.0
    drift: Literal["wave", "jump"] = "wave"
    fixed = False

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("period", self.period, hint="period is the number of rounds after which theta is back.")
        if self.drift not in ("wave", "jump"):
            raise ConfigError(f"`drift` must be 'wave' or 'jump', but got {self.drift!r}.")

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw the two thetas, each of length 1 and nonnegative."""
        rng, shared = self.parts(seed)
        ends = nonnegative_rows(rng, 2, self.dim)

        def means(features: NDArray[np.float64], first: int) -> Matrix:
            shares = [self._share(first + t) for t in range(len(features))]
            thetas = np.array([(1 - share) * ends[0] + share * ends[1] for share in shares])
            return np.asarray(np.einsum("tad,td->ta", features, thetas), dtype=np.float64)

        return Realisation(
            draw=lambda features: nonnegative_rows(features, self.actions, self.dim),
            means=means,
            theta=ends[0],
            theta_bound=1.0 + 1e-9,  # both ends have length 1 up to rounding, and nothing between is longer
            feature_bound=1.0 + 1e-9,
            **shared,
        )

    def _share(self, round_: int) -> float:
        """How far theta has moved from the first point to the other, from 0 to 1."""
        turn = (round_ - 1) / self.period % 1.0
        return float(turn >= 0.5) if self.drift == "jump" else 0.5 - 0.5 * math.cos(2 * math.pi * turn)


@dataclass(frozen=True)
class MisspecifiedWorld(World):
    """Mean rewards are <theta, phi> plus an error that depends on the row, at most epsilon: no linear model is right.

    Rows are new in every round, of length 1 with an intercept, and every mean reward lies in [0, 1].

    Parameters
    ----------
    dim, actions, baseline, rewards, delay
        As in `World`.
    epsilon : float
        Largest error of a mean reward; below 1/2.
    declared : bool
        Whether policies are told of it: SafeLUCB as its `misspecification`, factories by `Problem.misspecification`.
        The paper's policies have no such setting.
    waves : float
        How often the error changes its sign along one direction; many look like noise, few like another theta.

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> (run,) = MisspecifiedWorld(epsilon=0.05).realisations(seed=1, runs=[0])
    >>> block = run.take(200)
    >>> bool(0.04 < abs(block.means - block.features @ run.theta).max() <= 0.05)
    True
    """

    actions: int = 20
    dim: int = 8
    baseline: Baseline = field(default_factory=lambda: Baseline(rank=3))
    epsilon: float = 0.05
    declared: bool = True
    waves: float = 3.0
    fixed = False

    def __post_init__(self) -> None:
        super().__post_init__()
        nonnegative("epsilon", self.epsilon, hint="epsilon bounds the error of every mean reward.")
        nonnegative("waves", self.waves, hint="waves says how often the error changes its sign.")
        if self.epsilon >= 0.5:
            raise ConfigError(f"`epsilon < 0.5` must hold, so that means fit into [0, 1], but got {self.epsilon}.")
        if not isinstance(self.declared, bool):
            raise ConfigError(f"`declared` must be true or false, but got {self.declared!r}.")

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw theta such that <theta, phi> covers [epsilon, 1 - epsilon], and the direction of the error."""
        rng, shared = self.parts(seed)
        theta, along = rng.standard_normal(self.dim), rng.standard_normal(self.dim)
        # Rows are (1, u) / sqrt(2) with ||u|| = 1: the intercept gives 1/2, and the others at most 1/2 - epsilon.
        theta[0] = 0.5
        theta[1:] *= (0.5 - self.epsilon) / np.linalg.norm(theta[1:])
        theta *= math.sqrt(2)
        along[0] = 0.0
        slope = self.waves * math.pi * along / np.linalg.norm(along)

        def means(features: NDArray[np.float64], first: int) -> Matrix:
            error = self.epsilon * np.sin(math.sqrt(2) * features @ slope)
            return np.asarray(features @ theta + error, dtype=np.float64)

        return Realisation(
            draw=lambda features: intercept_rows(features, self.actions, self.dim),
            means=means,
            theta=theta,
            theta_bound=float(np.linalg.norm(theta)),
            feature_bound=1.0 + 1e-9,
            misspecification=self.epsilon if self.declared else 0.0,
            **shared,
        )


# By their names in a sweep's file and in Gymnasium ids.
WORLDS: dict[str, type[World]] = {
    "paper": PaperWorld,
    "contextual": ContextualWorld,
    "arms": ArmsWorld,
    "drifting": DriftingWorld,
    "misspecified": MisspecifiedWorld,
}


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


def child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """The child that `seed.spawn` gives there, without changing `seed`, so that it draws the same world again."""
    key = (*seed.spawn_key, number)
    return np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size)
