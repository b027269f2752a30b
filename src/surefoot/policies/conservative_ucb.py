"""ConservativeUCB: the multi-armed ancestor of CLUCB, by Wu, Shariff, Lattimore and Szepesvári (2016).

Wu's radius psi(s) = 2 ln(K s^3 / delta) adds up, over all counts s, to zeta(3) delta and not to delta. The guarantee
holds at delta only if that factor is paid, so it is paid here; K counts the one-sided bounds that safety rests on.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from surefoot.arrays import Matrix, Vector, fraction
from surefoot.errors import InputError
from surefoot.policies.arm_policy import PLAYS, ArmPolicy
from surefoot.policies.decision import Decision
from surefoot.policies.linear_settings import read_known_reward
from surefoot.policies.orders import HOLD
from surefoot.safety.certificate import Certificate
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.proof import Proof, assemble


class ConservativeUCB(ArmPolicy):
    """Conservative UCB over plain arms, one of which is today's default.  (Wu et al. 2016)

    The multi-armed ancestor of CLUCB. The default arm is the `baseline` of the first decision and must stay the same.

    Parameters
    ----------
    arms : int
        Number of arms, the default arm included.
    alpha : float
        Share of the default arm's reward you accept losing.
    delta : float
        Probability that the guarantee may fail.
    noise : float
        Sub-Gaussian scale of a reward; 0.5 for rewards in [0, 1].
    baseline_reward : float, optional
        Mean reward of the default arm if it is known; otherwise it is bounded by its own data.
    settle_after, default_reward : int and float, optional
        Rounds after which a missing reward is learned as `default_reward` (0).

    Raises
    ------
    ConfigError
        If a setting is invalid.
    AssumptionError
        If `baseline_reward` is negative.

    Examples
    --------
    >>> policy = ConservativeUCB(arms=3, alpha=0.1, delta=0.01, baseline_reward=0.5)
    >>> decision = policy.decide(baseline=0)
    >>> decision.source, round(decision.certificate.margin, 3)
    ('baseline', -0.45)
    """

    _rule = "ConservativeUCB"

    def __init__(
        self,
        *,
        arms: int,
        alpha: float,
        delta: float,
        noise: float = 1.0,
        baseline_reward: float | None = None,
        settle_after: int | None = None,
        default_reward: float | None = None,
    ) -> None:
        fraction("alpha", alpha, hint="alpha is the share of the baseline's reward you accept losing.")
        fraction("delta", delta, hint="delta is the probability that the guarantee fails.")
        self._known = None if baseline_reward is None else read_known_reward(baseline_reward)
        super().__init__(
            arms=arms,
            noise=noise,
            alpha=alpha,
            delta=delta,
            baseline_reward=baseline_reward,
            settle_after=settle_after,
            default_reward=default_reward,
        )
        self._default = -1

    def _decide(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        self._check_rows(features)
        default = self._read_default(baseline)
        if baseline_reward is not None and baseline_reward != self._known:
            raise InputError(
                f"`baseline_reward` must be what the policy was made with, {self._known!r}, but got "
                f"{baseline_reward!r}. The default arm has one mean reward."
            )
        # The proof is about the plays before this round, which is booked in the same step.
        before: Vector = self._core.save()[PLAYS]
        round_ = self._rounds + 1
        proposal, is_learner, guaranteed, required, optimism = self._core.decide(default, round_, order)
        self._default = default
        if self._alarm is not None:
            guaranteed = -math.inf
        promise = (default, 1.0 - self._config["alpha"], self._known is not None)
        evidence = partial(_arms_proof, promise, round_, proposal, before, np.array(self._core.intervals))
        certify = partial(Certificate, guaranteed, required, proposal, optimism, evidence, is_held=order == HOLD)
        arm = proposal if is_learner else default
        return self._decided(arm, is_learner, self._one_hot(arm), certify)

    def _read_default(self, baseline: Any) -> int:
        arm = self._read_arm(baseline)
        if self._default not in (-1, arm):
            raise InputError(
                f"`baseline` must stay the default arm {self._default}, but got {arm}. "
                "For a baseline that moves use CLUCB or CLUCB2."
            )
        return arm

    def _arrays(self) -> dict[str, Any]:
        return {**super()._arrays(), "default": self._default}

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        super()._restore(arrays)
        self._default = int(arrays["default"])


def _arms_proof(
    promise: tuple[int, float, bool], round_: int, proposal: int, plays: Vector, intervals: Matrix
) -> Proof:
    """The condition as a split over one fact per arm: its mean is at least lambda_i (or at most theta_0).

    `promise` is the default arm, the share of its reward that is kept, and whether its mean is known.
    """
    default, share, is_known = promise
    weights = plays.copy()
    weights[proposal] += 1
    weights[default] -= share * round_
    axes = np.eye(weights.size)
    parts: list[tuple[Fact, Vector]] = []
    for i, weight in enumerate(weights):
        name = f"{'reward' if i == default and is_known else 'interval'} of arm {i}"
        side = 1.0 if weight >= 0 else -1.0
        level = intervals[0, i] if weight >= 0 else -intervals[1, i]
        parts.append((Linear(side * axes[i], float(level), name), weight * axes[i]))
    return assemble(weights, parts)
