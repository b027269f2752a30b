"""Rewards in a turn: accepted, whole or in parts, refused, corrected, or given up.

Why a reward is refused:

unknown       no decision has this id
conflict      another value was accepted before
too_late      its window has closed, in seconds or in rounds; what was learned then stands
abandoned     the decision was settled without its reward
out_of_range  not finite, too large to compute with, or outside of the bounds that a guard's promise rests on

A linear reward outside of the declared bounds is *accepted* and raises the alarm: refusing it would select the data by
their values. Refusals are recorded, but a flood of them must not fill the disk: beyond `MOST_RECORDED` in an hour for
one reason they are only counted, and the next one that is recorded holds the count.
"""

from typing import Any

from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError, SurefootError
from surefoot.experiment.sealing import find_decision, find_rewards, reference, round_number, stranger
from surefoot.experiment.state import Refusals
from surefoot.experiment.turn import Turn
from surefoot.journal import Event
from surefoot.rounds import Receipt, decode, events, number
from surefoot.rounds.answers import EventHead
from surefoot.rounds.events import Abandoned, Corrected, Reason, Reward

MOST_RECORDED = 100  # refusals for one reason in an hour


def reward(turn: Turn, decision_id: str, values: dict[str, float], value: Any) -> Receipt:
    """Accept or refuse the rewards of a decision; `value` is how they were sent."""
    state, view = turn.state, turn.transaction
    created, windows, decision, ref = state.created, state.windows, None, decision_id
    waiting = None if windows is None or created.is_sealed else windows.find(ref)
    if waiting is None:
        decision = find_decision(created, view, decision_id)
        if decision is None:
            return _refuse(turn, decision_id, values, value, "unknown")
        ref = reference(decision)
        waiting = None if windows is None else windows.find(ref)
    # Asked before the window: who repeats an accepted reward has only lost the receipt.
    parts, new = 0, values
    if waiting is None or waiting.values is not None:
        accepted = find_rewards(view, ref)
        if accepted and accepted[-1].kind == events.ABANDONED:
            return _refuse(turn, decision_id, values, value, "abandoned", ref)
        known = _known(accepted)
        new = {name: one for name, one in values.items() if name not in known}
        if len(new) < len(values):
            # A window holds the corrected value, but a caller's retry may still say the first one.
            corrected = view.find(f"x:{ref}")
            right = known if corrected is None else known | decode(corrected, Corrected).values
            versions = ((accepted[-1], known), (corrected or accepted[-1], right))
            same = [
                event for event, then in versions if all(then.get(name, one) == one for name, one in values.items())
            ]
            if not same:
                return _refuse(turn, decision_id, values, value, "conflict", ref)
            if not new:
                return Receipt(decision_id=decision_id, value=value, is_repeat=True, head=EventHead(*same[0].head))
        parts = len(accepted)
    if windows is not None:
        # One that is due may still be open: one transaction closes so many at most.
        is_late = waiting is None or waiting.closes <= turn.now
    else:
        assert decision is not None
        of = round_number(decision)
        is_late = not state.policy.settlement.awaits(of)
        if parts and not is_late and not state.kind.takes_parts(state.policy, of):
            return _refuse(turn, decision_id, values, value, "conflict", ref)
    if is_late:
        return _refuse(turn, decision_id, values, value, "too_late", ref)
    if not state.kind.accepts(state.policy, values):
        return _refuse(turn, decision_id, values, value, "out_of_range", ref)
    record = Reward(decision_id=ref, values=dict(new))
    event = turn.write(events.REWARD, record, events.reward_key(ref, parts))
    state.rewarded(record, event.time, lambda: 0 if decision is None else round_number(decision))
    return Receipt(decision_id=decision_id, value=value, head=EventHead(*event.head))


def _known(accepted: list[Event]) -> dict[str, float]:
    """The rewards that were accepted, by metric."""
    return {name: float(one) for event in accepted for name, one in decode(event, Reward).values.items()}


def _refuse(
    turn: Turn, decision_id: str, values: dict[str, float], value: Any, reason: Reason, ref: str | None = None
) -> Receipt:
    """Record a refusal under the decision's reference, or only count it if there were too many."""
    entry = turn.state.counts.refusals.get(reason, Refusals())
    if entry.recorded_in(turn.now) >= MOST_RECORDED:
        turn.unrecorded[reason] = turn.unrecorded.get(reason, 0) + 1
        return Receipt(decision_id=decision_id, value=value, refused=reason, is_recorded=False)
    record = Reward(
        decision_id=stranger(turn.state.created, decision_id) if ref is None else ref,
        values={name: number(one) for name, one in values.items()},
        refused=reason,
        unrecorded=turn.unrecorded.pop(reason, 0),
    )
    event = turn.write(events.REWARD, record)
    turn.state.counts.rewarded(record, event.time)
    return Receipt(decision_id=decision_id, value=value, refused=reason, head=EventHead(*event.head))


