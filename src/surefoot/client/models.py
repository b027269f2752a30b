"""What a caller gets: decisions and receipts, as typed data."""

from typing import Any, Literal

import msgspec


class CertificateSummary(msgspec.Struct, frozen=True):
    """What the gate saw; None if a number is not finite. The learner was allowed exactly if margin >= 0."""

    guaranteed: float | None = None
    required: float | None = None
    margin: float | None = None
    proposal: int = -1
    proposal_id: str | None = None
    is_held: bool = False


class EventHead(msgspec.Struct, frozen=True):
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


class Decision(msgspec.Struct, frozen=True):
    """What to play.

    Attributes
    ----------
    decision_id : str
        What to send the reward with.
    action_id, action : str and int
        Name and row of the action.
    source : {"learner", "baseline"}
        Who chose it.
    mode, round : str and int
        The experiment's mode, and the number of the decision; "" and 0 for a fallback.
    explanation : str
        The reason, in one sentence.
    is_repeat : bool
        Whether it had been decided before this call.
    is_fallback : bool
        Whether the service was not reached in time and the baseline was chosen here.
    certificate : CertificateSummary
        What the gate saw.
    is_voided : bool
        Whether it had been said before that another action was played: `action` is that one.
    head : EventHead or None
        The receipt; None for a fallback.
    confirm_within : float or None
        Seconds within which the service wants to hear that it was played, which the client sees to.

    Examples
    --------
    >>> Decision("visit-1", "blue", 0, "baseline").is_fallback
    False
    """

    decision_id: str
    action_id: str
    action: int
    source: Literal["learner", "baseline"]
    mode: str = ""
    round: int = 0
    explanation: str = ""
    is_repeat: bool = False
    is_fallback: bool = False
    certificate: CertificateSummary = CertificateSummary()
    is_voided: bool = False
    head: EventHead | None = None
    confirm_within: float | None = None


class GuardDecision(msgspec.Struct, frozen=True):
    """What to play, by a guard.

    Attributes
    ----------
    decision_id : str
        What to send the reward with.
    action : object
        The proposal or the baseline, as it was given.
    source : {"learner", "baseline"}
        Whose action it is.
    probability : float
        The probability with which that side was chosen: the propensity to log. 1 for a fallback.
    share : float
        The probability with which the proposal was to be played.
    unit : str or None
        The unit whose coin it was.
    allowed, binds, margin : float, str and float
        The largest share that was proved to be safe, the metric that allowed least, and what is left above the floor
        at worst, in units of the highest reward; None for another visit of an open unit.
    mode, round : str and int
        The experiment's mode, and the number of the round; "" and 0 for a fallback.
    explanation : str
        The reason, in one sentence.
    is_repeat, is_visit, is_held : bool
        Whether it had been decided before, is another visit of an open unit, or had to be the baseline's.
    is_fallback : bool
        Whether the service was not reached in time and the baseline was chosen here.
    is_voided : bool
        Whether it had been said before that another action was played: `action` is that one.
    head : EventHead or None
        The receipt; None for a fallback.

    Examples
    --------
    >>> GuardDecision("request-1", "big-model", "baseline").probability
    1.0
    """

    decision_id: str
    action: Any
    source: Literal["learner", "baseline"]
    probability: float = 1.0
    share: float = 0.0
    unit: str | None = None
    allowed: float | None = None
    binds: str | None = None
    margin: float | None = None
    mode: str = ""
    round: int = 0
    explanation: str = ""
    is_repeat: bool = False
    is_visit: bool = False
    is_held: bool = False
    is_fallback: bool = False
    is_voided: bool = False
    head: EventHead | None = None


class Voided(msgspec.Struct, frozen=True):
    """What became of the word that a round was not played as decided.

    Attributes
    ----------
    decision_id : str
        The decision.
    is_moved : bool
        Whether the round was moved; not if it was played as decided, or the same was said before.
    is_queued : bool
        Whether it waits here until the service can be reached.
    head : EventHead or None
        The receipt; None where there is no event.

    Examples
    --------
    >>> Voided("visit-1", is_queued=True).is_moved
    False
    """

    decision_id: str
    is_moved: bool = False
    is_queued: bool = False
    head: EventHead | None = None


class Receipt(msgspec.Struct, frozen=True):
    """What became of a reward.

    Attributes
    ----------
    decision_id : str
        The decision.
    value : float or dict
        The reward; of a guard with several metrics a number for each.
    refused : str or None
        None if it was accepted, otherwise why it was refused.
    is_repeat : bool
        Whether the same reward had been accepted before.
    is_queued : bool
        Whether it waits here until the service can be reached.
    head : EventHead or None
        The receipt; None where there is no event.

    Examples
    --------
    >>> Receipt("visit-1", 1.0, is_queued=True).is_accepted
    True
    """

    decision_id: str
    value: float | dict[str, float]
    refused: str | None = None
    is_repeat: bool = False
    is_queued: bool = False
    head: EventHead | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the reward counts, or will be sent."""
        return self.refused is None


REFUSED = {
    "/problems/unknown-decision": "unknown",
    "/problems/reward-conflict": "conflict",
    "/problems/reward-too-late": "too_late",
    "/problems/reward-abandoned": "abandoned",
    "/problems/reward-out-of-range": "out_of_range",
}


def named(actions: Any) -> list[dict[str, Any]]:
    """Actions as the service takes them: {"id": features, ...}, or names alone for plain arms.

    >>> named({"blue": [0.6, 0.1]}), named(["blue", "red"])
    ([{'id': 'blue', 'features': [0.6, 0.1]}], [{'id': 'blue'}, {'id': 'red'}])
    """
    if isinstance(actions, dict):
        return [{"id": name, "features": [float(entry) for entry in row]} for name, row in actions.items()]
    return [{"id": str(name)} for name in actions]
