"""What was declared when the experiment was created, and whether it can have been: defaults are the policies' own.

With settings that no policy takes every formula still gives a number, and a proof by it means nothing.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from surefoot.audit.confidence_sets import SetDeclarations
from surefoot.audit.constraints import CONSTRAINTS, LARGEST, CheckedConstraint, plain_constraint
from surefoot.audit.likelihood import LikelihoodDeclarations
from surefoot.rounds import events

LINEAR = ("LUCB", "CLUCB", "CLUCB2", "SafeLUCB")
ARMS = ("UCB", "ConservativeUCB")
BY_LIKELIHOOD = ("likelihood", "best")  # radii that use the likelihood set of bounded rewards
GUARDS = ("Guard",)
RATES = tuple(4.0 * 2.13**-i for i in range(12))
REWARD = "reward"  # the name of the metric where there is but one
WORDS = {
    "promise": ("mean", "played"), "ramp": ("auto", "free", "gate"), "goal": ("earn", "save"),
    "gate": ("facts", "joint", "ledger"), "optimism": ("set", "facts"), "nesting": ("exact", "latest"),
}  # fmt: skip
MOST_RESOLVED = 1e9  # the largest ratio of a squared feature to the ridge
RADII = ("paper", "logdet", "amm", "dual", "residual", *BY_LIKELIHOOD)
_LINEAR = {
    "dim", "delta", "noise", "ridge", "theta_bound", "feature_bound", "radius", "settle_after", "default_reward",
}  # fmt: skip
_WATCHED = {"alpha", "holdout", "watch_share", "seed"}
SETTINGS = {
    "LUCB": {*_LINEAR, "exploration"},
    "CLUCB": {*_LINEAR, *_WATCHED},
    "CLUCB2": {*_LINEAR, *_WATCHED, "reward_floor", "nesting"},
    "SafeLUCB": {
        *_LINEAR, *_WATCHED, "reward_bounds", "reward_range", "reward_floor", "gate", "constraint", "realised_share",
        "optimism", "misspecification", "restart_share",
    },
    "UCB": {"arms", "noise", "settle_after", "default_reward"},
    "ConservativeUCB": {
        "arms", "alpha", "delta", "noise", "reward_bounds", "baseline_reward", "settle_after", "default_reward",
    },
    "Guard": {
        "alpha", "delta", "reward_bounds", "baseline_ceiling", "promise", "ramp", "goal", "cap", "schedule",
        "min_holdout", "reserve", "metrics", "seed", "settle_after", "default_reward", "unit_window", "predict",
    },
}  # fmt: skip
# What depends on the order of rounds, or on all of them together, which no shard knows.
UNSHARED = {"misspecification", "holdout", "settle_after", "seed", "unit_window"}
_NEEDED = {
    "LUCB": ("dim", "delta", "noise", "theta_bound", "feature_bound"),
    "UCB": ("arms",),
    "ConservativeUCB": ("arms", "alpha", "delta"),
}


@dataclass(frozen=True)
class WatchDeclarations:
    """What was declared of the watch: the holdout (0: none), and its share of delta."""

    holdout: float = 0.0
    share: float = 0.0

    @property
    def is_on(self) -> bool:
        """Whether rounds are held out."""
        return self.holdout > 0.0


@dataclass(frozen=True)
class Declarations:
    """The settings of a linear policy as far as safety depends on them.

    set_delta, sum_delta: the shares of delta behind the confidence set, and behind the realised sum (0: not used)
    amount:               the constraint's own number
    """

    policy: str
    knowledge: SetDeclarations
    alpha: float
    reward_floor: float
    reward_range: tuple[float, float]
    constraint: CheckedConstraint
    amount: float
    sum_delta: float
    is_exact: bool
    learns_baseline: bool
    proposes_by_set: bool
    delta: float
    realised_share: float
    restart_share: float
    watch: WatchDeclarations
    likelihood: LikelihoodDeclarations | None = None
    exploration: float | None = None  # what a proposal counts a width, where that is not the radius of the set

    def after(self, restarts: int) -> "Declarations":
        """What may be spent of delta after so many restarts: 1 - share for the first set, then share 2^-k."""
        left = self._share_of(restarts) * (1.0 - self.watch.share)
        sets = left * (1.0 - self.realised_share) / (2.0 if self.knowledge.kind == "best" else 1.0)
        likelihood = None if self.likelihood is None else replace(self.likelihood, delta=sets)
        knowledge = replace(self.knowledge, delta=sets)
        return replace(self, knowledge=knowledge, likelihood=likelihood, sum_delta=left * self.realised_share)

    def watch_delta(self, restarts: int) -> float:
        """What false alarms of the watch may spend of delta after so many restarts."""
        return self._share_of(restarts) * self.watch.share

    def _share_of(self, restarts: int) -> float:
        kept = self.restart_share
        return self.delta * (1.0 - kept if restarts == 0 else kept * 2.0**-restarts)

    @property
    def worst_round(self) -> float:
        """The most that one round of the learner can lie below the floor, by the declared range or by B D alone."""
        least, most = self._means
        return max(0.0, (1.0 - self.alpha) * most - least)

    @property
    def worst_unplayed(self) -> float:
        """The most that the learner's action can be better than whatever was played in its place."""
        least, most = self._means
        return max(0.0, most - least)

    @property
    def _means(self) -> tuple[float, float]:
        known = self.knowledge
        reach = known.theta_bound * known.feature_bound + self.misspecification
        low, high = self.reward_range
        return max(low, -reach), min(high, reach)

    @property
    def longest_theta(self) -> float:
        """What a proposal counts a length before anything is learned."""
        if self.exploration is None:
            return self.knowledge.theta_bound
        return self.exploration / math.sqrt(self.knowledge.ridge)

    @property
    def misspecification(self) -> float:
        """How far a mean reward may lie from <theta, features>."""
        return self.knowledge.misspecification

    def known(self, value: float | list[float] | None) -> tuple[float, float]:
        """Least and largest mean reward of a round's baseline, by what was given and what was declared."""
        low, high = (
            (0.0, math.inf) if value is None else (value[0], value[1]) if isinstance(value, list) else (value,) * 2
        )
        if self.policy == "CLUCB":
            return low, high
        return max(low, self.reward_floor, self.reward_range[0]), min(high, self.reward_range[1])


