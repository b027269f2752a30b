"""What a policy may know of a bandit problem before its first round, whether the rounds are simulated or logged."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, slots=True)
class Problem:
    """What a policy may know before its first round; a factory gets it and makes a policy of it.

    Parameters
    ----------
    dim : int
        Number of features of an action.
    actions : int
        Number of actions of the first round.
    noise : float
        Sub-Gaussian scale of a reward.
    theta_bound, feature_bound : float
        Bounds on the length of theta and of every feature row.
    baseline_reward : float, optional
        Mean reward of the baseline in the first round; None for a policy that is not told.
    misspecification : float
        Declared bound on how far a mean reward may lie from <theta, features>.
    seed : int
        For a policy that draws: another one in every run, and the same whenever the run is repeated.

    Examples
    --------
    >>> from surefoot.simulation import Contestant, PaperWorld, simulate
    >>> def greedy(problem):
    ...     import surefoot
    ...
    ...     known = {"noise": problem.noise, "theta_bound": problem.theta_bound, "feature_bound": problem.feature_bound}
    ...     return surefoot.LUCB(dim=problem.dim, delta=0.9, ridge=0.3, **known)
    >>> (found,) = simulate(PaperWorld(actions=20), [Contestant(greedy)], runs=1, horizon=20)
    >>> found.spec.label
    'greedy'
    """

    dim: int
    actions: int
    noise: float
    theta_bound: float
    feature_bound: float
    baseline_reward: float | None = None
    misspecification: float = 0.0
    seed: int = 0

    def settings(self, *, ridge: float, delta: float) -> dict[str, float]:
        """What a linear policy is told.

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
            "noise": self.noise,
            "ridge": ridge,
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
        }

    def without_baseline(self) -> "Problem":
        """The same for a policy that is not told what the baseline earns."""
        return replace(self, baseline_reward=None)


def seed_of_run(seed: int, run: int) -> int:
    """A policy's own seed in one run, apart from the streams of the world."""
    return int(np.random.SeedSequence([seed, run]).generate_state(1, np.uint64)[0])
