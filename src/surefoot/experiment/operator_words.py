"""What operators say, in a turn: modes, answers to an alarm, erasures, and what a restore has lost."""

from collections.abc import Sequence

from surefoot.errors import (
    AlarmError,
    DecisionError,
    InputError,
    ModeError,
    SurefootError,
)
from surefoot.experiment.sealing import (
    find_decision,
    reference,
)
from surefoot.experiment.turn import Turn
from surefoot.journal import View
from surefoot.rounds import events
from surefoot.rounds.events import Acknowledged, ModeName, Response
from surefoot.safety.alarm import RESPONSES
from surefoot.sharing.hub import NEXT_MODES, refused_mode

MOST_ERASED = 1000  # texts erased in one transaction


def change_mode(turn: Turn, mode: ModeName, reason: str, by: str) -> ModeName | ModeError:
    """Change the mode, and return the one before; the same mode again changes nothing."""
    before = turn.state.mode
    if mode != before and mode not in NEXT_MODES[before]:
        return refused_mode(before, mode)
    if mode != before:
        go_over(turn, events.Mode(mode=mode, reason=reason, by=by))
    return before


def take_over(turn: Turn, lost: int, reason: str, by: str) -> None:
    """Go on from a copy of the chain, which lacks at least so many events: a guarded experiment is paused."""
    if turn.state.restored == turn.state.head.number:
        return  # a restore that was cut short
    mode: ModeName = "paused" if turn.state.mode == "guarded" else turn.state.mode
    if lost or mode != turn.state.mode or turn.state.kind.draws:  # whose coins may have been seen
        go_over(turn, events.Mode(mode=mode, reason=reason, by=by, lost=lost))


def acknowledge(turn: Turn, response: Response, reason: str, by: str, alarm_round: int | None) -> SurefootError | None:
    """Apply a person's answer to the alarm and write it down, or return the error that refuses it."""
    if response not in RESPONSES:
        return AlarmError(f"`response` must be one of {', '.join(RESPONSES)}, but got {response!r:.80}.")
    alarm = turn.state.policy.alarm
    meant = alarm_round if alarm_round is not None else 0 if alarm is None else alarm.round
    record = Acknowledged(response=response, reason=reason, by=by, alarm_round=meant)
    # A retry whose first answer got lost: by now the alarm may be off, which is no error.
    if alarm_round is not None and record == turn.state.answer:
        return None
    if alarm is not None and alarm.round != meant:
        return AlarmError(
            f"The alarm that is on was raised after round {alarm.round}, but the answer is for that of round {meant}. "
            "Look at it first: it may be another one."
        )
    try:
        turn.state.acknowledged(record)
    except AlarmError as error:  # nothing has changed
        return error
    turn.write(events.ACKNOWLEDGED, record)
    return None


def erase(
    turn: Turn, decision_ids: Sequence[str], person: str | None, before: float | None, by: str, reason: str
) -> int | SurefootError:
    """Erase private texts, at most `MOST_ERASED`, and write that down; returns how many.

    Gone are the id, the names of actions, the unit and the context of a decision (`surefoot.experiment.sealing`), for
    good. The features, the proof and the reward stay, so that ledger and audit are as they were. The decision is then
    known by its reference alone: a round that still waits for its reward can be settled by that.
    """
    view = turn.transaction
    if not turn.state.created.is_sealed:
        return InputError(
            "Only a sealed experiment can be erased from, but the chain of this one holds ids and contexts itself. "
            "Archive or delete it, and create the next one `sealed`."
        )
    named = set[int]()
    for decision_id in decision_ids:
        decision = find_decision(turn.state.created, view, decision_id)
        if decision is None:
            return DecisionError(f"A decision must exist to be erased, but none has the id {decision_id!r:.80}.")
        voided = view.find(f"v:{reference(decision)}")
        about = (decision, voided) if voided is not None else (decision,)
        named |= {event.number for event in about if view.private(event.number) is not None}
    others = set[int]()
    if person is not None:
        others |= set(view.about(person))
    if before is not None:
        last = _last_before(view, before)
        others |= {of for of, _ in view.privates(0, MOST_ERASED) if of <= last}
    # Those that were named go in any case; the rest, oldest first, may have to wait for the next turn.
    numbers = sorted([*named, *sorted(others - named)[: MOST_ERASED - len(named)]])
    erased = view.erase(numbers)
    if erased:
        turn.state.forget_contexts()
        turn.write(events.ERASED, events.Erased(events=numbers, reason=reason, by=by))
    return erased


def _last_before(view: View, time: float) -> int:
    """Number of the last event before that time; times never run backwards, so that halving finds it."""
    low, high = 0, view.head.number
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if view.page(middle - 1, 1)[0].time < time else (low, middle - 1)
    return low


def go_over(turn: Turn, record: events.Mode) -> None:
    """Write a mode down, and go over to it."""
    event = turn.write(events.MODE, record)
    turn.state.went_over(record, event.number)
