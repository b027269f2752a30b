"""The likelihood set over plain arms, from scratch: no linear model, and no arm ever leaves for want of room."""

import math

import numpy as np

from surefoot.audit.compensated_sums import Vector
from surefoot.audit.rebuilt_likelihood import LikelihoodDeclarations, RebuiltLikelihood

PRIOR = 4.0  # rewards at the rate of all arms, with which the cautious forecast begins
OPTIMISM = 0.25  # of ln(1/delta)


class RebuiltArmLikelihood(RebuiltLikelihood):
    """The joint set of all arms, whose features are the axes."""

    _room = math.inf

    def __init__(self, arms: int, delta: float, bounds: tuple[float, float]) -> None:
        self.bounds, self.reach = bounds, math.sqrt(arms) * max(map(abs, bounds))
        super().__init__(LikelihoodDeclarations(arms, delta, bounds, bounds[1], self.reach, 1.0))
        self._opportunity = OPTIMISM * math.log(1.0 / delta)

    def count(self, reward: float) -> bool:
        """Take in a reward of an arm whose mean is known, which tells of the rate alone; False if out of bounds."""
        is_possible = self.bounds[0] <= reward <= self.bounds[1]
        if is_possible:
            self._forecasts.count(float(self._unit(np.array(reward))))
        return is_possible

    def upper(self, arm: int) -> float:
        """What an arm is proposed by: kl(m, e) >= (e - m)^2 / (2 e (1 - m)) for e >= m."""
        axis = np.zeros(self._declared.dim)
        axis[arm] = 1.0
        place = self._places.get(axis.tobytes())
        if place is None:  # its rewards were all beyond the bounds, and none was learned
            return self.bounds[1]
        successes, failures = self._counts[place]
        mean = successes / (successes + failures)
        width = (1.0 - mean) * self._opportunity / (successes + failures)
        return float(self._low + min(1.0, mean + width + math.sqrt(width * (width + 2.0 * mean))) / self._scale)

    def _foreseen(self, x: Vector, successes: float, failures: float) -> float:
        return (successes + PRIOR) / (successes + failures + PRIOR / self._forecasts.rate)

    def _follow(self, x: Vector, reward: float, weight: float) -> None:
        """There is no model beside the counts."""
