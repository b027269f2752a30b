"""Whether actions were drawn with the propensities that a log states: a sample-ratio test that holds for any log.

With the propensity p of the logged action, w = 1{action = a} / p has mean 1 for every action a that is always possible.
So the wealth of a bet, the product of 1 + rate (w - 1), has mean 1 at all times, and exceeds 1 / level with a chance of
at most `level`, for any propensities and any number of rows (Ville). Bets for and against every action, at several
rates, share one wealth: its average.
"""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Vector

RATES = np.geomspace(0.003, 0.9, 9)


class SampleRatio:
    """The wealth of the bets against a log's propensities; `least` is the smallest of them."""

    def __init__(self, actions: int, least: float) -> None:
        # Against an action no more than what is there when it is drawn at its least chance.
        self._rates = np.concatenate([RATES, RATES * least, -RATES * least])
        self._wealth, self._total = np.zeros((self._rates.size, actions)), np.zeros(actions)
        self._rows = 0

    def add(self, actions: NDArray[np.int64], propensities: Vector) -> None:
        """Take in rows."""
        weight, number = 1.0 / propensities, self._total.size
        self._rows += weight.size
        self._total += np.bincount(actions, weight, minlength=number)
        for place, rate in enumerate(self._rates):
            # Every row is a loss for all actions but the one that was drawn.
            missed = math.log1p(-rate)
            gained = np.log1p(rate * (weight - 1.0)) - missed
            self._wealth[place] += missed * weight.size + np.bincount(actions, gained, minlength=number)

    @property
    def p_value(self) -> float:
        """A bound on the chance of such a log where its propensities are right."""
        most = float(self._wealth.max())
        return min(1.0, self._wealth.size / float(np.exp(self._wealth - most).sum()) * math.exp(-min(most, 700.0)))

    @property
    def worst(self) -> tuple[int, float]:
        """The action whose weights are farthest from 1 by their wealth, and their mean."""
        action = int(self._wealth.max(axis=0).argmax())
        return action, float(self._total[action] / max(1, self._rows))
