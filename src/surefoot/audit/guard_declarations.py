"""What a guard was created with, read from its settings, and whether it can have been: defaults are the guard's own."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.rounds import events

GUARDS = ("Guard",)
RATES = tuple(4.0 * 2.13**-i for i in range(12))
REWARD = "reward"  # the name of the metric where there is but one
WORDS = {"promise": ("mean", "played"), "ramp": ("auto", "free", "gate"), "goal": ("earn", "save")}


@dataclass(frozen=True, slots=True)
class DeclaredMetric:
    """One metric; all numbers but its bounds are in units of its highest reward.

    bounds:  that no reward leaves
    sign:    1 for a floor, -1 for a ceiling
    most:    the most that the baseline earns on average
    event:   ln(rates/delta) for its share of delta
    default: what a missing reward counts; nan: its worst
    """

    name: str
    sign: float
    alpha: float
    low: float
    bounds: tuple[float, float]
    most: float
    event: float
    reserve: float
    is_played: bool
    default: float
    takes_predictions: bool = True

    def scaled(self, value: float) -> float:
        """A reward in units of the highest one."""
        return value / self.bounds[1]

    def holds(self, value: float) -> bool:
        """Whether a reward keeps to the declared bounds."""
        return self.bounds[0] <= value <= self.bounds[1]


@dataclass(frozen=True, slots=True)
class GuardDeclarations:
    """The settings of a guard as far as the audit needs them."""

    metrics: tuple[DeclaredMetric, ...]
    most: float
    steps: tuple[float, ...] | None
    ramp: str
    goal: str
    seed: int | None
    settle_after: int | None
    unit_window: int | None


def read_guard(settings: Mapping[str, Any]) -> GuardDeclarations:
    """The declarations of a guard."""
    plain = plain_metrics(settings)
    is_played = settings.get("promise", "mean") == "played"
    spent = float(settings["delta"]) / len(plain) / (2.0 if is_played else 1.0)
    schedule = settings.get("schedule")
    return GuardDeclarations(
        metrics=tuple(_metric(name, one, math.log(len(RATES) / spent), is_played) for name, one in plain.items()),
        most=min(float(settings.get("cap", 1.0)), 1.0 - float(settings.get("min_holdout", 0.02))),
        steps=None if schedule is None else tuple(map(float, schedule)),
        ramp=settings.get("ramp", "auto"),
        goal=settings.get("goal", "earn"),
        seed=settings.get("seed"),
        settle_after=settings.get("settle_after"),
        unit_window=settings.get("unit_window"),
    )


def plain_metrics(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The metrics as they were declared."""
    if settings.get("metrics") is not None:
        return dict(settings["metrics"])
    low, high = settings.get("reward_bounds", (0.0, 1.0))
    only = {name: settings.get(name) for name in ("alpha", "baseline_ceiling", "ceiling_given_context", "reserve")}
    return {REWARD: {"kind": "floor", "low": low, "high": high, "default": settings.get("default_reward"), **only}}


def _metric(name: str, one: Mapping[str, Any], event: float, is_played: bool) -> DeclaredMetric:
    high, ceiling, default = float(one["high"]), one.get("baseline_ceiling"), one.get("default")
    return DeclaredMetric(
        name=name,
        sign=1.0 if one["kind"] == "floor" else -1.0,
        alpha=float(one["alpha"]),
        low=float(one["low"]) / high,
        bounds=(float(one["low"]), high),
        most=1.0 if ceiling is None else float(ceiling) / high,
        event=event,
        reserve=float(one.get("reserve") or 0.0) / high,
        is_played=is_played,
        default=math.nan if default is None else float(default) / high,
        takes_predictions=ceiling is None or bool(one.get("ceiling_given_context")),
    )


def guard_faults(created: events.Created) -> Iterator[str]:
    """What no guard would have been made with, a sentence each."""
    settings = created.settings
    for name, words in WORDS.items():
        if settings.get(name, words[0]) not in words:
            yield f"`{name}` must be one of {words}, but {settings[name]!r:.80} was declared"
    windows = (created.reward_window, settings.get("settle_after"), settings.get("unit_window"))
    if sum(one is not None for one in windows) > 1 or not all(one is None or one > 0 for one in windows):
        yield f"a window must be of some seconds, or else of some rounds, but {windows} was declared"
    yield from _shares(settings)
    is_sound = all(one.get("kind") == "floor" and one.get("low") == 0 for one in plain_metrics(settings).values())
    if settings.get("unit_window") is not None and not is_sound:
        yield "units need floors that begin at 0, since a unit of which nothing is heard has a sum of 0"
    for name, one in plain_metrics(settings).items():
        yield from (f"metric {name!r}: {text}, but {dict(one)!r:.200} was declared" for text in _metric_faults(one))


def _shares(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, usual in (("delta", None), ("min_holdout", 0.02)):
        value = settings.get(name, usual)
        if not (_is_number(value) and 0 < float(value or 0) < 1):
            yield f"`{name}` must lie between 0 and 1, but {value!r:.80} was declared"
    shares = (settings.get("cap", 1.0), *(settings.get("schedule") or ()))
    if not all(_is_number(share) and 0 <= share <= 1 for share in shares):
        yield "`cap` and `schedule` must be shares between 0 and 1"


def _metric_faults(one: Mapping[str, Any]) -> Iterator[str]:
    low, high, alpha = one.get("low"), one.get("high"), one.get("alpha")
    if one.get("kind") not in ("floor", "ceiling"):
        yield "it must be a floor or a ceiling"
    if not (_is_number(alpha) and 0 < float(alpha or 0) < 1):
        yield "alpha must lie between 0 and 1"
    if not (_is_number(low) and _is_number(high) and 0 <= float(low or 0) < float(high or 0)):
        yield "`0 <= low < high` must hold"
        return
    reserve = one.get("reserve") or 0.0
    if not (_is_number(reserve) and reserve >= 0):
        yield "the reserve must be at least 0"
    for name in ("baseline_ceiling", "default"):
        value = one.get(name)
        if value is not None and not (_is_number(value) and float(low or 0) <= value <= float(high or 0)):
            yield f"{name} must lie between low and high"
    if one.get("kind") == "ceiling" and one.get("baseline_ceiling") is not None:
        yield "baseline_ceiling belongs to a floor"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
