"""What people say of an experiment, as its events hold it: who answered, moved, paused or erased, and why."""

from typing import Any, Literal, TypeAlias

from surefoot.record_format import Number, Record

ModeName: TypeAlias = Literal["shadow", "guarded", "paused"]
Response: TypeAlias = Literal["stay", "relearn", "renew"]


class Abandoned(Record):
    """A decision whose reward will never be learned, why (nothing that its reward can have influenced), and by whom."""

    decision_id: str
    reason: str = ""
    by: str = ""


class Voided(Record):
    """What was really played in a round, by whose word and why.

    action: the row, the baseline's among them; of a guard the action itself (sealed: its commitment), None for the
            baseline
    """

    decision_id: str
    action: Any = None
    reason: str = ""
    by: str = ""


class Forked(Record):
    """Where an experiment's history came from: another one, at that head, with so many of its rounds; and why.

    is_encoded:  whether rows were made anew, by another feature map
    corrections: rewards that had been learned wrongly: which of the carried rounds, counted from 0, and the right one
    """

    experiment: str
    number: int
    hash: str
    rounds: int
    is_encoded: bool = False
    reason: str = ""
    corrections: tuple[tuple[int, float], ...] = ()


class Corrected(Record):
    """The reward of a decision as it should have been sent, why, and by whom: said before anything was learned."""

    decision_id: str
    value: Number
    reason: str = ""
    by: str = ""


class Confirmed(Record):
    """Learner rounds that were played as decided, by their callers' word."""

    decision_ids: list[str]


class OverdueRound(Record, array_like=True):
    """A learner round that was not confirmed in time: written as [decision_id, round]."""

    decision_id: str
    round: int


class Overdue(Record):
    """Learner rounds that count at their worst from now on, until they are confirmed, rewarded or voided."""

    decisions: list[OverdueRound]


class Acknowledged(Record):
    """The answer to the alarm that was raised after so many rounds (`surefoot.safety.alarm`), why, and by whom."""

    response: Response
    reason: str = ""
    by: str = ""
    alarm_round: int = 0


class Mode(Record):
    """The experiment's mode from now on, why it was changed, and by whom.

    shared: in the chain of a shard, the number of the event where the shards meet that says so; 0 while that is to come
    """

    mode: ModeName
    reason: str = ""
    by: str = ""
    shared: int | None = None


class Erased(Record):
    """Events whose private text was erased, by whose word and why; whom they were about is not said."""

    events: list[int]
    reason: str = ""
    by: str = ""
