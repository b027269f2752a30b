"""SafeLUCB's own settings: what is read of them, what is derived from others, and how delta is split."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import count, finite, finite_array, positive
from surefoot.errors import ConfigError
from surefoot.linear.actions import LENGTH_TOLERANCE
from surefoot.linear.radius import BY_LIKELIHOOD, bound_theta
from surefoot.policies.linear_settings import MOST_RESOLVED, spread_of
from surefoot.safety.alarm import RESTART_SHARE, delta_of
from surefoot.safety.constraints import Constraint
from surefoot.safety.facts_gate import GATES, OPTIMISMS

REALISED_SHARE = 0.1  # of delta, for the bound on the realised sum


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
    positive("noise", noise, hint="noise is the sub-Gaussian scale of a reward.")
    positive("theta_bound", theta_bound, hint="theta_bound bounds ||theta||.")
    size = positive("feature_bound", feature_bound, hint="feature_bound bounds the length of every feature row.")
    return float(min(max(dim * (noise / theta_bound) ** 2, size**2 / MOST_RESOLVED), 1e12 * size**2))


def safe_settings(
    settings: Any,
    *,
    reward_range: Sequence[float] | None,
    gate: str,
    constraint: Constraint,
    realised_share: float,
    optimism: str,
    reward_bounds: tuple[float, float] | None = None,
    radius: str = "amm",
    restart_share: float = RESTART_SHARE,
) -> None:
    """Check SafeLUCB's own settings, and write them down."""
    if radius in BY_LIKELIHOOD and (gate != "facts" or optimism != "set"):
        raise ConfigError(
            f"`gate='facts'` and `optimism='set'` must hold with radius={radius!r}, but got {gate!r} and "
            f"{optimism!r}. Its set joins a proof as a fact, and proposals have a model of their own."
        )
    if gate not in GATES:
        raise ConfigError(f"`gate` must be one of {', '.join(GATES)}, but got {gate!r}.")
    if optimism not in OPTIMISMS:
        raise ConfigError(f"`optimism` must be one of {', '.join(OPTIMISMS)}, but got {optimism!r}.")
    for name, share in (("realised_share", realised_share), ("restart_share", restart_share)):
        if not 0 <= finite(name, share, hint="It is a share of delta.") < 1:
            raise ConfigError(f"`0 <= {name} < 1` must hold, but got {share}.")
    shares = {"realised_share": realised_share, "restart_share": restart_share}
    spend_delta(settings, delta=settings.delta, gate=gate, radius=radius, **shares, restarts=0)
    if reward_range is None:
        reward_range = reward_bounds  # means lie where rewards do
    if reward_range is not None:
        low, high = read_range(reward_range)
        if settings.reward_floor > high or high < 0:
            raise ConfigError(
                f"`reward_floor` and 0 must lie below the largest mean reward {high}, but the floor is "
                f"{settings.reward_floor:g}. The baseline's reward is never negative."
            )
        if reward_bounds is not None and not (reward_bounds[0] <= low and high <= reward_bounds[1]):
            raise ConfigError(
                f"`reward_range` must lie within reward_bounds={reward_bounds!r}, but got {reward_range!r}. "
                "The mean of rewards lies within their bounds."
            )
        settings.range_low, settings.range_high = low, high
    settings.gate, settings.optimism = GATES[gate], OPTIMISMS[optimism]
    settings.constraint, settings.amount = constraint.code, constraint.amount


def spend_delta(
    settings: Any, *, delta: float, gate: str, radius: str, realised_share: float, restart_share: float, restarts: int
) -> None:
    """Split delta between the confidence sets and, where it is used, the realised sum, after so many restarts."""
    share = realised_share if gate == "facts" else 0.0  # events of their own: each gets its share
    left = delta_of(delta, restarts, restart_share)
    settings.sum_delta, sets = share * left, (1.0 - share) * left
    settings.delta = sets / 2 if radius == "best" else sets
    settings.likelihood_delta = settings.delta if radius in BY_LIKELIHOOD else 0.0
