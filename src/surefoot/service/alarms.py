"""Alarms and assumptions in plain words: what the guarantee rests on, and what contradicts it."""

import math
from typing import Any, Literal

import msgspec

from surefoot.experiment import Status
from surefoot.records import Created


class Alarm(msgspec.Struct, frozen=True):
    """Something that somebody should look at."""

    kind: str
    level: Literal["alarm", "warning"]
    text: str


class Alarms(msgspec.Struct, frozen=True):
    """What is wrong now; empty where nothing is."""

    alarms: list[Alarm]


class Assumption(msgspec.Struct, frozen=True):
    """Something that was declared, and that the guarantee rests on."""

    setting: str
    value: Any
    text: str


class Assumptions(msgspec.Struct, frozen=True):
    """All that the guarantee rests on."""

    assumptions: list[Assumption]


REFUSALS = {
    "unknown": "for decisions that do not exist: is the caller sending the right decision_id?",
    "conflict": "that contradict an earlier one for the same decision: is one reward sent twice, with two values?",
    "too_late": "after their window had closed: is reward_window too short?",
    "out_of_range": "that are not finite, or too large to compute with: what does the caller measure?",
    "abandoned": "for decisions that had been abandoned: was their reward really lost?",
}

WORDS = {
    "alpha": "At no time is more than this share of the baseline's reward given up.",
    "delta": "The probability that the guarantee fails although every assumption holds.",
    "noise": "Rewards scatter around their means no wider than this (sub-Gaussian scale).",
    "theta_bound": "The vector of unknown weights is no longer than this.",
    "feature_bound": "No feature row is longer than this; longer ones are refused.",
    "reward_range": "The mean reward of every action lies within this range.",
    "reward_floor": "The baseline's mean reward never falls below this.",
    "misspecification": "No mean reward is further than this from a linear function of the features.",
    "holdout": "By a coin, the baseline plays this share of the rounds in which the learner may: that shows a drift.",
    "arms": "The number of arms; each has one mean reward that does not change.",
    "baseline_reward": "The mean reward of the baseline, known beforehand.",
    "settle_after": "Rounds after which a missing reward is learned as the default.",
}


def alarms_of(status: Status) -> list[Alarm]:
    """What is wrong."""
    found = []
    if status.is_refuted:
        state = "It was acknowledged. " if status.alarm_answer else ""
        what = "Only the baseline is played, and the floor is not proved any more."
        if math.isnan(status.floor):
            what = "This policy keeps no floor, and plays on."
        text = f"{status.alarm} {state}{what}"
        found.append(Alarm("refuted", "alarm", text))
    if status.is_stalled:
        text = (
            f"{status.waiting:,} rewards have waited for that of decision {status.held_up_by} for "
            f"{status.held_up_rounds:,} rounds, and nothing is learned. Send that reward, or abandon the decision."
        )
        found.append(Alarm("stalled", "warning", text))
    if status.promise_round > 1:
        text = f"A new promise was started after an alarm: it counts from round {status.promise_round:,} on."
        found.append(Alarm("renewed", "warning", text))
    if status.debt > 0:
        text = f"The learner restarted after an alarm, with a debt of {status.debt:,.4g} that must be earned back."
        found.append(Alarm("debt", "warning", text))
    for reason, count in sorted(status.refused.items()):
        found.append(Alarm(f"refused-{reason}", "warning", f"{count:,} rewards were refused {REFUSALS[reason]}"))
    if status.fallback_rounds:
        text = (
            f"{status.fallback_rounds:,} rounds were played by callers on their own: the service could not be reached."
        )
        found.append(Alarm("fallbacks", "warning", text))
    return found


def assumptions_of(created: Created) -> list[Assumption]:
    """What was declared, in words."""
    settings = created.settings
    found = [
        Assumption(name, settings[name], text)
        for name, text in WORDS.items()
        if settings.get(name) is not None and (name != "misspecification" or settings[name])
    ]
    if created.reward_bounds is not None:
        text = "Every single reward lies within these bounds; one that does not raises the alarm."
        found.append(Assumption("reward_bounds", list(created.reward_bounds), text))
    if created.reward_window is None:
        text = "No window: rewards are learned in the order of the decisions, as they come."
    else:
        text = "Seconds after which a reward is learned; where none came, the default reward is."
    return [*found, Assumption("reward_window", created.reward_window, text)]
