"""UCB: optimism over plain arms, UCB1 of Auer, Cesa-Bianchi and Fischer (2002)."""

import math
from functools import partial
from typing import Any

import numpy as np

from surefoot.policies.arm_policy import ArmPolicy
from surefoot.policies.decision import FREE, HOLD, Decision
from surefoot.policies.policy import arguments
from surefoot.safety.certificate import Certificate
from surefoot.safety.proof import Proof


class UCB(ArmPolicy):
    """UCB1: always play the arm with the highest index.  (Auer et al. 2002, figure 1)

    It keeps no floor and ignores a baseline. With noise = 1/2, which every reward in [0, 1] satisfies, the index is the
    original mean + sqrt(2 ln t / T_i).

    Parameters
    ----------
    arms : int
        Number of arms.
    noise : float
        Sub-Gaussian scale of a reward.
    settle_after, default_reward : int and float, optional
        Rounds after which a missing reward is learned as `default_reward` (0).

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> policy = UCB(arms=3)
    >>> decision = policy.decide()
    >>> decision.action
    0
    >>> policy.observe(decision, 1.0)
    """

    _rule = "UCB"

    def __init__(
        self,
        *,
        arms: int,
        noise: float = 0.5,
        settle_after: int | None = None,
        default_reward: float | None = None,
    ) -> None:
        super().__init__(**arguments(locals()))

    def _decide(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        self._check_rows(features)
        forced = self._read_arm(baseline) if order == HOLD else order
        # It keeps no floor, so an arm that is held is played like one that was proposed.
        arm, _, _, _, index = self._core.decide(-1, self._rounds + 1, forced if forced >= 0 else FREE)
        claim = Proof(np.zeros(self.arms), (), -math.inf)
        certify = partial(Certificate, -math.inf, -math.inf, arm, index, partial(_same, claim), is_held=order == HOLD)
        return self.conclude(arm, order != HOLD, self._one_hot(arm), certify)


def _same(proof: Proof) -> Proof:
    return proof
