"""The verb `reward` of a guard: rewards by metric, accepted once or refused; visits of a unit have one each.

A reward outside of its declared bounds is refused as out_of_range, since the promise rests on them. Its round waits for
one that is within, or is settled without: so refusing what is bad gains nothing.
"""

from surefoot import records
from surefoot.arrays import LARGEST
from surefoot.experiment.answer import Receipt
from surefoot.experiment.decoding import decode, round_of
from surefoot.experiment.reward import Refuser
from surefoot.experiment.sealing import find_decision, reference
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.journal import Event
from surefoot.policies import Guard
from surefoot.records import Reason


def receive_metrics(turn: UnitOfWork, refuser: Refuser, decision_id: str, values: dict[str, float]) -> Receipt:
    """Accept or refuse the rewards of a decision."""
    decision = find_decision(turn.state.created, turn.transaction, decision_id)
    if decision is None:
        return refuser.refuse(turn, decision_id, values, "unknown")
    ref = reference(decision)
    settled = turn.transaction.find(f"r:{ref}")
    if settled is not None and settled.kind == records.METRIC_REWARD:
        if decode(settled, records.MetricReward).values == values:
            return Receipt(decision_id, values, is_repeat=True, head=settled.head)
        return refuser.refuse(turn, decision_id, values, "conflict", ref)
    reason = "abandoned" if settled is not None else _refusal(turn, ref, decision, values)
    if reason is not None:
        return refuser.refuse(turn, decision_id, values, reason, ref)
    record = records.MetricReward(decision_id=ref, values=dict(values))
    event = turn.write(records.METRIC_REWARD, record, f"r:{ref}")
    turn.state.metrics_rewarded(record, event.time, lambda: round_of(decision))
    return Receipt(decision_id, values, head=event.head)


def _refusal(turn: UnitOfWork, ref: str, decision: Event, values: dict[str, float]) -> Reason | None:
    windows, guard = turn.state.windows, turn.state.guard
    waiting = None if windows is None else windows.find(ref)
    # A window that is due may still be open: one transaction closes so many at most.
    if windows is not None and (waiting is None or waiting.closes <= turn.now):
        return "too_late"
    if windows is None and not guard.settlement.awaits(round_of(decision)):
        return "too_late"
    return None if is_within(guard, values) else "out_of_range"


def is_within(guard: Guard, values: dict[str, float]) -> bool:
    """Whether rewards keep to their declared bounds."""
    bounds = guard.metrics
    return all(bounds[name].low <= value <= bounds[name].high <= LARGEST for name, value in values.items())
