"""LUCB, SafeLUCB and CLUCB2 as learners: a linear model where it fits, and a guard in case it does not."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from surefoot.errors import ConfigError
from surefoot.learners.learner import StatefulLearner, position_of
from surefoot.policies.linear_policy import LinearPolicy

Features: TypeAlias = Callable[[Any, Sequence[Any]], ArrayLike]
Baseline: TypeAlias = Callable[[Any, Sequence[Any]], Any]


class LinearLearner(StatefulLearner):
    """A linear policy of ours as the learner of a guard.

    The guard keeps its floor even where rewards are not linear, or drift. Rounds enter the policy's ledger and its
    confidence set when they are learned, as they were played. Nothing is booked for a proposal.

    Parameters
    ----------
    policy : LUCB, SafeLUCB or CLUCB2
        A new one, which nobody else decides with.
    features : callable
        Takes context and actions, and returns one row of features per action.
    baseline : callable, optional
        Takes context and actions, and returns the action that is played today. Policies that keep a floor need it.

    Raises
    ------
    ConfigError
        If the policy needs a baseline and none is given, or is not one of those.

    Examples
    --------
    >>> import numpy as np
    >>> import surefoot
    >>> policy = surefoot.LUCB(dim=2, delta=0.01, noise=0.5, ridge=1.0, theta_bound=1.0, feature_bound=1.0)
    >>> learner = LinearLearner(policy, features=lambda context, actions: np.eye(2)[list(actions)])
    >>> learner.learn(None, 0, 0.2, 1.0, actions=[0, 1])
    >>> learner.propose(None, [0, 1])
    1
    """

    def __init__(self, policy: LinearPolicy, *, features: Features, baseline: Baseline | None = None) -> None:
        if not isinstance(policy, LinearPolicy) or policy.needs_baseline_reward:
            raise ConfigError(f"`policy` must be a LUCB, a SafeLUCB or a CLUCB2, but got {policy!r:.80}.")
        if policy.needs_baseline and baseline is None:
            raise ConfigError(f"`baseline` must be given to a {type(policy).__name__}: what is played today.")
        self.policy = policy
        self._features, self._baseline = features, baseline

    def propose(self, context: Any, actions: Sequence[Any]) -> Any:
        """What the policy would play; see `Learner.propose`."""
        trial = copy.deepcopy(self.policy)  # deciding books a round, and this one may not be played
        today = self._today(context, actions)
        return actions[trial.decide(self._features(context, actions), baseline=today).action]

    def learn(self, context: Any, action: Any, reward: float, probability: float, *, actions: Sequence[Any]) -> None:
        """Count the round as it was played, and learn its reward; see `Learner.learn`."""
        played, today = position_of(actions, action), self._today(context, actions)
        decision = self.policy.recall(
            self._features(context, actions),
            baseline=today,
            action=played,
            source="baseline" if played == today else "learner",
        )
        self.policy.observe(decision, reward)

    def _today(self, context: Any, actions: Sequence[Any]) -> int | None:
        return None if self._baseline is None else position_of(actions, self._baseline(context, actions))

    def state(self) -> dict[str, Any]:
        """What the policy knows."""
        return self.policy.state()

    def restore(self, state: Any) -> None:
        """Continue from what `state` returned.

        Parameters
        ----------
        state : mapping
            Of a policy of the same class.
        """
        self.policy = type(self.policy).from_state(state)
