"""What a learner is: two methods. Anything that has them may act under a guard; a plain function may, too."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import ConfigError, InputError
from surefoot.policies.guard_settings import is_same
from surefoot.values import Value


@runtime_checkable
class Learner(Protocol):
    """The contract of a learner: it proposes, and learns from what was played.

    - `propose` may use all that was learned so far. That it was asked does not mean that its proposal is played.
    - `learn` is called once for every round whose reward is observed, its own rounds and the baseline's alike, in the
      order of the decisions. A reward that comes early waits for those of earlier rounds. There is no peeking: a
      learner never hears of a reward before it is observed, nor of actions that were not played.
    - Nothing is asked of its quality: the guard keeps the floor whatever it proposes.

    See `SamplingLearner` for one that explores by itself, `StatefulLearner` for one that can be saved.

    Examples
    --------
    >>> class Newest:
    ...     def propose(self, context, actions):
    ...         return actions[-1]
    ...
    ...     def learn(self, context, action, reward, probability, *, actions):
    ...         pass
    >>> isinstance(Newest(), Learner)
    True
    """

    def propose(self, context: Any, actions: Sequence[Any]) -> Any:
        """Name the action to play.

        Parameters
        ----------
        context : object
            What is known of this round.
        actions : sequence
            What may be played.

        Returns
        -------
        object
            One of `actions`.
        """

    def learn(self, context: Any, action: Any, reward: float, probability: float, *, actions: Sequence[Any]) -> None:
        """Learn from a round that was played.

        Parameters
        ----------
        context : object
            As it was given to `propose`.
        action : object
            What was played: the proposal or the baseline.
        reward : float
            Its reward; more is better.
        probability : float
            The probability with which that action was played, coin and exploration included.
        actions : sequence
            What could have been played.
        """


class Proposal(Value, frozen=True):
    """A proposal that was drawn, and with which probabilities.

    Attributes
    ----------
    action : object
        One of the actions.
    probabilities : sequence of float
        Of each action, in their order; they add up to 1.

    Examples
    --------
    >>> Proposal("b", [0.1, 0.9])
    Proposal(action='b', probabilities=[0.1, 0.9])
    """

    action: Any
    probabilities: Sequence[float]


@runtime_checkable
class SamplingLearner(Learner, Protocol):
    """A learner that explores by itself, and says with which probabilities it drew its proposal.

    Without `sample`, a proposal counts as certain. With it, what `learn` is told is the propensity of the action over
    both draws, that of the learner and the guard's coin: q(action) share + (1 - share) [action is the baseline's].

    Examples
    --------
    >>> class Either:
    ...     def sample(self, context, actions):
    ...         return Proposal(actions[0], [0.5, 0.5])
    ...
    ...     def propose(self, context, actions):
    ...         return self.sample(context, actions).action
    ...
    ...     def learn(self, context, action, reward, probability, *, actions):
    ...         pass
    >>> isinstance(Either(), SamplingLearner)
    True
    """

    def sample(self, context: Any, actions: Sequence[Any]) -> Proposal:
        """Draw the action to play; `propose` is its action alone.

        Parameters
        ----------
        context : object
            What is known of this round.
        actions : sequence
            What may be played.

        Returns
        -------
        Proposal
            One of `actions`, and the probabilities of all of them.
        """


@runtime_checkable
class StatefulLearner(Learner, Protocol):
    """A learner that can be saved, and continued from.

    Examples
    --------
    >>> from surefoot.learners import CallableLearner
    >>> isinstance(CallableLearner(lambda context, actions: actions[0]), StatefulLearner)
    False
    """

    def state(self) -> Any:
        """Everything it has learned; one that learns nothing returns an empty dictionary."""

    def restore(self, state: Any) -> None:
        """Continue from what `state` returned.

        Parameters
        ----------
        state : object
            Of a learner that was made with the same arguments.
        """


class CallableLearner(Learner):
    """A function that proposes and, if it learns, another that is told what came of it.

    Parameters
    ----------
    propose : callable
        Takes context and actions, and returns one of the actions.
    learn : callable, optional
        Takes what `Learner.learn` takes; left out, nothing is learned.

    Raises
    ------
    ConfigError
        If one of them cannot be called.

    Examples
    --------
    >>> cheapest = CallableLearner(lambda context, actions: min(actions))
    >>> cheapest.propose(None, [30, 20, 50])
    20
    """

    def __init__(
        self, propose: Callable[[Any, Sequence[Any]], Any], *, learn: Callable[..., None] | None = None
    ) -> None:
        for name, function in (("propose", propose), ("learn", learn)):
            if not callable(function) and (name == "propose" or function is not None):
                raise ConfigError(f"`{name}` must be a function, but got {function!r:.80}.")
        self._propose, self._learn = propose, learn

    def propose(self, context: Any, actions: Sequence[Any]) -> Any:
        """The function's answer; see `Learner.propose`."""
        return self._propose(context, actions)

    def learn(self, context: Any, action: Any, reward: float, probability: float, *, actions: Sequence[Any]) -> None:
        """Tell the other function; see `Learner.learn`."""
        if self._learn is not None:
            self._learn(context, action, reward, probability, actions=actions)


def position_of(actions: Sequence[Any], action: Any, *, what: str = "An action") -> int:
    """The place of an action, or an InputError that says `what` was none of them.

    >>> position_of(["mail", "call"], "call")
    1
    """
    for place, one in enumerate(actions):
        if is_same(one, action):
            return place
    raise InputError(
        f"{what} must be one of the {len(actions)} actions, but got {action!r:.80}. Nothing was played in this round."
    )


def draw(actions: Sequence[Any], probabilities: ArrayLike, rng: np.random.Generator) -> Proposal:
    """One of the actions by their probabilities, which are brought to a sum of exactly 1."""
    odds = np.asarray(probabilities, dtype=np.float64)
    if odds.shape != (len(actions),) or not (odds >= 0.0).all() or not 0.99 < odds.sum() < 1.01:
        raise InputError(f"Each of {len(actions)} actions must have a probability, but got {probabilities!r:.80}.")
    # numpy refuses probabilities whose sum misses 1 by more than rounding.
    odds = odds / odds.sum()
    place = int(rng.choice(len(actions), p=odds))
    return Proposal(actions[place], odds.tolist())
