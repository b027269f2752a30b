"""The verb `acknowledge`: a person answers the alarm, and the answer is journalled with its reason."""

from surefoot import records
from surefoot.errors import AlarmError, InputError, SurefootError
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.records import Response
from surefoot.safety.alarm import RESPONSES


def acknowledge(
    turn: UnitOfWork, response: Response, reason: str, by: str, alarm_round: int | None
) -> SurefootError | None:
    """Apply the answer and write it down, or return the error that refuses it."""
    if response not in RESPONSES:
        return AlarmError(f"`response` must be one of {', '.join(RESPONSES)}, but got {response!r:.80}.")
    if not reason.strip():
        return InputError("`reason` must say why the alarm is answered like this: an auditor will ask.")
    alarm = turn.state.policy.alarm
    meant = alarm_round if alarm_round is not None else 0 if alarm is None else alarm.round
    record = records.Acknowledged(response=response, reason=reason, by=by, alarm_round=meant)
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
    turn.write(records.ACKNOWLEDGED, record)
    return None
