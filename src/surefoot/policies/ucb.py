"""UCB: optimism over plain arms, UCB1 of Auer, Cesa-Bianchi and Fischer (2002)."""

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix
from surefoot.compiled import compiled
from surefoot.policies.arms import PLAYS, SEEN, ArmPolicy, least_played_unseen, mean_of
from surefoot.policies.base import Decision
from surefoot.safety.certificate import Certificate
from surefoot.safety.proof import Proof


@compiled
def ucb_step(arms: Matrix, noise: float, round_: int) -> tuple[int, float]:
    """Every arm once, then argmax mean_i + sigma sqrt(8 ln t / T_i): the arm, booked as played, and its index."""
    best, highest = least_played_unseen(arms, -1), math.inf
    if best < 0:
        highest = -math.inf
        for i in range(arms.shape[1]):
            index = mean_of(arms, i) + noise * math.sqrt(8.0 * math.log(round_) / arms[SEEN, i])
            if index > highest:
                best, highest = i, index
    arms[PLAYS, best] += 1.0
    return best, highest


class UCB(ArmPolicy):
    """UCB1 (Auer et al. 2002, figure 1): play the arm with the highest index, always.

    With noise = 1/2, which every reward in [0, 1] satisfies, the index is the original mean + sqrt(2 ln t / T_i).
    It keeps no floor, and ignores a baseline.

    >>> policy = UCB(arms=3)
    >>> decision = policy.decide()
    >>> decision.action
    0
    >>> policy.observe(decision, 1.0)
    """

    def __init__(self, *, arms: int, noise: float = 0.5) -> None:
        super().__init__(arms=arms, noise=noise)

    def decide(
        self,
        features: ArrayLike | None = None,
        *,
        baseline: int | None = None,
        baseline_reward: float | None = None,
    ) -> Decision:
        """Choose an arm."""
        self._check_rows(features)
        arm, index = ucb_step(self._state, self.noise, self._rounds + 1)
        claim = Proof(np.zeros(self.arms), (), -math.inf)
        certify = partial(Certificate, -math.inf, -math.inf, arm, index, partial(_same, claim))
        return self._decided(arm, True, self._one_hot(arm), certify)


def _same(proof: Proof) -> Proof:
    return proof
