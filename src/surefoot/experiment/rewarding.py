"""The verb `reward`: accept a reward once, or refuse it and say why.

unknown       no decision has this id
conflict      another value was accepted for it before
too_late      its window has closed; what was learned then stands
out_of_range  outside of the experiment's bounds, or not finite

Refusals are recorded, but somebody who sends endless nonsense must not fill the disk: beyond `MOST_RECORDED` in an hour
for one reason they are only counted, and the next one that is recorded holds the count.
"""

import math
from typing import Any

from surefoot.arrays import LARGEST
from surefoot.errors import InputError
from surefoot.experiment import records
from surefoot.experiment.answers import Receipt
from surefoot.experiment.questions import read_id
from surefoot.experiment.records import Created, Reason, number
from surefoot.experiment.state import decode, round_of
from surefoot.experiment.tally import Refusals
from surefoot.experiment.turn import Turn
from surefoot.journal import Event

MOST_RECORDED = 100


class Refuser:
    """Counts refusals that are not recorded; they are forgotten with the process."""

    def __init__(self) -> None:
        self.unrecorded: dict[Reason, int] = {}

    def refuse(self, turn: Turn, decision_id: str, value: float, reason: Reason) -> Receipt:
        """Record a refusal, or only count it where there were too many."""
        entry = turn.state.tally.refusals.get(reason, Refusals())
        if entry.recorded_in(turn.now) >= MOST_RECORDED:
            self.unrecorded[reason] = self.unrecorded.get(reason, 0) + 1
            return Receipt(decision_id, value, reason, is_recorded=False)
        unrecorded = self.unrecorded.pop(reason, 0)
        record = records.Reward(decision_id=decision_id, value=number(value), refused=reason, unrecorded=unrecorded)
        event = turn.write(records.REWARD, record)
        turn.state.tally.rewarded(record, event.time)
        return Receipt(decision_id, value, reason)


def receive(turn: Turn, refuser: Refuser, decision_id: str, value: float) -> Receipt:
    """Accept or refuse a reward."""
    waiting = None if turn.state.windows is None else turn.state.windows.find(decision_id)
    decision = None
    if waiting is None:
        decision = turn.transaction.find(f"d:{decision_id}")
        if decision is None:
            return refuser.refuse(turn, decision_id, value, "unknown")
    before = waiting.value if waiting is not None else _accepted(turn.transaction.find(f"r:{decision_id}"))
    if before is not None:
        if before == value:
            return Receipt(decision_id, value, is_repeat=True)
        return refuser.refuse(turn, decision_id, value, "conflict")
    if turn.state.windows is not None and (waiting is None or waiting.closes <= turn.now):
        return refuser.refuse(turn, decision_id, value, "too_late")
    if not in_range(turn.state.created, value):
        return refuser.refuse(turn, decision_id, value, "out_of_range")
    record = records.Reward(decision_id=decision_id, value=value)
    event = turn.write(records.REWARD, record, f"r:{decision_id}")
    turn.state.rewarded(record, event.time, lambda: round_of(decision) if decision is not None else 0)
    return Receipt(decision_id, value)


def in_range(created: Created, value: float) -> bool:
    """Whether a reward may be learned."""
    low, high = created.reward_bounds or (-LARGEST, LARGEST)
    return math.isfinite(value) and low <= value <= high


def read_reward(decision_id: str, value: Any) -> tuple[str, float]:
    """A decision's id and its reward as a number, finite or not."""
    known = read_id(decision_id)
    try:
        return known, float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"`value` must be a number, but got {value!r:.80}.") from None


def _accepted(event: Event | None) -> float | None:
    return None if event is None else float(decode(event, records.Reward).value)
