"""Alarms in plain words: what contradicts the guarantee, and what somebody should look at."""

import math
from typing import Literal

import msgspec

from surefoot.experiment import Status


class Notice(msgspec.Struct, frozen=True):
    """Something that somebody should look at; `runbook` is the heading of docs/operations.md that says what to do."""

    kind: str
    level: Literal["alarm", "warning"]
    text: str
    runbook: str = ""


class Notices(msgspec.Struct, frozen=True):
    """What is wrong now; empty where nothing is."""

    alarms: list[Notice]


OUT_OF_BOUNDS = "outside of the declared bounds: cut rewards to these, or declare wider ones for a new guard."
REFUSALS = {
    "unknown": "for want of a decision with that id: is the caller sending the right decision_id?",
    "conflict": "for contradicting an earlier one of the same decision: is one reward sent twice, with two values?",
    "too_late": "after the window had closed: is reward_window too short?",
    "out_of_range": "for not being finite, or too large to compute with: what does the caller measure?",
    "abandoned": "after the decision had been abandoned: was the reward really lost?",
}


def alarms_of(status: Status) -> list[Notice]:
    """What is wrong."""
    found = []
    if status.is_refuted:
        state = "It was acknowledged. " if status.alarm_answer else ""
        what = "Only the baseline is played, and the floor is not proved any more."
        if math.isnan(status.floor):
            what = "This policy keeps no floor, and plays on."
        text = f"{status.alarm} {state}{what}"
        found.append(Notice("refuted", "alarm", text, "SurefootAlarm"))
    if status.is_stalled:
        waiting = "One reward has" if status.waiting == 1 else f"{status.waiting:,} rewards have"
        text = (
            f"{waiting} waited for that of decision {status.held_up_by} for {status.held_up_rounds:,} rounds, and "
            "nothing is learned. Send that reward, or abandon the decision."
        )
        found.append(Notice("stalled", "warning", text, "SurefootRewardsStalled"))
    if status.promise_round > 1:
        text = f"A new promise was started after an alarm: it counts from round {status.promise_round:,} on."
        found.append(Notice("renewed", "warning", text))
    if status.unconfirmed:
        rounds = f"{status.unconfirmed:,} learner rounds are unconfirmed and count at their worst."
        if status.unconfirmed == 1:
            rounds = "One learner round is unconfirmed and counts at its worst."
        text = f"{rounds} Do callers confirm, or have some died?"
        found.append(Notice("unconfirmed", "warning", text, "SurefootRoundsUnconfirmed"))
    if status.debt > 0 and status.restarts:
        text = f"The learner restarted after an alarm, with a debt of {status.debt:,.4g} that must be earned back."
        found.append(Notice("debt", "warning", text))
    words = REFUSALS if status.guard is None else {**REFUSALS, "out_of_range": OUT_OF_BOUNDS}
    for reason, count in sorted(status.refused.items()):
        text = f"{'One reward was' if count == 1 else f'{count:,} rewards were'} refused {words[reason]}"
        found.append(Notice(f"refused-{reason}", "warning", text, "SurefootRewardsRefused"))
    if status.fallback_rounds:
        count = status.fallback_rounds
        played = "One round was" if count == 1 else f"{count:,} rounds were"
        text = f"{played} played by callers on their own: the service could not be reached."
        found.append(Notice("fallbacks", "warning", text, "SurefootFallbacks"))
    return found
