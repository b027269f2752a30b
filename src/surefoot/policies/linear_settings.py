"""Settings of linear policies: checked once, then the core's."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import count, finite, finite_array, fraction, nonnegative, positive
from surefoot.core import native
from surefoot.errors import AssumptionError, ConfigError
from surefoot.linear.actions import LENGTH_TOLERANCE
from surefoot.linear.radius import BY_LIKELIHOOD, bound_theta, read_radius
from surefoot.policies.delta_split import spend_delta
from surefoot.safety.constraints import Constraint
from surefoot.safety.gates import GATES, OPTIMISMS

# The largest ratio of a squared feature to the ridge. Claims hold beyond it too, since sets are widened by what
# rounding may have done; but that grows with the ratio, and a set widened too much says nothing (DRIFT_USABLE, 1e-3).
# Measured after 20 to 40 rows that leave half of the directions open: at 1e9 it is 2e-5 of a width in 5 dimensions and
# 7e-4 in 20, and at 1e10 already 7e-3 in 20.
MOST_RESOLVED = 1e9


# Single numbers: how each is checked, and what it means.
NUMBERS: dict[str, tuple[Callable[..., float], str]] = {
    "alpha": (fraction, "alpha is the share of the baseline's reward you accept losing; 0.05 keeps 95%."),
    "delta": (fraction, "delta is the probability that the guarantee fails."),
    "noise": (positive, "noise is the sub-Gaussian scale of a reward; 0.5 for rewards in [0, 1]."),
    "ridge": (positive, "ridge is the regulariser lambda; 1.0 is usual."),
    "theta_bound": (positive, "theta_bound bounds ||theta||."),
    "feature_bound": (positive, "feature_bound bounds the length of every feature row."),
    "reward_floor": (nonnegative, "reward_floor is a mean reward the baseline never falls below; 0 is always safe."),
    "misspecification": (
        nonnegative,
        "misspecification bounds how far a mean reward may lie from <theta, features>; 0 trusts the linear model.",
    ),
    "exploration": (positive, "exploration is LinUCB's alpha, such as 1."),
}


def read_number(name: str, value: Any) -> float:
    """A setting of `NUMBERS`, checked."""
    check, hint = NUMBERS[name]
    return check(name, value, hint=hint)


def linear_settings(settings: Mapping[str, Any]) -> Any:
    """A linear policy's settings, checked and as the core takes them."""
    core, bounds = native.LinearSettings(), settings.get("reward_bounds")
    numbers = {name: read_number(name, settings[name]) for name in NUMBERS if name in settings}
    size, ridge, misfit = numbers["feature_bound"], numbers["ridge"], numbers.pop("misspecification", 0.0)
    if not 1e-100 <= size <= 1e100:
        raise ConfigError(f"`1e-100 <= feature_bound <= 1e100` must hold, but got {size!r}. Rescale the features.")
    # Some room for rounding: the default ridge may lie exactly on this edge.
    if size / math.sqrt(ridge) > math.sqrt(MOST_RESOLVED) * (1 + 1e-9):
        raise ConfigError(
            f"`feature_bound**2 <= {MOST_RESOLVED:g} * ridge` must hold, but got feature_bound={size!r}, {ridge=}. "
            "Beside such features the ridge would be lost in rounding: "
            f"take a ridge of at least {size**2 / MOST_RESOLVED:.3g}, or rescale the features."
        )
    for name, number in numbers.items():
        setattr(core, name, number)
    core.misfit = misfit
    dim, is_bounded = settings["dim"], bounds is not None
    core.radius = read_radius(settings["radius"], dim=dim, misspecification=misfit, is_bounded=is_bounded)
    if bounds is not None:
        core.reward_low, core.reward_high = bounds
    return core


def read_bounds(bounds: Any) -> tuple[float, float]:
    """The declared bounds of a single reward."""
    hint = "reward_bounds holds the least and the largest single reward; (0, 1) for clicks."
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ConfigError(f"`reward_bounds` must be (low, high), but got {bounds!r:.80}. {hint}") from None
    low, high = (finite("reward_bounds", one, hint=hint) for one in (low, high))
    if not low < high:
        raise ConfigError(f"`low < high` must hold in reward_bounds, but got {bounds!r:.80}. {hint}")
    return low, high


def spread_of(bounds: tuple[float, float]) -> float:
    """The sub-Gaussian scale of rewards within bounds: half their width.  (Hoeffding)"""
    return (bounds[1] - bounds[0]) / 2


def read_known_reward(reward: float) -> float:
    """A known mean reward of the baseline: a finite number of at least 0."""
    value = finite("baseline_reward", reward, hint="It is the mean reward of the baseline's action.")
    if value < 0:
        raise AssumptionError(
            f"`baseline_reward >= 0` must hold, but got {value}. Keeping a share of a negative reward means nothing: "
            "add a constant to every reward so that the baseline's is never negative."
        )
    return value


def spread_and_radius(noise: float | None, radius: str | None, bounds: tuple[float, float] | None) -> tuple[float, str]:
    """Noise and radius, as the bounds of single rewards suggest them."""
    if noise is None and bounds is None:
        raise ConfigError(
            "`noise` or `reward_bounds` must be given: how far single rewards spread. For clicks take "
            "reward_bounds=(0, 1)."
        )
    spread = spread_of(bounds) if noise is None and bounds is not None else noise
    return cast("float", spread), radius or ("amm" if bounds is None else "best")


