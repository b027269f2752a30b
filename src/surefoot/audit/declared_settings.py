"""Whether what was declared can have been declared: a policy refuses a negative noise, and so must who audits it.

With settings that no policy takes every formula still gives a number, and a proof by it means nothing.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from surefoot.audit.declarations import AMOUNTS, BY_LIKELIHOOD, LINEAR
from surefoot.audit.guard_declarations import GUARDS, guard_faults
from surefoot.audit.learned_rewards import LARGEST
from surefoot.rounds import events

MOST_RESOLVED = 1e15  # the largest ratio of a squared feature to the ridge that any version has taken; today it is 1e9
RADII = ("paper", "logdet", "amm", "dual", "residual", *BY_LIKELIHOOD)
CONSTRAINTS = ("cumulative", "stagewise", *AMOUNTS)

Rule = tuple[Callable[[Any], bool], str]
_SHARE: Rule = lambda x: 0 < x < 1, "lie between 0 and 1"
_POSITIVE: Rule = lambda x: 0 < x < math.inf, "be above 0"
_NOT_NEGATIVE: Rule = lambda x: 0 <= x < math.inf, "be at least 0"
_PART: Rule = lambda x: 0 <= x < 1, "be at least 0 and below 1"
_COUNT: Rule = lambda x: isinstance(x, int) and x >= 1, "be a whole number of at least 1"
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
    "dim": _COUNT,
    "arms": _COUNT,
    "settle_after": _COUNT,
    "every": _COUNT,
    "granted": _POSITIVE,
    "lowest_reward": (lambda x: abs(x) <= LARGEST, f"lie within +-{LARGEST:g}"),
}
_NEEDED = {
    "LUCB": ("dim", "delta", "noise", "theta_bound", "feature_bound"),
    "UCB": ("arms",),
    "ConservativeUCB": ("arms", "alpha", "delta"),
}


def faults(created: events.Created) -> Iterator[str]:
    """What no policy would have been made with, a sentence each."""
    settings = created.settings
    if created.policy in GUARDS:
        yield from guard_faults(created)
        return
    yield from _numbers(settings, _NEEDED.get(created.policy, (*_NEEDED["LUCB"], "alpha")))
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


def _numbers(settings: Mapping[str, Any], needed: tuple[str, ...]) -> Iterator[str]:
    for name, (is_sound, text) in _NUMBERS.items():
        value = settings.get(name)
        if value is None and name in needed:
            yield f"`{name}` must {text}, but was not declared"
        elif value is not None and not (_is_number(value) and is_sound(value)):
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
    # A ridge of 0 or less is a finding of its own; here it must not raise.
    if _is_number(size) and _is_number(ridge) and not size / math.sqrt(max(ridge, 1e-300)) <= math.sqrt(MOST_RESOLVED):
        yield f"`feature_bound` must be resolved beside the ridge, but {size!r} was declared beside {ridge!r}"
    if settings.get("holdout") and misfit != 0.0:
        yield f"a `holdout` is watched without `misspecification`, but {misfit!r:.80} was declared"
    if radius in BY_LIKELIHOOD and (settings.get("gate", "facts") != "facts" or policy != "SafeLUCB"):
        yield f"{policy} with this gate has no radius {radius!r}, but it was declared"
    yield from _constraint(settings)
    yield from _bounds(settings, needed=radius in BY_LIKELIHOOD)
    yield from _range(settings)


def _arms(settings: Mapping[str, Any]) -> Iterator[str]:
    found, known = list(_bounds(settings, needed=False)), settings.get("baseline_reward")
    yield from found
    bounds = settings.get("reward_bounds")
    if bounds is not None and not found and _is_number(known) and not bounds[0] <= known <= bounds[1]:
        yield f"`baseline_reward` must lie within the bounds of rewards {bounds!r:.80}, but {known!r} was declared"


def _constraint(settings: Mapping[str, Any]) -> Iterator[str]:
    given = settings.get("constraint") or "cumulative"
    plain: dict[str, Any] = {"name": given} if isinstance(given, str) else dict(given)
    name = plain.get("name")
    if name not in CONSTRAINTS:
        yield f"`constraint` must be one of {', '.join(CONSTRAINTS)}, but {name!r:.80} was declared"
    elif name in AMOUNTS:
        yield from _numbers({AMOUNTS[name]: plain.get(AMOUNTS[name])}, (AMOUNTS[name],))


def _bounds(settings: Mapping[str, Any], *, needed: bool) -> Iterator[str]:
    given = settings.get("reward_bounds")
    if given is None:
        if needed:
            yield "the likelihood set needs `reward_bounds`, but none were declared"
    elif not (len(given) == 2 and all(map(_is_number, given)) and given[0] < given[1]):
        yield f"`reward_bounds` must be two numbers, low and high, but {given!r:.80} was declared"
    elif (means := settings.get("reward_range")) and not given[0] <= means[0] <= means[1] <= given[1]:
        yield f"`reward_range` must lie within the bounds of rewards {given!r:.80}, but {means!r:.80} was declared"


def _range(settings: Mapping[str, Any]) -> Iterator[str]:
    given = settings.get("reward_range")
    if given is None:
        return
    floor = settings.get("reward_floor") or 0.0
    is_sound = len(given) == 2 and all(map(_is_number, given)) and given[0] < given[1] and given[1] >= max(0.0, floor)
    if not is_sound:
        yield f"`reward_range` must lie above 0 and the floor, from low to high, but {given!r:.80} was declared"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
