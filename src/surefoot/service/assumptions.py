"""What the guarantee rests on: everything that was declared when the experiment began, in words."""

from typing import Any

import msgspec

from surefoot.experiment.kinds import kind_of
from surefoot.policies.guard_settings import REWARD
from surefoot.rounds.events import Created
from surefoot.safety.constraints import Constraint, Cumulative


class Assumption(msgspec.Struct, frozen=True):
    """Something that was declared, and that the guarantee rests on."""

    setting: str
    value: Any
    text: str


class Assumptions(msgspec.Struct, frozen=True):
    """All that the guarantee rests on."""

    assumptions: list[Assumption]


WORDS = {
    "alpha": "At no time is more than this share of the baseline's reward given up.",
    "delta": "The probability that the guarantee fails although every assumption holds.",
    "noise": "Rewards scatter around their means no wider than this (sub-Gaussian scale).",
    "theta_bound": "The vector of unknown weights is no longer than this.",
    "feature_bound": "No feature row is longer than this; longer ones are refused.",
    "reward_bounds": "Every single reward lies within these bounds.",
    "reward_range": "The mean reward of every action lies within this range.",
    "reward_floor": "The baseline's mean reward never falls below this.",
    "misspecification": "No mean reward is further than this from a linear function of the features.",
    "holdout": "By a coin, the baseline plays this share of the rounds in which the learner may: that shows a drift.",
    "arms": "The number of arms; each has one mean reward that does not change.",
    "baseline_reward": "The mean reward of the baseline, known beforehand.",
    "settle_after": "Rounds after which a missing reward is learned as the default.",
}

HOLDOUT = "Today's choice is played in at least this share of the decisions, so that changes on its side are seen."

GUARD_WINDOWS = {
    "settle_after": "Rounds after which a missing reward is booked as the default, or else at its worst.",
    "unit_window": "Rounds for which a unit keeps its side, and over which its rewards are added up.",
}

PROMISES = {
    "mean": "What is kept: the mean reward, averaged over the guard's own coins.",
    "played": "What is kept: the mean reward of what was played, the coins as they fell.",
}


def assumptions_of(created: Created) -> list[Assumption]:
    """What was declared, in words."""
    settings = created.settings
    if kind_of(created).draws:
        return [*_guard_assumptions(settings), *_times(created)]
    found = [
        Assumption(name, settings[name], text)
        for name, text in WORDS.items()
        if settings.get(name) is not None and (name != "misspecification" or settings[name])
    ]
    if created.reward_bounds is not None:
        text = "Every single reward lies within these bounds; one that does not raises the alarm."
        found.append(Assumption("reward_bounds", list(created.reward_bounds), text))
    return [*found, *_constraint(settings), *_times(created)]


def _constraint(settings: dict[str, Any]) -> list[Assumption]:
    """What must never be lost, where that is another rule than the floor at every round."""
    told = dict(settings.get("constraint") or {})
    name = told.pop("name", None)
    if name not in Constraint.known or name == Cumulative.name:
        return []
    return [Assumption(f"constraint.{name}", next(iter(told.values()), None), Constraint.known[name].says)]


def _times(created: Created) -> list[Assumption]:
    """The windows that were declared, and by how much clocks may differ."""
    found = [_window(created)]
    if created.reward_window is not None and created.default_reward is not None:
        text = "Reward assumed when none arrives within the window."
        found.append(Assumption("default_reward", created.default_reward, text))
    if created.confirm_within is not None:
        text = "Seconds within which callers confirm a round of the learner; until they do, it counts at its worst."
        found.append(Assumption("confirm_within", created.confirm_within, text))
    if created.skew is not None:
        text = (
            "Seconds by which the clocks of servers differ at most: less than the time between a decision and anything "
            "that its reward can influence."
        )
        found.append(Assumption("skew", created.skew, text))
    return found


def _window(created: Created) -> Assumption:
    if created.reward_window is None:
        text = "No window: rewards are learned in the order of the decisions, as they come."
    else:
        text = "Seconds after which a reward is learned; where none came, the default reward is."
    return Assumption("reward_window", created.reward_window, text)


def _guard_assumptions(settings: dict[str, Any]) -> list[Assumption]:
    low, high = settings["reward_bounds"]
    single = {"kind": "floor", "low": low, "high": high, **settings}
    metrics = settings["metrics"] or {REWARD: single}
    found = [entry for name, metric in metrics.items() for entry in _metric_assumptions(name, metric)]
    coin = "The coin of every decision is fair, and nobody foresees it: the server draws it from the system."
    return [
        Assumption("delta", settings["delta"], WORDS["delta"]),
        Assumption("promise", settings["promise"], PROMISES[settings["promise"]]),
        *found,
        Assumption("coin", "system", coin),
        Assumption("min_holdout", settings["min_holdout"], HOLDOUT),
        *(
            Assumption(name, settings[name], text)
            for name, text in GUARD_WINDOWS.items()
            if settings.get(name) is not None
        ),
    ]


def _metric_assumptions(name: str, metric: dict[str, Any]) -> list[Assumption]:
    alpha, bounds = metric["alpha"], [metric["low"], metric["high"]]
    kept = f"at least {1 - alpha:.4g}" if metric["kind"] == "floor" else f"at most {1 + alpha:.4g}"
    text = f"Every single value of {name!r} lies within these bounds; one that does not is refused."
    found = [
        Assumption(f"{name}.alpha", alpha, f"The mean of {name!r} is {kept} times the baseline's, at every moment."),
        Assumption(f"{name}.bounds", bounds, text),
    ]
    if metric.get("baseline_ceiling") is not None:
        text = f"The baseline's mean of {name!r} is never higher than this, whatever is known of a round."
        found.append(Assumption(f"{name}.baseline_ceiling", metric["baseline_ceiling"], text))
    if metric.get("reserve"):
        text = f"What may be spent of {name!r} in addition to alpha, in all."
        found.append(Assumption(f"{name}.reserve", metric["reserve"], text))
    return found