def abandon(turn: Turn, decision_id: str, reason: str, by: str) -> bool | DecisionError:
    """Settle a decision without its reward, or without the metrics that are still missing; false if it was before."""
    state = turn.state
    decision = find_decision(state.created, turn.transaction, decision_id)
    if decision is None:
        return DecisionError(f"A decision must exist to be abandoned, but none has the id {decision_id!r:.80}.")
    ref = reference(decision)
    accepted, of = find_rewards(turn.transaction, ref), round_number(decision)
    if accepted and accepted[-1].kind == events.ABANDONED:
        return False
    if (accepted and of not in state.policy.settlement.parts) or not is_open(turn, ref, decision):
        return DecisionSettledError(
            f"A decision must be without a reward to be abandoned, but {decision_id!r} is settled: its reward has come "
            "or its window has closed. Dropping a known reward would select the data by their values."
        )
    record = Abandoned(decision_id=ref, reason=reason, by=by)
    event = turn.write(events.ABANDONED, record, events.reward_key(ref, len(accepted)))
    state.abandoned(record, of, event.time)
    return True


def is_open(turn: Turn, ref: str, decision: Event) -> bool:
    """Whether nothing of the decision is learned, and its window is open."""
    windows = turn.state.windows
    # A window that is due may still be open: one transaction closes so many at most.
    waiting = None if windows is None else windows.find(ref)
    if windows is not None and (waiting is None or waiting.closes <= turn.now):
        return False
    return bool(turn.state.policy.settlement.awaits(round_number(decision)))


def correct(turn: Turn, decision_id: str, values: dict[str, float], reason: str, by: str) -> bool | SurefootError:
    """Replace rewards that were measured wrongly, as long as nothing was learned from them; false where they are so.

    What was learned stands: confidence sets, banks, and decisions made since, rest on it. A fork of a linear policy
    can learn the right one instead (`surefoot.experiment.fork`, `corrections`).
    """
    state, view = turn.state, turn.transaction
    if not state.kind.accepts(state.policy, values):
        return InputError(f"`value` must be finite, and within what was declared, but got {values!r:.80}.")
    decision = find_decision(state.created, view, decision_id)
    if decision is None:
        return DecisionError(f"A decision must exist to be corrected, but none has the id {decision_id!r:.80}.")
    ref = reference(decision)
    accepted, before = find_rewards(view, ref), view.find(f"x:{ref}")
    known = {} if not accepted or accepted[-1].kind != events.REWARD else _known(accepted)
    missing = [name for name in values if name not in known]
    if missing:
        return DecisionError(
            f"A reward must have come to be corrected, but {decision_id!r:.80} has no {', '.join(missing)}: send it."
        )
    if before is not None:
        known |= {name: float(one) for name, one in decode(before, Corrected).values.items()}
    if all(known[name] == one for name, one in values.items()):
        return False
    if before is not None:
        return DecisionConflictError(
            f"A reward is corrected once, but that of {decision_id!r:.80} was corrected to {known} before."
        )
    windows, of = state.windows, round_number(decision)
    waiting = None if windows is None else windows.find(ref)
    if state.kind.is_of_unit(state.kind.opened(decision, view)):
        return DecisionSettledError(
            f"A reward must be a round's own to be corrected, but that of {decision_id!r:.80} is a part of its unit's: "
            "it was added up with those of other visits."
        )
    if windows is None:
        settlement = state.policy.settlement
        is_unlearned = of in settlement.rewards or of in settlement.parts
    else:
        is_unlearned = waiting is not None and waiting.closes > turn.now
    if not is_unlearned:
        return DecisionSettledError(
            f"A reward must not have been learned to be corrected, but that of {decision_id!r:.80} was: what rests on "
            "it cannot be taken back. Fork the experiment, with the right one among its `corrections`."
        )
    if state.shard is not None and windows is None:
        return DecisionSettledError(
            f"A shard's reward must be in an open window to be corrected, but that of {decision_id!r:.80} has none: it "
            "is handed in as it came, and is learned where the shards meet. Declare a `reward_window` if rewards may "
            "have to be corrected."
        )
    plain: dict[str, Any] = dict(values)
    record = Corrected(decision_id=ref, values=plain, reason=reason, by=by)
    turn.write(events.CORRECTED, record, f"x:{ref}")
    state.corrected(record, of)
    return True
