"""What an experiment answers: a decision that is durable, or a receipt for a reward."""

from typing import TypeVar

from surefoot.errors import SurefootError
from surefoot.experiment.certificate_records import explained
from surefoot.records import Decision, ModeName, Reason, Source
from surefoot.values import Value

T = TypeVar("T")


class Answer(Value, frozen=True, eq=True):
    """A decision as the journal holds it. Asking again with the same id gives the same answer, `is_repeat` apart."""

    record: Decision
    time: float
    is_repeat: bool = False

    @property
    def decision_id(self) -> str:
        """What the reward must be sent with."""
        return self.record.decision_id

    @property
    def round(self) -> int:
        """The number of this decision, from 1."""
        return self.record.round

    @property
    def action(self) -> int:
        """The row to play."""
        return self.record.action

    @property
    def action_id(self) -> str | None:
        """The caller's own name of that row, where `actions` were given."""
        names = self.record.asked.actions
        return None if names is None else names[self.record.action]

    @property
    def source(self) -> Source:
        """Whose idea it was, "learner" or "baseline"."""
        return self.record.source

    @property
    def mode(self) -> ModeName:
        """The experiment's mode when it was made."""
        return self.record.mode

    @property
    def margin(self) -> float:
        """By how much the floor was cleared at least, had the learner's proposal been played."""
        return self.record.certificate.margin

    def explain(self) -> str:
        """Why, in a sentence."""
        return explained(self.record)


class Receipt(Value, frozen=True, eq=True):
    """What became of a reward.

    refused:     None where it was accepted, otherwise "out_of_range", "too_late", "abandoned", "unknown" or "conflict"
    is_repeat:   the same reward had been accepted before; nothing changed
    is_recorded: the journal holds it; of very many refusals in one hour the rest is only counted
    """

    decision_id: str
    value: float
    refused: Reason | None = None
    is_repeat: bool = False
    is_recorded: bool = True

    @property
    def is_accepted(self) -> bool:
        """Whether the reward counts."""
        return self.refused is None


def or_raise(result: T | SurefootError) -> T:
    """The result, unless it is why there is none."""
    if isinstance(result, SurefootError):
        raise result
    return result
