"""Decisions: what a policy answers in one round, and what its reward is observed with."""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from surefoot.arrays import Vector
from surefoot.core import native
from surefoot.errors import DecisionError, InputError
from surefoot.safety.certificate import Certificate
from surefoot.safety.guard_certificate import GuardCertificate
from surefoot.values import Value

Source = Literal["learner", "baseline"]

# Orders that a call gives to one round, beside the learner's row (0 or more).
FREE: int = native.FREE
HOLD: int = native.HOLD  # the baseline plays, at the caller's wish
ALARMED: int = native.ALARMED  # the baseline plays while the alarm is on
HELD_OUT: int = native.HELD_OUT  # the baseline plays by the coin of a holdout
TRY: int = native.TRY  # TRY - row: somebody else's proposal, which the gate may refuse


class Decision(Value, frozen=True):
    """What a policy answers in one round: the action to play, who chose it, and why it is safe.

    Policies make decisions; you read them and hand them back to `Policy.observe`.

    Attributes
    ----------
    round : int
        Number of the decision, from 1.
    source : {"learner", "baseline"}
        Who chose the action.
    policy : str
        Id of the policy that decided.
    probability : float
        The chance of whoever played; 1 unless a holdout's coin decided.
    draw : float
        That coin, uniform in [0, 1): below `holdout` it is the baseline's. NaN where none decided.

    Examples
    --------
    >>> import surefoot
    >>> policy = surefoot.UCB(arms=2)
    >>> decision = policy.decide()
    >>> decision.round, decision.action, decision.source
    (1, 0, 'learner')
    """

    round: int
    source: Source
    _features: bytes
    policy: str
    _row: int
    _certify: Callable[..., Certificate]
    _evidence: tuple[Any, ...] = ()  # what `_certify` writes the certificate from
    probability: float = 1.0
    draw: float = math.nan

    @property
    def features(self) -> Vector:
        """Feature vector of the action, read-only."""
        # Made when it is read, because most callers need the row alone.
        return np.frombuffer(self._features)

    @property
    def certificate(self) -> Certificate:
        """What was guaranteed, what was required, and the proof; written out when it is asked for."""
        return self._certify(*self._evidence)

    @property
    def action(self) -> int:
        """Row of the features to play. An action set without rows has none: play `features` there.

        Raises
        ------
        InputError
            If the decision was made over an action set without rows.
        """
        if self._row < 0:
            raise InputError(
                "`action` is a row index, but this decision was made over a set without rows. "
                "Read `decision.features`, the feature vector to play."
            )
        return self._row

    def __repr__(self) -> str:
        played = f"features={self.features!r}" if self._row < 0 else f"action={self._row}"
        return f"Decision({played}, source={self.source!r}, round={self.round}, probability={self.probability:.4g})"


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


def round_of(decision: Any, policy: str) -> int:
    """The round of a decision of this policy, given as the decision or as the number of its round."""
    # The usual case first: this runs on every reward.
    if type(decision) is Decision and decision.policy == policy:
        return decision.round
    if isinstance(decision, (Decision, GuardDecision)):
        if decision.policy != policy:
            raise DecisionError(
                f"`decision` must be one of this policy's ({policy}), but it was made by policy {decision.policy}. "
                "Give it to the policy that made it."
            )
        return decision.round
    # True is an int in Python, and would silently be round 1.
    if isinstance(decision, (int, np.integer)) and not isinstance(decision, bool):
        return int(decision)
    raise DecisionError(f"`decision` must be a Decision or the number of its round, but got {decision!r}.")


def check_recalled(action: Any, source: Any, baseline: Any) -> None:
    """Raise unless a round can have been played like this."""
    if source not in ("learner", "baseline"):
        raise InputError(f"`source` must be 'learner' or 'baseline', but got {source!r}.")
    if isinstance(action, bool) or not isinstance(action, (int, np.integer)) or action < 0:
        raise InputError(f"`action` must be a row index, but got {action!r}.")
    if baseline is not None and (isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer))):
        raise InputError(f"`baseline` must be the one row that was played today, but got {baseline!r}.")
    if source == "baseline" and action != baseline:
        raise InputError(f"A round of the baseline must have played its row {baseline}, but got {action=}.")
