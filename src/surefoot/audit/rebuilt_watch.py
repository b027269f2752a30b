"""The bets of the watch, once more from the rewards alone: whether rewards still follow one theta.

(docs/mathematics.md, "The watch"; written anew, so that a mistake there is not repeated here.)
"""

import math
from dataclasses import dataclass

import numpy as np

SHIFTS = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
HORIZON = 500
CERTAIN = 1e-5  # the share of a logarithm by which evidence must pass its limit before the audit insists on an alarm


@dataclass(frozen=True)
class WatchDeclarations:
    """What was declared of the watch: the holdout (0: none), and its share of delta."""

    holdout: float = 0.0
    share: float = 0.0

    @property
    def is_on(self) -> bool:
        """Whether rounds are held out."""
        return self.holdout > 0.0


class RebuiltWatch:
    """Ten bettors on the baseline's rounds and ten on the learner's, each with capital for every start."""

    def __init__(self) -> None:
        self._rounds = {True: 0, False: 0}
        self._shifts = np.concatenate([SHIFTS, -SHIFTS])
        self._logs = {side: np.full(self._shifts.size, -math.inf) for side in (True, False)}

    def bet(self, is_learner: bool, error: float) -> None:
        """Take in what one reward lies above its prediction, in units of the noise."""
        k = self._rounds[is_learner] = self._rounds[is_learner] + 1
        entering = math.log(HORIZON) - math.log(HORIZON + k - 1) - math.log(HORIZON + k)
        gains = self._shifts * error - self._shifts**2 / 2.0
        self._logs[is_learner] = np.logaddexp(self._logs[is_learner], entering) + gains

    def refutes(self, price: float, delta: float) -> bool:
        """Whether the wealth, less the price of the predictions, has surely reached 1/delta."""
        logs = np.concatenate(list(self._logs.values()))
        wealth = float(np.logaddexp.reduce(logs)) - math.log(logs.size)
        limit = price - math.log(delta)
        return wealth > limit + CERTAIN * (1.0 + abs(limit))
