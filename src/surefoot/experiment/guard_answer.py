"""What an experiment with a guard answers: a decision that is durable, with its coin and its certificate."""

import math
from typing import Any

from surefoot.journal import Head
from surefoot.policies.decision import Source
from surefoot.policies.guard_settings import is_same
from surefoot.records import Guarded, ModeName, Visit, Voided
from surefoot.safety.guard_certificate import CONDITION, without_share
from surefoot.values import Value


class GuardAnswer(Value, frozen=True, eq=True):
    """A decision of a guard as the journal holds it. Asking again with the same id gives the same, coin included.

    Attributes
    ----------
    record : surefoot.records.Guarded or surefoot.records.Visit
        The whole record: the question, the coin and, of a round, the certificate.
    time : float
        When it was decided, in seconds since 1970.
    is_repeat : bool
        Whether it had been decided before this call.
    voided : surefoot.records.Voided or None
        What was really played, where a caller said so; the coin, its side and its probability stay.
    head : Head or None
        Number and hash of its event: the receipt to keep, by which an audit finds out whether the chain was rewritten.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05, seed=3)
    >>> models = surefoot.Experiment.create(surefoot.open_journal("memory:"), "models", guard, mode="guarded")
    >>> answer = models.decide(baseline="big", proposal="small", decision_id="request-1")
    >>> answer.action, round(answer.probability, 6)
    ('big', 0.9)
    """

    record: Visit
    time: float
    is_repeat: bool = False
    voided: Voided | None = None
    head: Head | None = None

    @property
    def decision_id(self) -> str:
        """The id to send the reward with."""
        return self.record.decision_id

    @property
    def round(self) -> int:
        """The number of the round, from 1; visits of one unit share it."""
        return self.record.round

    @property
    def action(self) -> Any:
        """The action to play, as it was given."""
        if self.voided is None:
            return self.record.action
        return self.record.asked.baseline if self.voided.action is None else self.voided.action

    @property
    def source(self) -> Source:
        """Whose action it is, "learner" or "baseline"."""
        return self.record.source

    @property
    def share(self) -> float:
        """The probability with which the proposal was to be played; 0 where the baseline was held."""
        return self.record.share

    @property
    def probability(self) -> float:
        """The probability with which the side that is played was chosen: the propensity to log."""
        return self.share if self.source == "learner" else 1.0 - self.share

    @property
    def unit(self) -> str | None:
        """The unit whose coin it was."""
        return self.record.asked.unit

    @property
    def mode(self) -> ModeName:
        """The experiment's mode when it was made."""
        return self.record.mode

    @property
    def is_visit(self) -> bool:
        """Whether it is another visit of an open unit, and no round of its own."""
        return not isinstance(self.record, Guarded)

    @property
    def margin(self) -> float:
        """What is left above the floor at worst, in units of the highest reward; nan for a visit."""
        return self.record.certificate.margin if isinstance(self.record, Guarded) else math.nan

    def explain(self) -> str:
        """The reason for the decision, in one sentence."""
        record = self.record
        if not isinstance(record, Guarded):
            side = "the baseline, as asked," if record.is_held else f"the {record.source}'s side"
            return f"Another visit of unit {record.asked.unit!r}: {side}, in its round {record.round}."
        seen = record.certificate
        if record.is_held:
            return f"Played the baseline, as asked: a share of {seen.allowed:.3g} would have been allowed."
        if record.share == 0.0:
            asked = record.asked
            return without_share(seen.allowed, seen.binds, is_same=is_same(asked.baseline, asked.proposal))
        return (
            f"The proposal had a share of {record.share:.3g} of the {seen.allowed:.3g} that {seen.binds!r} allows, and "
            f"the coin chose the {record.source}: at worst this round leaves us {self.margin:.4g} above the floor; "
            f"{CONDITION}."
        )
