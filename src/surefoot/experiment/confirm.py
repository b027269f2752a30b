"""The verb `confirm`: a caller says which learner rounds it has played as they were decided."""

from collections.abc import Sequence

from surefoot import records
from surefoot.experiment.sealing import find_decision, is_sealed, reference
from surefoot.experiment.unit_of_work import UnitOfWork

MOST_AT_ONCE = 1000  # rounds in one event


def confirm(turn: UnitOfWork, decision_ids: Sequence[str]) -> int:
    """Confirm rounds; those that do not wait for it are passed over. Returns how many did."""
    waiting = turn.state.unconfirmed
    known = [ref for decision_id in decision_ids if (ref := _reference(turn, decision_id)) is not None]
    played = list(dict.fromkeys(ref for ref in known if waiting.awaits(ref)))
    if played:
        turn.write(records.CONFIRMED, records.Confirmed(decision_ids=played))
        waiting.confirm(played)
    return len(played)


def charge_overdue(turn: UnitOfWork) -> None:
    """Count at its worst what was not confirmed in time."""
    due = turn.state.unconfirmed.due(turn.now)
    for at in range(0, len(due), MOST_AT_ONCE):
        record = records.Overdue(decisions=due[at : at + MOST_AT_ONCE])
        turn.write(records.OVERDUE, record)
        turn.state.unconfirmed.charge(record.decisions)


def _reference(turn: UnitOfWork, decision_id: str) -> str | None:
    """A decision's id in the chain."""
    if not is_sealed(turn.state.created):
        return decision_id
    found = find_decision(turn.state.created, turn.transaction, decision_id)
    return None if found is None else reference(found)
