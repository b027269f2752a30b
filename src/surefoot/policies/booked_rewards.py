"""What a guard has booked for both sides: means for people, on which no proof rests."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.policies.saved_state import shaped
from surefoot.safety.metric import Metric


class BookedRewards:
    """Number and sum of both sides' rewards by metric. Defaults count, what is missing does not, and a unit is one."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics
        self._totals = [[[0.0, 0.0], [0.0, 0.0]] for _ in metrics]  # of the baseline, and of the learner

    def add(self, reward: Sequence[float], *, is_learner: bool) -> None:
        """Count a round that enters, its rewards as shares of the highest; NaN is missing."""
        for sides, value in zip(self._totals, reward, strict=True):
            if not math.isnan(value):
                totals = sides[is_learner]
                totals[0] += 1.0
                totals[1] += value

    def means(self, *, is_learner: bool) -> dict[str, float]:
        """The means of one side in the metrics' own units; nan before the first."""
        named = zip(self._metrics.items(), self._totals, strict=True)
        return {name: _mean(sides[is_learner], metric.high) for (name, metric), sides in named}

    def state(self) -> Any:
        """An array from which `restore` makes the same."""
        return np.array(self._totals)

    def restore(self, saved: Any) -> None:
        """Take back what `state` gave; of older states, which do not hold it, None."""
        if saved is not None:
            self._totals = shaped(saved, (len(self._totals), 2, 2), "booked").tolist()


def _mean(totals: Sequence[float], high: float) -> float:
    count, total = totals
    return high * total / count if count else math.nan
