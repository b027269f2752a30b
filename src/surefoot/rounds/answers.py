"""What a caller gets, in Python, over HTTP and at an edge: a decision that is durable, or a receipt for a reward."""

from typing import Any

import msgspec

from surefoot.rounds.events import ModeName, Reason, Source


class EventHead(msgspec.Struct, frozen=True, gc=False):
    """A receipt: number and hash of an event, which vouches for everything up to it.

    Attributes
    ----------
    number : int
        The event's number in its experiment.
    hash : str
        Its hash, 64 hexadecimal digits.

    Examples
    --------
    >>> EventHead(2, "0" * 64).number
    2
    """

    number: int
    hash: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A decision as the journal holds it. Asking again with the same id gives the same, but for `is_repeat`.

    Attributes
    ----------
    decision_id : str
        The id to send the reward with.
    round : int
        The number of the round, from 1; visits of one unit share it. 0 where the baseline was played without one.
    action : object
        What to play: a row, or of a guard the action itself. Where a caller said that something else was played, that.
    action_id : str or None
        The caller's name of the row.
    source : {"learner", "baseline"}
        Whose action it is.
    mode : {"shadow", "guarded", "paused"} or None
        The experiment's mode when it was decided; None where the service was not reached.
    probability : float
        The probability with which the side that is played was chosen: the propensity to log.
    share : float or None
        Of a guard, the probability with which the proposal was to be played; 0 where the baseline was held.
    unit : str or None
        Of a guard, the unit whose coin it was.
    margin : float or None
        By how much the proposal clears the floor at least; below 0 it was not allowed. Of a guard, what is left above
        the floor at worst, in units of the highest reward. None where nothing is required or proved.
    guaranteed, required, proposal, proposal_id : float, float, int and str
        What the gate of a linear policy saw: the margin is the difference of the first two.
    allowed, binds : float and str
        Of a guard, the largest share that was proved to be safe, and the metric that allowed least.
    explanation : str
        The reason for the decision, in one sentence.
    is_held : bool
        Whether the baseline was to be played whatever was allowed.
    is_fallback : bool
        Whether the caller played the baseline on its own, while the experiment could not be reached.
    is_visit : bool
        Whether it is another visit of an open unit, and no round of its own.
    is_repeat : bool
        Whether it had been decided before this call.
    is_voided : bool
        Whether a caller said that something else was played: `action` is that.
    time : float
        When it was decided, in seconds since 1970.
    head : EventHead or None
        Number and hash of its event: the receipt to keep, by which an audit finds out whether the chain was rewritten.
    confirm_within : float or None
        Seconds within which it must be said that it was played (`Experiment.confirm`); None where nobody asks for that.

    Examples
    --------
    >>> import surefoot
    >>> shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", surefoot.UCB(arms=2))
    >>> answer = shop.decide(baseline=1, actions=["red", "blue"])
    >>> answer.action_id, answer.source, answer.mode
    ('blue', 'baseline', 'shadow')
    """

    decision_id: str
    action: Any
    source: Source
    round: int = 0
    mode: ModeName | None = None
    action_id: str | None = None
    probability: float = 1.0
    share: float | None = None
    unit: str | None = None
    margin: float | None = None
    guaranteed: float | None = None
    required: float | None = None
    proposal: int | None = None
    proposal_id: str | None = None
    allowed: float | None = None
    binds: str | None = None
    explanation: str = ""
    is_held: bool = False
    is_fallback: bool = False
    is_visit: bool = False
    is_repeat: bool = False
    is_voided: bool = False
    time: float = 0.0
    head: EventHead | None = None
    confirm_within: float | None = None

    def __repr__(self) -> str:
        words = f"decision_id={self.decision_id!r}, action={self.action_id or self.action!r}, source={self.source!r}"
        return f"Answer({words}, round={self.round}, probability={self.probability:.4g})"


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What became of a reward; over HTTP also of the word that a round was voided, abandoned or corrected.

    Attributes
    ----------
    decision_id : str
        The decision.
    value : float, dict or None
        The reward as it was sent; of several metrics by name.
    refused : str or None
        None if it was accepted, otherwise "out_of_range", "too_late", "abandoned", "unknown" or "conflict".
    is_repeat : bool
        Whether the same had been said before; nothing changed.
    is_recorded : bool
        Whether the journal holds it; beyond a number of refusals in an hour, the rest are only counted.
    is_queued : bool
        Whether a client keeps it until the service can be reached.
    head : EventHead or None
        Number and hash of its event: the receipt to keep. None where the journal does not hold it.

    Examples
    --------
    >>> import surefoot
    >>> shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", surefoot.UCB(arms=2))
    >>> shop.reward("visit-1", 1.0).refused
    'unknown'
    """

    decision_id: str
    value: Any = None
    refused: Reason | None = None
    is_repeat: bool = False
    is_recorded: bool = True
    is_queued: bool = False
    head: EventHead | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether it counts, or will be sent."""
        return self.refused is None
