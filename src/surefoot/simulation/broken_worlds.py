"""Worlds that break the model: one whose theta drifts, and one whose mean rewards are not quite linear."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, nonnegative, positive
from surefoot.errors import ConfigError
from surefoot.simulation.realisations import Baseline, FreshRealisation
from surefoot.simulation.worlds import World, intercept_rows, nonnegative_rows


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
    >>> bool((run.theta_at(1) == run.theta_at(49)).all()), bool((run.theta_at(1) == run.theta_at(51)).all())
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

    def realise(self, seed: np.random.SeedSequence) -> "DriftingRealisation":
        """Draw the two thetas, each of length 1 and nonnegative."""
        rng, shared = self._parts(seed)
        ends = nonnegative_rows(rng, 2, self.dim)
        realisation = DriftingRealisation(
            draw=lambda features: nonnegative_rows(features, self.actions, self.dim),
            theta=ends[0],
            theta_bound=1.0 + 1e-9,  # both ends have length 1 up to rounding, and so has nothing between more
            feature_bound=1.0 + 1e-9,
            **shared,
        )
        realisation.other, realisation.period, realisation.jumps = ends[1], self.period, self.drift == "jump"
        return realisation


class DriftingRealisation(FreshRealisation):
    """A drawn `DriftingWorld`; `theta` is that of the first round."""

    other: Vector
    period: float
    jumps: bool
    _taken = 0

    def theta_at(self, round_: int) -> Vector:
        """The theta of a round, from 1."""
        turn = (round_ - 1) / self.period % 1.0
        share = float(turn >= 0.5) if self.jumps else 0.5 - 0.5 * math.cos(2 * math.pi * turn)
        moved: Vector = (1 - share) * self.theta + share * self.other
        return moved

    def _means(self, features: NDArray[np.float64]) -> Matrix:
        thetas = np.array([self.theta_at(self._taken + t + 1) for t in range(len(features))])
        self._taken += len(features)
        means: Matrix = np.einsum("tad,td->ta", features, thetas)
        return means


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

    def realise(self, seed: np.random.SeedSequence) -> "MisspecifiedRealisation":
        """Draw theta such that <theta, phi> covers [epsilon, 1 - epsilon], and the direction of the error."""
        rng, shared = self._parts(seed)
        theta, along = rng.standard_normal(self.dim), rng.standard_normal(self.dim)
        # Rows are (1, u) / sqrt(2) with ||u|| = 1: the intercept gives 1/2, and the others at most 1/2 - epsilon.
        theta[0] = 0.5
        theta[1:] *= (0.5 - self.epsilon) / np.linalg.norm(theta[1:])
        theta *= math.sqrt(2)
        along[0] = 0.0
        realisation = MisspecifiedRealisation(
            draw=lambda features: intercept_rows(features, self.actions, self.dim),
            theta=theta,
            theta_bound=float(np.linalg.norm(theta)),
            feature_bound=1.0 + 1e-9,
            **shared,
        )
        realisation.epsilon, realisation.slope = self.epsilon, self.waves * math.pi * along / np.linalg.norm(along)
        realisation.misspecification = self.epsilon if self.declared else 0.0
        return realisation


class MisspecifiedRealisation(FreshRealisation):
    """A drawn `MisspecifiedWorld`."""

    epsilon: float
    slope: Vector

    def _means(self, features: NDArray[np.float64]) -> Matrix:
        error = self.epsilon * np.sin(math.sqrt(2) * features @ self.slope)
        means: Matrix = features @ self.theta + error
        return means
