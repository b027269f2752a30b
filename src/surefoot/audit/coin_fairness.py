"""Whether the coins can have been fair: bets that nobody wins against fair ones, on many ways of cheating at once.

Each bet multiplies its wealth by a factor whose mean is 1 if the coin is uniform given all that came before: on the
side (exp(r w U)/(1 - p + p exp(r w)), with w = 1, or w the sign of the newest reward beside their mean), and on the
draw itself (1 + r f(draw), f a cosine, or the product of this draw's cosine and the last one's). Their average is a
martingale, so with fair coins it ever reaches 1/LEVEL with probability LEVEL at most (Ville), however long one looks.
"""

import math

import numpy as np

from surefoot.audit.compensated_sums import Vector

LEVEL = 1e-6
LIMIT = math.log(1.0 / LEVEL)
SIDE_RATES = np.array([-1.0, -0.3, -0.1, -0.03, 0.03, 0.1, 0.3, 1.0])
# Below 1 in size, so that no bet can lose all and 1 + r f stays above 0.
DRAW_RATES = np.array([-0.9, -0.3, -0.1, -0.03, 0.03, 0.1, 0.3, 0.9])
WAVES = np.pi * np.array([1.0, 2.0, 3.0, 4.0])


class CoinFairness:
    """The wealth of every bet so far."""

    def __init__(self) -> None:
        self.coins, self.learner, self.expected = 0, 0, 0.0
        self.most = -math.inf  # the largest evidence so far, as the logarithm of the average wealth
        self._sides, self._draws = np.zeros((2, SIDE_RATES.size)), np.zeros((WAVES.size + 1, DRAW_RATES.size))
        self._last_wave, self._luck = 0.0, 0.0
        self._rewards, self._mean = 0, 0.0

    def rewarded(self, reward: float) -> None:
        """A reward that the next coin must not depend on."""
        self._rewards += 1
        self._luck = float(np.sign(reward - self._mean)) if self._rewards > 1 else 0.0
        self._mean += (reward - self._mean) / self._rewards

    def toss(self, share: float, draw: float, is_learner: bool) -> bool:
        """Take a coin in; true where it is the first that fair ones would not have led to."""
        self.coins += 1
        self.learner += is_learner
        self.expected += share
        stakes = np.outer((1.0, self._luck), SIDE_RATES)
        self._sides += stakes * is_learner - np.log1p(share * np.expm1(stakes))
        waves = np.cos(WAVES * draw)
        self._draws += np.log1p(np.outer(np.append(waves, waves[0] * self._last_wave), DRAW_RATES))
        self._last_wave = float(waves[0])
        return self._is_news()

    def _is_news(self) -> bool:
        every: Vector = np.concatenate((self._sides.ravel(), self._draws.ravel()))
        top = float(every.max())
        evidence = top + math.log(float(np.exp(every - top).mean()))
        is_news = evidence >= LIMIT > self.most
        self.most = max(self.most, evidence)
        return is_news
