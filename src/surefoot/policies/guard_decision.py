"""What a guard answers in one round: the action to play, the side that the coin chose, and its honest propensity."""

from collections.abc import Callable
from typing import Any, Literal

from surefoot.safety.guard_certificate import GuardCertificate
from surefoot.values import Value

Source = Literal["learner", "baseline"]


class GuardDecision(Value, frozen=True):
    """What a guard answers in one round. Hand it back to `Guard.observe` with the reward.

    Attributes
    ----------
    round : int
        Number of the round, from 1; visits of one unit share a round.
    source : {"learner", "baseline"}
        Whose action is played.
    action : object
        The action to play: the proposal or the baseline, as it was given.
    probability : float
        The probability with which the side that is played was chosen: the propensity to log, unless the proposal was
        itself drawn (`surefoot.learners.GuardedLearner` then has the whole one).
    share : float
        The probability with which the proposal was to be played.
    draw : float
        The coin, uniform in [0, 1): the proposal is played where it lies below `share`. NaN where none was drawn.
    policy : str
        Id of the guard.
    unit : str or None
        The unit whose coin it was.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05, seed=3)
    >>> decision = guard.decide(baseline="today", proposal="new")
    >>> decision.action, round(decision.probability, 6)
    ('today', 0.9)
    """

    round: int
    source: Source
    action: Any
    probability: float
    share: float
    draw: float
    policy: str
    unit: str | None
    _certify: Callable[[], GuardCertificate]

    def __repr__(self) -> str:
        coin = f"probability={self.probability:.4g}, share={self.share:.4g}"
        return f"GuardDecision(action={self.action!r}, source={self.source!r}, round={self.round}, {coin})"

    @property
    def certificate(self) -> GuardCertificate:
        """Which share was allowed, and the proof; written out when it is asked for."""
        return self._certify()
