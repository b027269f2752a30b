"""The gain of a policy in rejection replay: from the rows in which it and the baseline would have played differently.

Where both play the same action there is nothing to gain. Of the other rows, thinned so that every action has the same
chance, those that were played as the policy wished and those that were played as the baseline did are two samples from
the same contexts: a randomised comparison of the two. Rows between two rounds that count all meet the same policy, so
that all of them may be compared, and not only those that count.

    gain = (share of differing rows) x (mean of the policy's - mean of the baseline's)
"""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Vector
from surefoot.replay.intervals import Estimate, WeightedMean, normal_reach, within


class DifferingRows:
    """Rewards of the rows in which policy and baseline differ, as each of the two would have played them."""

    def __init__(self) -> None:
        self._rows, self._differing = 0, 0
        self._policy, self._baseline = WeightedMean(), WeightedMean()

    def add(
        self,
        chosen: NDArray[np.int64],
        baselines: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: Vector,
        weight: Vector,
    ) -> None:
        """Take in rows with their weights; a choice below 0 was never asked for."""
        asked = chosen >= 0
        differing = asked & (chosen != baselines)
        self._rows += int(asked.sum())
        self._differing += int(differing.sum())
        for mean, asked_for in ((self._policy, chosen), (self._baseline, baselines)):
            rows = differing & (actions == asked_for)
            mean.add(rewards[rows], weight[rows])

    def gain(self, level: float, bounds: tuple[float, float]) -> Estimate:
        """What a round of the policy earns beyond one of the baseline, on average."""
        if self._differing == 0:
            value = 0.0 if self._rows else math.nan
            return Estimate(value, value, value, level, "normal", self._rows)
        policy, baseline = self._policy.interval(level, bounds), self._baseline.interval(level, bounds)
        share, apart = self._differing / self._rows, policy.value - baseline.value
        # How often they differ is an estimate, too.
        spread = normal_reach(level) * math.sqrt(share * (1 - share) / self._rows) * abs(apart)
        down = math.hypot(share * (policy.value - policy.low), share * (baseline.high - baseline.value), spread)
        up = math.hypot(share * (policy.high - policy.value), share * (baseline.value - baseline.low), spread)
        method = "gamma" if "gamma" in (policy.method, baseline.method) else "normal"
        width, value = bounds[1] - bounds[0], share * apart
        return within(Estimate(value, value - down, value + up, level, method, self._rows), (-width, width))