def read_range(reward_range: Sequence[float]) -> tuple[float, float]:
    """The least and the largest mean reward of any action."""
    hint = "reward_range holds the least and the largest mean reward of any action."
    if len(reward_range) != 2:
        raise ConfigError(f"`reward_range` must be (low, high), but got {reward_range!r}. {hint}")
    low, high = (finite("reward_range", value, hint=hint) for value in reward_range)
    if not low < high:
        raise ConfigError(f"`low < high` must hold in reward_range, but got {reward_range!r}. {hint}")
    return low, high


def length_of_theta(
    dim: int,
    theta_bound: float | None,
    actions: ArrayLike | None,
    means: Sequence[float] | None,
    misspecification: float,
    feature_bound: float,
) -> float:
    """B as it was declared, or as the actions prove it whose means lie in a range."""
    if actions is None:
        if theta_bound is None:
            raise ConfigError(
                "`theta_bound` or `actions` must be given: the largest length of theta, or rows that can be played and "
                "span all dimensions, which prove one together with the range of their means."
            )
        return theta_bound
    if theta_bound is not None or means is None:
        raise ConfigError(
            "`actions` stand in place of `theta_bound`, and need `reward_bounds` or `reward_range`, but got "
            f"theta_bound={theta_bound} and {'no range' if means is None else 'a range'}."
        )
    # Means may lie off <theta, row> by as much as the model may be wrong.
    off = finite("misspecification", misspecification, hint="It is how far a mean may lie from <theta, features>.")
    low, high = read_range(means)
    rows = finite_array("actions", actions, ndim=2)
    if rows.shape[1] != dim:
        raise ConfigError(
            f"`actions` must have dim={dim} columns, but got shape {rows.shape}. Give one row per action."
        )
    longest = float(np.linalg.norm(rows, axis=1).max(initial=0.0))
    if not longest <= feature_bound * (1.0 + LENGTH_TOLERANCE):
        raise ConfigError(
            f"`actions` must be rows that can be played, but one has length {longest:.6g}, beyond "
            f"feature_bound={feature_bound:.6g}. Give them as `decide` gets them."
        )
    return bound_theta(rows, (low - off, high + off))


def suitable_ridge(dim: int, noise: float, theta_bound: float, feature_bound: float) -> float:
    """The ridge d (sigma / B)^2: the Bayesian one for a theta spread evenly over the ball of radius B.

    A ridge costs lambda B^2 in the squared radius and saves in its log-determinant. On the benchmark this one removes a
    third of the conservative rounds. It is clipped to what floats can resolve beside the features.
    """
    dim = count("dim", dim, hint="dim is the number of features of a row.")
    noise, theta_bound = read_number("noise", noise), read_number("theta_bound", theta_bound)
    size = read_number("feature_bound", feature_bound)
    return float(min(max(dim * (noise / theta_bound) ** 2, size**2 / MOST_RESOLVED), 1e12 * size**2))


def safe_settings(core: Any, settings: Mapping[str, Any], constraint: Constraint) -> None:
    """SafeLUCB's own settings, checked, as the core takes them."""
    gate, optimism, radius = settings["gate"], settings["optimism"], settings["radius"]
    if radius in BY_LIKELIHOOD and (gate != "facts" or optimism != "set"):
        raise ConfigError(
            f"`gate='facts'` and `optimism='set'` must hold with radius={radius!r}, but got {gate!r} and "
            f"{optimism!r}. Its set joins a proof as a fact, and proposals have a model of their own."
        )
    if gate not in GATES:
        raise ConfigError(f"`gate` must be one of {', '.join(GATES)}, but got {gate!r}.")
    if optimism not in OPTIMISMS:
        raise ConfigError(f"`optimism` must be one of {', '.join(OPTIMISMS)}, but got {optimism!r}.")
    for name in ("realised_share", "restart_share"):
        if not 0 <= finite(name, settings[name], hint="It is a share of delta.") < 1:
            raise ConfigError(f"`0 <= {name} < 1` must hold, but got {settings[name]}.")
    spend_delta(core, settings, core.delta, restarts=0)
    bounds, reward_range = settings.get("reward_bounds"), settings["reward_range"]
    if reward_range is None:
        reward_range = bounds  # means lie where rewards do
    if reward_range is not None:
        low, high = read_range(reward_range)
        if core.reward_floor > high or high < 0:
            raise ConfigError(
                f"`reward_floor` and 0 must lie below the largest mean reward {high}, but the floor is "
                f"{core.reward_floor:g}. The baseline's reward is never negative."
            )
        if bounds is not None and not (bounds[0] <= low and high <= bounds[1]):
            raise ConfigError(
                f"`reward_range` must lie within reward_bounds={bounds!r}, but got {reward_range!r}. "
                "The mean of rewards lies within their bounds."
            )
        core.range_low, core.range_high = low, high
    core.gate, core.optimism = GATES[gate], OPTIMISMS[optimism]
    core.constraint, core.amount = constraint.code, constraint.amount
