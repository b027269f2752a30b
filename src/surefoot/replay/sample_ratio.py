"""Whether actions were drawn with the propensities that a log states: a sample-ratio test that holds for any log.

With the propensity p of the logged action, w = 1{action = a} / p has mean 1 for every action a that is possible. So the
wealth of a bet, the product of 1 + rate (w - 1), has mean 1 at all times, and exceeds 1 / level with a chance of at
most `level`, for any propensities and any number of rows (Ville). Bets for and against every action in every group of
rows, at several rates, share one wealth: its average.
"""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector

RATES = np.geomspace(0.003, 0.9, 9)


class SampleRatio:
    """The wealth of the bets against a log's propensities, by group; `least` is the smallest propensity.

    A group is an action, or an action among some of the rows.
    """

    def __init__(self, groups: int, least: float, rates: Vector = RATES) -> None:
        # Against an action no more than what is there when it is drawn at its least chance.
        self._rates = np.concatenate([rates, rates * least, -rates * least])
        self._gained = np.zeros((self._rates.size, groups))
        self._total, self._trials = np.zeros(groups), np.zeros(groups)

    def add(self, hits: NDArray[np.int64], weights: Vector, trials: Vector | float) -> None:
        """Take in the groups that were drawn, with 1 / p each, and how many rows could have been each group's."""
        self._trials += trials
        np.add.at(self._total, hits, weights)
        for place, rate in enumerate(self._rates):
            np.add.at(self._gained[place], hits, np.log1p(rate * (weights - 1.0)) - math.log1p(-rate))

    @property
    def _wealth(self) -> Matrix:
        """Logarithms (rates, groups): every row is a loss for all groups but those that were drawn."""
        wealth: Matrix = self._gained + np.log1p(-self._rates)[:, None] * self._trials
        return wealth

    @property
    def p_value(self) -> float:
        """A bound on the chance of such a log where its propensities are right."""
        return self.p_value_of(slice(None))

    def p_value_of(self, groups: slice) -> float:
        """The same by the bets on some of the groups alone."""
        wealth = self._wealth[:, groups]
        most = float(wealth.max())
        return min(1.0, wealth.size / float(np.exp(wealth - most).sum()) * math.exp(-min(most, 700.0)))

    def worst_of(self, groups: slice) -> tuple[int, float]:
        """The group among these whose weights are farthest from 1 by their wealth, and their mean."""
        group = int(self._wealth[:, groups].max(axis=0).argmax())
        return group, float(self._total[groups][group] / max(1.0, self._trials[groups][group]))