def read_linear(policy: str, settings: Mapping[str, Any]) -> Declarations:
    """The declaration of a linear policy."""
    is_safe = policy == "SafeLUCB"
    plain = plain_constraint(settings)
    constraint = CONSTRAINTS[plain["name"]]
    share = float(settings.get("realised_share", 0.1)) if is_safe and settings.get("gate", "facts") == "facts" else 0.0
    delta = float(settings["delta"])
    holdout = float(settings.get("holdout") or 0.0) if policy != "LUCB" else 0.0
    watch = WatchDeclarations(holdout, float(settings.get("watch_share", 0.1)) if holdout else 0.0)
    bounds = settings.get("reward_bounds")
    low, high = settings.get("reward_range") or bounds or (-math.inf, math.inf)
    kind = settings.get("radius", "amm" if is_safe else "paper")
    knowledge = SetDeclarations(
        kind=kind,
        dim=int(settings["dim"]),
        delta=delta,
        noise=float(settings["noise"]),
        ridge=float(settings.get("ridge", 1.0)),
        theta_bound=float(settings["theta_bound"]),
        feature_bound=float(settings["feature_bound"]),
        misspecification=float(settings.get("misspecification", 0.0)),
        is_watched=watch.is_on,
    )
    return Declarations(
        policy=policy,
        knowledge=knowledge,
        alpha=float(settings.get("alpha") or 0.0),
        reward_floor=float(settings.get("reward_floor", 0.0)),
        reward_range=(float(low), float(high)),
        constraint=constraint,
        amount=constraint.amount(plain),
        sum_delta=delta * share,
        is_exact=policy == "CLUCB2" and settings.get("nesting", "exact") == "exact",
        learns_baseline=policy != "CLUCB",
        proposes_by_set=settings.get("optimism", "set") == "set",
        exploration=None if settings.get("exploration") is None else float(settings["exploration"]),
        delta=delta,
        realised_share=share,
        # Not today's default: settings without it are older than restarts.
        restart_share=float(settings.get("restart_share", 0.0)) if is_safe else 0.0,
        watch=watch,
        likelihood=LikelihoodDeclarations(
            dim=knowledge.dim,
            delta=delta,
            bounds=(float(bounds[0]), float(bounds[1])),
            highest_mean=float(high),
            theta_bound=knowledge.theta_bound,
            feature_bound=knowledge.feature_bound,
        )
        if kind in BY_LIKELIHOOD and bounds is not None
        else None,
    ).after(0)


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

    def scaled(self, value: float) -> float:
        """A reward in units of the highest one."""
        return value / self.bounds[1]

    def holds(self, value: float) -> bool:
        """Whether a reward keeps to the declared bounds."""
        return self.bounds[0] <= value <= self.bounds[1]


