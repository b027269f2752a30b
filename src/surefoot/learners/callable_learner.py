"""A plain function as a learner."""

from collections.abc import Callable, Sequence
from typing import Any

from surefoot.errors import ConfigError
from surefoot.learners.learner import Learner


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
