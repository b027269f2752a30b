"""Rewards around a mean: Gaussian, Bernoulli, bounded, each with its sub-Gaussian scale; and the limit of rare ones."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.arrays import Matrix, Vector, positive
from surefoot.core import native
from surefoot.errors import ConfigError

GAUSSIAN, BERNOULLI, BOUNDED = range(3)  # in the order of the core's `Rewards`
ROUNDING = 1e-9  # how far outside [0, 1] a mean may lie by rounding


class RoundDraws:
    """Draws that are a function of a seed and of the round: the same on any thread and machine, in blocks of any size.

    Like a `numpy.random.Generator`, as far as `Rewards.draw` asks it.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self._round = seed, 0

    def random(self, rounds: int) -> Vector:
        """Uniform numbers of the next rounds."""
        return self._next(native.uniforms, rounds)

    def standard_normal(self, rounds: int) -> Vector:
        """Normal numbers of the next rounds."""
        return self._next(native.normals, rounds)

    def _next(self, draw: Any, rounds: int) -> Vector:
        drawn: Vector = draw(self.seed, self._round, rounds)
        self._round += rounds
        return drawn


def reward_of(kind: int, scale: float, mean: float, draw: float) -> float:
    """The reward with this mean for one draw: standard normal for Gaussian rewards, else uniform."""
    return float(native.reward_of(kind, scale, mean, draw))


@dataclass(frozen=True)
class Rewards:
    """How a reward scatters around its mean: the base of all reward distributions.

    Examples
    --------
    >>> [kind.__name__ for kind in Rewards.__subclasses__()]
    ['Gaussian', 'Bernoulli', 'Bounded']
    """

    kind = GAUSSIAN

    @property
    def scale(self) -> float:
        """What `reward_of` needs beside the mean."""
        return self.noise

    @property
    def noise(self) -> float:
        """Sub-Gaussian scale: what a policy is told."""
        raise NotImplementedError

    def draw(self, rng: "np.random.Generator | RoundDraws", rounds: int) -> Vector:
        """The randomness of some rounds.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.
        rounds : int
            How many rounds.

        Returns
        -------
        ndarray of shape (rounds,)
            Uniform numbers; for Gaussian rewards standard normal ones.
        """
        return rng.random(rounds)

    def check(self, means: Matrix) -> None:
        """Check that rewards with these means can be drawn: all but Gaussian rewards need means in [0, 1].

        Parameters
        ----------
        means : ndarray
            Mean rewards.

        Raises
        ------
        ConfigError
            If a mean lies outside of [0, 1].
        """
        if self.kind != GAUSSIAN and not (means.min() >= -ROUNDING and means.max() <= 1 + ROUNDING):
            raise ConfigError(
                f"Mean rewards must lie in [0, 1] for {type(self).__name__} rewards, but they range from "
                f"{means.min():.6g} to {means.max():.6g}. Rescale the world, or use Gaussian rewards."
            )


@dataclass(frozen=True)
class Gaussian(Rewards):
    """mean + sigma N(0, 1), as in the paper.

    Parameters
    ----------
    sigma : float
        Standard deviation.

    Raises
    ------
    ConfigError
        If sigma is not positive.

    Examples
    --------
    >>> Gaussian(0.5).noise
    0.5
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        positive("sigma", self.sigma, hint="sigma is the standard deviation of a reward.")

    @property
    def noise(self) -> float:
        """sigma."""
        return self.sigma

    def draw(self, rng: "np.random.Generator | RoundDraws", rounds: int) -> Vector:
        """Standard normal numbers."""
        return rng.standard_normal(rounds)


@dataclass(frozen=True)
class Bernoulli(Rewards):
    """1 with probability mean, else 0: clicks and sales. Means must lie in [0, 1].

    Examples
    --------
    >>> Bernoulli().noise
    0.5
    """

    kind = BERNOULLI

    @property
    def noise(self) -> float:
        """1/2, by Hoeffding's lemma."""
        return 0.5


@dataclass(frozen=True)
class Bounded(Rewards):
    """Uniform around the mean, at most `width` to either side, and never outside of [0, 1].

    Parameters
    ----------
    width : float
        Half the range, at most 0.5.

    Raises
    ------
    ConfigError
        If `0 < width <= 0.5` does not hold.

    Examples
    --------
    >>> Bounded(width=0.2).noise
    0.2
    """

    width: float = 0.5
    kind = BOUNDED

    def __post_init__(self) -> None:
        if not 0 < self.width <= 0.5:
            raise ConfigError(f"`0 < width <= 0.5` must hold, but got {self.width}. Rewards stay in [0, 1].")

    @property
    def noise(self) -> float:
        """The width, by Hoeffding's lemma."""
        return self.width


@dataclass(frozen=True, slots=True)
class RewardsNeeded:
    """How many rare rewards must be seen until bounds that hold at all times let a better arm act freely.

    To prove that an arm pays at least (1 - alpha) of a baseline, with r the quotient of their means and
    kappa = r - (1 - alpha), bounds such as ours need so many rewards N_a and N_b of each that

        r^2 / N_a + (1 - alpha)^2 / N_b <= kappa^2 / (2 ln(1/delta)),

    where N_b counts as infinite if the baseline's mean is known. Until then an arm of which nothing else tells may have
    a share alpha of the rounds. It is no limit: one look at a time that was fixed in advance needs about half as many.
    (docs/mathematics.md, "How many rewards these bounds need")

    lift: how much more than the baseline the arm pays, as a share

    >>> needed = RewardsNeeded(lift=0.5, alpha=0.1, delta=0.001, is_known=True)
    >>> round(needed.rewards(0.1)), round(needed.rounds(0.02, share=0.1))
    (86, 28782)
    """

    lift: float
    alpha: float
    delta: float
    is_known: bool = False

    @property
    def precision(self) -> float:
        """What the two terms must not exceed together."""
        return (self.lift + self.alpha) ** 2 / (2.0 * math.log(1.0 / self.delta))

    def rounds(self, rate: float, share: float) -> float:
        """Rounds until both have brought enough, if the arm has this share of them and the baseline pays `rate`."""
        ratio, kept = 1.0 + self.lift, (1.0 - self.alpha) ** 2
        terms = ratio / share + (0.0 if self.is_known else kept / (1.0 - share) if share < 1.0 else math.inf)
        return terms / (self.precision * rate)

    def rewards(self, share: float) -> float:
        """The arm's own rewards in these rounds."""
        return self.rounds(1.0, share) * share * (1.0 + self.lift)

    def times(self, arm: Vector, baseline: Vector) -> Vector:
        """How many times as many rewards were seen of the arm and of the baseline as are needed, run by run."""
        ratio, kept = 1.0 + self.lift, (1.0 - self.alpha) ** 2
        # Of what was never seen, nothing is known: a quotient of 0.
        left = 0.0 if self.is_known else kept * baseline**-1.0
        return self.precision / (ratio**2 * arm**-1.0 + left)
