"""LUCB: optimism alone, a learner without a floor."""

from typing import Any

from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.policy import arguments
from surefoot.safety.proof import Proof, assemble


def lucb_proof(promise: Any, evidence: Any, known: Ball | Ellipsoid) -> Proof:
    """What all learner rounds have earned at least, this one included."""
    played = evidence.played
    return assemble(played, [(known, played)])


class LUCB(LinearPolicy):
    """Linear UCB: always play the action with the highest upper confidence bound.

    The learner that the paper makes safe (Abbasi-Yadkori et al. 2011), with the paper's radius unless another is named.
    A baseline given to `decide` is ignored, so LUCB can stand in for any other policy.

    Parameters
    ----------
    dim : int
        Number of features of an action.
    delta : float
        Probability that the confidence set may miss theta.
    noise : float
        Sub-Gaussian scale of a reward.
    ridge : float
        Regulariser lambda.
    theta_bound : float
        B: bound on the length of theta.
    feature_bound : float
        D: bound on the length of every feature row.
    radius : str
        Radius of the confidence set (`surefoot.linear.radius`); "paper" by default.
    exploration : float, optional
        What proposals count a width, as a constant, which LinUCB calls alpha (Li et al. 2010), in place of the radius.
        No regret bound is left, but it learns in thousands of rounds where the other needs many times that. What a
        certificate says rests on the confidence set all the same.
    settle_after, default_reward : int and float, optional
        Rounds after which a missing reward is learned as `default_reward` (0).

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> policy = LUCB(dim=2, delta=0.01, noise=0.1, ridge=1.0, theta_bound=1.0, feature_bound=1.0)
    >>> decision = policy.decide(np.array([[1.0, 0.0], [0.6, 0.0]]))
    >>> decision.action, decision.source
    (0, 'learner')
    >>> policy.observe(decision, 0.7)
    """

    needs_baseline = False
    _rule = "LUCB"
    _prove = staticmethod(lucb_proof)

    def __init__(
        self,
        *,
        dim: int,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
        radius: str = "paper",
        exploration: float | None = None,
        settle_after: int | None = None,
        default_reward: float | None = None,
    ) -> None:
        super().__init__(**arguments(locals(), "exploration"))