@dataclass(frozen=True, slots=True)
class GuardDeclarations:
    """The settings of a guard as far as the audit needs them; `forecast` are the metrics that it may predict itself."""

    metrics: tuple[DeclaredMetric, ...]
    forecast: frozenset[str]
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
    predicts = settings.get("predict", True) and settings.get("unit_window") is None
    uncapped = (name for name, one in plain.items() if one.get("baseline_ceiling") is None)
    return GuardDeclarations(
        forecast=frozenset(uncapped if predicts else ()),
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
    only = {name: settings.get(name) for name in ("alpha", "baseline_ceiling", "reserve")}
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
    )


def guard_faults(created: events.Created) -> Iterator[str]:
    """What no guard would have been made with, a sentence each."""
    settings = created.settings
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


Rule = tuple[Callable[[Any], bool], str]
_SHARE: Rule = lambda x: 0 < x < 1, "lie between 0 and 1"
_POSITIVE: Rule = lambda x: 0 < x < math.inf, "be above 0"
_NOT_NEGATIVE: Rule = lambda x: 0 <= x < math.inf, "be at least 0"
_PART: Rule = lambda x: 0 <= x < 1, "be at least 0 and below 1"
_COUNT: Rule = lambda x: isinstance(x, int) and x >= 1, "be a whole number of at least 1"
_SIZE: Rule = lambda x: isinstance(x, int) and 1 <= x <= 10_000, "be a whole number from 1 to 10,000"
_NUMBERS: dict[str, Rule] = {
    "alpha": _SHARE,
    "delta": _SHARE,
    "noise": _POSITIVE,
    "ridge": _POSITIVE,
    "theta_bound": _POSITIVE,
    "feature_bound": (lambda x: 1e-100 <= x <= 1e100, "lie between 1e-100 and 1e100"),
    "reward_floor": _NOT_NEGATIVE,
    "misspecification": _NOT_NEGATIVE,
    "exploration": _POSITIVE,
    "baseline_reward": _NOT_NEGATIVE,
    "realised_share": _PART,
    "restart_share": _PART,
    "holdout": _SHARE,
    "watch_share": _SHARE,
    "default_reward": (lambda x: abs(x) <= LARGEST, f"lie within +-{LARGEST:g}"),
    "dim": _SIZE,
    "arms": _SIZE,
    "settle_after": _COUNT,
}


def faults(created: events.Created) -> Iterator[str]:
    """What no policy would have been made with, a sentence each."""
    settings = created.settings
    # Whoever reads that something was promised must find that it was checked.
    for name in sorted(set(settings) - SETTINGS.get(created.policy, set(settings))):
        yield f"{created.policy} takes no `{name}`, but {settings[name]!r:.80} was declared"
    for name, words in WORDS.items():
        if settings.get(name, words[0]) not in words:
            yield f"`{name}` must be one of {words}, but {settings[name]!r:.80} was declared"
    if created.is_hub:
        yield from _shared(settings)
    if created.policy in GUARDS:
        yield from guard_faults(created)
        return
    unnamed = (*_NEEDED["LUCB"], "alpha") if created.policy in LINEAR else ()
    yield from _numbers(settings, _NEEDED.get(created.policy, unnamed))
    bounds = created.reward_bounds
    if bounds is not None and not -LARGEST <= bounds[0] < bounds[1] <= LARGEST:
        yield f"the declared rewards must lie between two numbers, but {bounds} was declared"
    if created.reward_window is not None and (settings.get("settle_after") or not created.reward_window > 0):
        yield "a window must be of some seconds, or else of some rounds"
    if created.confirm_within is not None and (created.policy != "SafeLUCB" or not created.confirm_within > 0):
        yield "only SafeLUCB counts rounds at their worst that nobody confirms, after some seconds"
    if created.confirm_within is not None and (created.reward_window or settings.get("settle_after")):
        yield "rounds must be confirmed, but a window teaches the default of one that perhaps nobody played"
    if created.policy in LINEAR:
        yield from _linear(created.policy, settings)
    if created.policy == "ConservativeUCB":
        yield from _arms(settings)


def _shared(settings: Mapping[str, Any]) -> Iterator[str]:
    name = plain_constraint(settings).get("name")
    if name not in ("cumulative", "reserve") or settings.get("promise", "mean") != "mean":
        yield f"shards share a cumulative floor of means, with a reserve or without, but {name!r:.80} was declared"
    for one in sorted(UNSHARED & set(settings)):
        if settings[one]:
            yield f"shards share no `{one}`, but {settings[one]!r:.80} was declared"


