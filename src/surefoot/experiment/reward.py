"""The verbs `reward` and `abandon`: accept a reward once, or refuse it and say why; or settle a decision without one.

unknown       no decision has this id
conflict      another value was accepted before
too_late      its window has closed, in seconds or in rounds; what was learned then stands
abandoned     the decision was settled without its reward
out_of_range  not finite, or too large to compute with

A reward outside of the declared bounds is *accepted* and raises the alarm: refusing it would select the data by their
values.

Refusals are recorded, but a flood of them must not fill the disk: beyond `MOST_RECORDED` in an hour for one reason they
are only counted, and the next one that is recorded holds the count.
"""

import math
from typing import Any

from surefoot import records
from surefoot.arrays import LARGEST
from surefoot.errors import DecisionError, DecisionSettledError, InputError
from surefoot.experiment.answer import Receipt
from surefoot.experiment.attribution_windows import OpenWindow
from surefoot.experiment.counts import Refusals
from surefoot.experiment.question import read_id
from surefoot.experiment.sealing import find_decision, is_sealed, reference, stranger
from surefoot.experiment.state import decode, round_of
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.journal import Event
from surefoot.records import Reason, number

MOST_RECORDED = 100


class Refuser:
    """Counts refusals that are not recorded; the count is lost with the process."""

    def __init__(self) -> None:
        self.unrecorded: dict[Reason, int] = {}

    def refuse(
        self,
        turn: UnitOfWork,
        decision_id: str,
        value: float | dict[str, float],
        reason: Reason,
        ref: str | None = None,
    ) -> Receipt:
        """Record a refusal under the decision's reference, or only count it if there were too many."""
        entry = turn.state.tally.refusals.get(reason, Refusals())
        if entry.recorded_in(turn.now) >= MOST_RECORDED:
            self.unrecorded[reason] = self.unrecorded.get(reason, 0) + 1
            return Receipt(decision_id, value, reason, is_recorded=False)
        unrecorded = self.unrecorded.pop(reason, 0)
        ref = stranger(turn.state.created, decision_id) if ref is None else ref
        told: dict[str, Any] = {"decision_id": ref, "refused": reason, "unrecorded": unrecorded}
        record: records.RewardRecord | records.MetricReward
        if isinstance(value, dict):
            record = records.MetricReward(values={name: number(one) for name, one in value.items()}, **told)
        else:
            record = records.RewardRecord(value=number(value), **told)
        event = turn.write(records.METRIC_REWARD if isinstance(value, dict) else records.REWARD, record)
        turn.state.tally.rewarded(record, event.time)
        return Receipt(decision_id, value, reason, head=event.head)


def receive(turn: UnitOfWork, refuser: Refuser, decision_id: str, value: float) -> Receipt:
    """Accept or refuse a reward."""
    created, windows, decision, ref = turn.state.created, turn.state.windows, None, decision_id
    if is_sealed(created) or windows is None or windows.find(ref) is None:
        decision = find_decision(created, turn.transaction, decision_id)
        if decision is None:
            return refuser.refuse(turn, decision_id, value, "unknown")
        ref = reference(decision)
    waiting = None if windows is None else windows.find(ref)
    settled = None if waiting is not None else turn.transaction.find(f"r:{ref}")
    if settled is not None and settled.kind == records.ABANDONED:
        return refuser.refuse(turn, decision_id, value, "abandoned", ref)
    before = _accepted(settled) if waiting is None else waiting.value
    # Asked before the window: who repeats an accepted reward has only lost the receipt.
    if before is not None:
        # A window holds the corrected value, but a caller's retry may still say the first one.
        settled = settled or turn.transaction.find(f"r:{ref}")
        if _accepted(settled) == value:
            return Receipt(decision_id, value, is_repeat=True, head=None if settled is None else settled.head)
        corrected = turn.transaction.find(f"x:{ref}")
        if corrected is not None and decode(corrected, records.Corrected).value == value:
            return Receipt(decision_id, value, is_repeat=True, head=corrected.head)
        return refuser.refuse(turn, decision_id, value, "conflict", ref)
    if _is_too_late(turn, waiting, decision):
        return refuser.refuse(turn, decision_id, value, "too_late", ref)
    if not (math.isfinite(value) and abs(value) <= LARGEST):
        return refuser.refuse(turn, decision_id, value, "out_of_range", ref)
    record = records.RewardRecord(decision_id=ref, value=value)
    event = turn.write(records.REWARD, record, f"r:{ref}")
    turn.state.rewarded(record, event.time, lambda: round_of(decision) if decision is not None else 0)
    return Receipt(decision_id, value, head=event.head)


def _is_too_late(turn: UnitOfWork, waiting: OpenWindow | None, decision: Event | None) -> bool:
    if turn.state.windows is not None:
        # One that is due may still be open: one transaction closes so many at most.
        return waiting is None or waiting.closes <= turn.now
    assert decision is not None
    return not turn.state.policy.settlement.awaits(round_of(decision))


def abandon(turn: UnitOfWork, decision_id: str, reason: str, by: str) -> bool | DecisionError:
    """Settle a decision without its reward; false if it was abandoned before."""
    decision = find_decision(turn.state.created, turn.transaction, decision_id)
    if decision is None:
        return DecisionError(f"A decision must exist to be abandoned, but none has the id {decision_id!r:.80}.")
    ref = reference(decision)
    settled = turn.transaction.find(f"r:{ref}")
    if settled is not None and settled.kind == records.ABANDONED:
        return False
    waiting = None if turn.state.windows is None else turn.state.windows.find(ref)
    is_late = waiting is not None and waiting.closes <= turn.now
    if settled is not None or is_late or not turn.state.policy.settlement.awaits(round_of(decision)):
        return DecisionSettledError(
            f"A decision must be without a reward to be abandoned, but {decision_id!r} is settled: its reward has come "
            "or its window has closed. Dropping a known reward would select the data by their values."
        )
    record = records.Abandoned(decision_id=ref, reason=reason, by=by)
    turn.write(records.ABANDONED, record, f"r:{ref}")
    turn.state.abandoned(record, round_of(decision))
    return True


def read_reward(decision_id: str, value: Any) -> tuple[str, float]:
    """A decision's id and its reward as a number, finite or not."""
    known = read_id(decision_id)
    try:
        return known, float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"`value` must be a number, but got {value!r:.80}.") from None


def _accepted(event: Event | None) -> float | None:
    return None if event is None else float(decode(event, records.RewardRecord).value)
