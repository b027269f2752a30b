"""CLUCB: the paper's Algorithm 1, for a baseline whose rewards are known."""

from surefoot.policies.delta_split import WATCH_SHARE
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.policy import arguments
from surefoot.safety.gates import known_proof


class CLUCB(LinearPolicy):
    """Conservative linear UCB with known baseline rewards.  (paper, Algorithm 1)

    Plays the optimistic action if, for every theta of the confidence set, everything earned so far and this action
    still make (1 - alpha) of the baseline's reward; otherwise it plays the baseline. It learns from its own rounds
    only, and needs `baseline_reward` in every round. It is the paper's algorithm to the letter; `SafeLUCB` is less
    cautious.

    Parameters
    ----------
    dim : int
        Number of features of an action.
    alpha : float
        Share of the baseline's reward you accept losing.
    delta : float
        Probability that the guarantee may fail.
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
    holdout : float, optional
        Share of rounds in which a coin lets the baseline play although the learner may; 0.02 turns the watch on, which
        raises the alarm when rewards drift. Off by default.
    watch_share : float
        Share of delta for false alarms of the watch; spent only with a holdout.
    seed : int, optional
        For simulations: coins that can be repeated. Left out, they come from the system.
    settle_after, default_reward : int and float, optional
        Rounds after which a missing reward is learned as `default_reward` (0).

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> policy = CLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.1, ridge=1.0, theta_bound=1.0, feature_bound=1.0)
    >>> rows = np.array([[1.0, 0.0], [0.6, 0.0]])
    >>> decision = policy.decide(rows, baseline=1, baseline_reward=0.5)
    >>> decision.source, round(decision.certificate.margin, 3)
    ('baseline', -1.45)
    >>> policy.observe(decision, 0.5)
    """

    needs_baseline_reward = True
    # To the letter: Algorithm 1 builds its set from the learner's rounds alone.
    _rule = "CLUCB"
    _prove = staticmethod(known_proof)

    def __init__(
        self,
        *,
        dim: int,
        alpha: float,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
        radius: str = "paper",
        holdout: float | None = None,
        watch_share: float = WATCH_SHARE,
        seed: int | None = None,
        settle_after: int | None = None,
        default_reward: float | None = None,
    ) -> None:
        super().__init__(**arguments(locals()))