def _numbers(settings: Mapping[str, Any], needed: tuple[str, ...]) -> Iterator[str]:
    for name, rule in _NUMBERS.items():
        if settings.get(name) is not None or name in needed:
            yield from _number(name, *rule, settings.get(name))


def _number(name: str, is_sound: Callable[[Any], bool], text: str, value: Any) -> Iterator[str]:
    if value is None:
        yield f"`{name}` must {text}, but was not declared"
    elif not (_is_number(value) and is_sound(value)):
        yield f"`{name}` must {text}, but {value!r:.80} was declared"


def _linear(policy: str, settings: Mapping[str, Any]) -> Iterator[str]:
    radius, dim, misfit = settings.get("radius"), settings.get("dim"), settings.get("misspecification") or 0.0
    if radius is not None and radius not in RADII:
        yield f"`radius` must be one of {', '.join(RADII)}, but {radius!r:.80} was declared"
    if dim == 1 and (radius or ("amm" if policy == "SafeLUCB" else "paper")) == "paper":
        yield "the paper's radius holds from `dim` 2 on, but 1 was declared"
    if misfit != 0.0 and (policy != "SafeLUCB" or radius in ("dual", "residual", *BY_LIKELIHOOD)):
        yield f"{policy} with this radius allows for no `misspecification`, but {misfit!r:.80} was declared"
    if settings.get("exploration") is not None and policy != "LUCB":
        yield f"{policy} proposes by its confidence set, but an `exploration` was declared"
    size: Any = settings.get("feature_bound")
    ridge: Any = settings.get("ridge", 1.0)
    # A ridge of 0 or less is a finding of its own; here it must not raise. The default may lie exactly on the edge.
    most = math.sqrt(MOST_RESOLVED) * (1 + 1e-9)
    if _is_number(size) and _is_number(ridge) and not size / math.sqrt(max(ridge, 1e-300)) <= most:
        yield f"`feature_bound` must be resolved beside the ridge, but {size!r} was declared beside {ridge!r}"
    if settings.get("holdout") and misfit != 0.0:
        yield f"a `holdout` is watched without `misspecification`, but {misfit!r:.80} was declared"
    if radius in BY_LIKELIHOOD and (settings.get("gate", "facts") != "facts" or policy != "SafeLUCB"):
        yield f"{policy} with this gate has no radius {radius!r}, but it was declared"
    yield from _constraint(settings)
    yield from _bounds(settings, needed=radius in BY_LIKELIHOOD)
    yield from _range(settings)


def _arms(settings: Mapping[str, Any]) -> Iterator[str]:
    texts, known = list(_bounds(settings, needed=False)), settings.get("baseline_reward")
    yield from texts
    bounds = settings.get("reward_bounds")
    if bounds is not None and not texts and _is_number(known) and not bounds[0] <= known <= bounds[1]:
        yield f"`baseline_reward` must lie within the bounds of rewards {bounds!r:.80}, but {known!r} was declared"


def _constraint(settings: Mapping[str, Any]) -> Iterator[str]:
    plain = plain_constraint(settings)
    name = plain.get("name")
    if name not in CONSTRAINTS:
        yield f"`constraint` must be one of {', '.join(CONSTRAINTS)}, but {name!r:.80} was declared"
    elif (number := CONSTRAINTS[name].number) is not None:
        yield from _number(*number, plain.get(number[0]))


def _bounds(settings: Mapping[str, Any], *, needed: bool) -> Iterator[str]:
    value = settings.get("reward_bounds")
    if value is None:
        if needed:
            yield "the likelihood set needs `reward_bounds`, but none were declared"
    elif not (len(value) == 2 and all(map(_is_number, value)) and value[0] < value[1]):
        yield f"`reward_bounds` must be two numbers, low and high, but {value!r:.80} was declared"
    elif (means := settings.get("reward_range")) and not value[0] <= means[0] <= means[1] <= value[1]:
        yield f"`reward_range` must lie within the bounds of rewards {value!r:.80}, but {means!r:.80} was declared"


def _range(settings: Mapping[str, Any]) -> Iterator[str]:
    value = settings.get("reward_range")
    if value is None:
        return
    floor = settings.get("reward_floor") or 0.0
    is_sound = len(value) == 2 and all(map(_is_number, value)) and value[0] < value[1] and value[1] >= max(0.0, floor)
    if not is_sound:
        yield f"`reward_range` must lie above 0 and the floor, from low to high, but {value!r:.80} was declared"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
