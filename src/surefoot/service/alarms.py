"""Alarms and assumptions in plain words: what the guarantee rests on, and what speaks against it."""

from typing import Any, Literal

import msgspec

from surefoot.experiment import Status
from surefoot.experiment.records import Created


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
    "out_of_range": "outside of the declared bounds: are the bounds right, or the caller's units?",
}

WORDS = {
    "alpha": "At no time is more than this share of the baseline's reward given up.",
    "delta": "The chance that the guarantee fails although every assumption holds.",
    "noise": "Rewards scatter around their means no wider than this (sub-Gaussian scale).",
    "theta_bound": "The unknown weights are together no longer than this.",
    "feature_bound": "No feature row is longer than this; longer ones are refused.",
    "reward_range": "The mean reward of every action lies within this range.",
    "reward_floor": "The baseline's mean reward never falls below this.",
    "misspecification": "No mean reward is further than this from a linear function of the features.",
    "arms": "The number of arms; each has one mean reward that does not change.",
    "baseline_reward": "The mean reward of the baseline, known beforehand.",
}


def alarms_of(status: Status) -> list[Alarm]:
    """What is wrong."""
    found = []
    if status.is_refuted:
        text = "The data contradict what was declared. Only the baseline is played from now on."
        found.append(Alarm("refuted", "alarm", text))
    for reason, count in sorted(status.refused.items()):
        found.append(Alarm(f"refused-{reason}", "warning", f"{count:,} rewards were refused {REFUSALS[reason]}"))
    if status.fallback_rounds:
        text = f"{status.fallback_rounds:,} rounds were played by callers alone, for the service could not be reached."
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
    if created.reward_window is None:
        text = "Rewards are learned on arrival: when one arrives must not depend on what it is."
    else:
        text = "Seconds after which a reward is learned; where none came, the default reward is."
    return [*found, Assumption("reward_window", created.reward_window, text)]
