"""What an experiment answers: a decision that is durable, or a receipt for a reward."""

from typing import Any, TypeVar

from surefoot.errors import SurefootError
from surefoot.experiment.certificate_records import explained
from surefoot.experiment.new_decision import NewDecision
from surefoot.journal import Head
from surefoot.records import DecisionRecord, ModeName, Reason, Source, Voided
from surefoot.values import Value

T = TypeVar("T")


class Answer(Value, frozen=True):
    """A decision as the journal holds it. Asking again with the same id gives the same answer, except for `is_repeat`.

    Attributes
    ----------
    made : surefoot.records.DecisionRecord or NewDecision
        The decision; of one that was just made without its proof, which few callers read.
    time : float
        When it was decided, in seconds since 1970.
    is_repeat : bool
        Whether it had been decided before this call.
    voided : surefoot.records.Voided or None
        What was really played, where a caller said so; `action` and `source` are then about that.
    head : Head or None
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

    made: DecisionRecord | NewDecision
    time: float
    is_repeat: bool = False
    voided: Voided | None = None
    head: Head | None = None
    confirm_within: float | None = None

    @property
    def record(self) -> DecisionRecord:
        """The whole record, with the question and the proof."""
        return self.made if isinstance(self.made, DecisionRecord) else self.made.record

    @property
    def decision_id(self) -> str:
        """The id to send the reward with."""
        return self.made.decision_id

    @property
    def round(self) -> int:
        """The number of this decision, from 1."""
        return self.made.round

    @property
    def action(self) -> int:
        """The row to play."""
        return self.made.action if self.voided is None else int(self.voided.action)

    @property
    def action_id(self) -> str | None:
        """The caller's name of that row, if `actions` were given."""
        names = self.made.asked.actions
        return None if names is None else names[self.action]

    @property
    def source(self) -> Source:
        """Who chose the action, "learner" or "baseline"."""
        if self.voided is None:
            return self.made.source
        return "baseline" if self.action == self.made.asked.baseline else "learner"

    @property
    def mode(self) -> ModeName:
        """The experiment's mode when it was made."""
        return self.made.mode

    @property
    def margin(self) -> float:
        """By how much the learner's proposal clears the floor at least; below 0 it was not allowed."""
        return self.made.certificate.margin

    def explain(self) -> str:
        """The reason for the decision, in one sentence."""
        if self.voided is None:
            return explained(self.made)
        return f"{explained(self.made)} But the caller played {self.action_id or f'row {self.action}'}."

    def __eq__(self, other: object) -> bool:
        return self._told() == other._told() if isinstance(other, Answer) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of every value that holds a record

    def _told(self) -> tuple[Any, ...]:
        return self.record, self.time, self.is_repeat, self.voided, self.head, self.confirm_within


class Receipt(Value, frozen=True, eq=True):
    """What became of a reward.

    Attributes
    ----------
    decision_id : str
        The decision.
    value : float or dict
        The reward; of a guard by metric.
    refused : str or None
        None if it was accepted, otherwise "out_of_range", "too_late", "abandoned", "unknown" or "conflict".
    is_repeat : bool
        Whether the same reward had been accepted before; nothing changed.
    is_recorded : bool
        Whether the journal holds it; beyond a number of refusals in an hour, the rest are only counted.
    head : Head or None
        Number and hash of its event: the receipt to keep. None where the journal does not hold it.

    Examples
    --------
    >>> import surefoot
    >>> shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", surefoot.UCB(arms=2))
    >>> shop.reward("visit-1", 1.0).refused
    'unknown'
    """

    decision_id: str
    value: Any
    refused: Reason | None = None
    is_repeat: bool = False
    is_recorded: bool = True
    head: Head | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the reward counts."""
        return self.refused is None


def or_raise(result: T | SurefootError) -> T:
    """The result, or raise the error that stands in its place."""
    if isinstance(result, SurefootError):
        raise result
    return result
