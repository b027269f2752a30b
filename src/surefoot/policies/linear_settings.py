"""Settings of linear policies: checked once, then the core's."""

import math
from typing import Any

from surefoot.arrays import finite, fraction, nonnegative, positive
from surefoot.core import native
from surefoot.errors import AssumptionError, ConfigError
from surefoot.linear.radius import read_radius

# The largest ratio of a squared feature to the ridge. Claims hold beyond it too, since sets are widened by what
# rounding may have done; but that grows with the ratio, and a set widened too much says nothing (DRIFT_USABLE, 1e-3).
# Measured after 20 to 40 rows that leave half of the directions open: at 1e9 it is 2e-5 of a width in 5 dimensions and
# 7e-4 in 20, and at 1e10 already 7e-3 in 20.
MOST_RESOLVED = 1e9


def linear_settings(
    *,
    dim: int,
    delta: float,
    noise: float,
    ridge: float,
    theta_bound: float,
    feature_bound: float,
    alpha: float | None = None,
    reward_floor: float = 0.0,
    radius: str = "paper",
    misspecification: float = 0.0,
    reward_bounds: tuple[float, float] | None = None,
    exploration: float | None = None,
) -> Any:
    """Checked settings, as the core takes them; without a floor to keep, alpha is None."""
    settings = native.LinearSettings()
    settings.delta = fraction("delta", delta, hint="delta is the probability that the guarantee fails.")
    settings.noise = positive("noise", noise, hint="noise is the sub-Gaussian scale of a reward.")
    settings.ridge = positive("ridge", ridge, hint="ridge is the regulariser lambda; 1.0 is usual.")
    settings.theta_bound = positive("theta_bound", theta_bound, hint="theta_bound bounds ||theta||.")
    settings.feature_bound = positive(
        "feature_bound", feature_bound, hint="feature_bound bounds the length of every feature row."
    )
    if not 1e-100 <= settings.feature_bound <= 1e100:
        raise ConfigError(
            f"`1e-100 <= feature_bound <= 1e100` must hold, but got {feature_bound}. Rescale the features."
        )
    # Some room for rounding: the default ridge may lie exactly on this edge.
    if settings.feature_bound / math.sqrt(settings.ridge) > math.sqrt(MOST_RESOLVED) * (1 + 1e-9):
        raise ConfigError(
            f"`feature_bound**2 <= {MOST_RESOLVED:g} * ridge` must hold, but got {feature_bound=}, {ridge=}. "
            "Beside such features the ridge would be lost in rounding: "
            f"take a ridge of at least {settings.feature_bound**2 / MOST_RESOLVED:.3g}, or rescale the features."
        )
    if alpha is not None:
        hint = "alpha is the share of the baseline's reward you accept losing; 0.05 keeps 95%."
        settings.alpha = fraction("alpha", alpha, hint=hint)
    hint = "reward_floor is a mean reward the baseline never falls below; 0 is always safe."
    settings.reward_floor = nonnegative("reward_floor", reward_floor, hint=hint)
    hint = "misspecification bounds how far a mean reward may lie from <theta, features>; 0 trusts the linear model."
    settings.misfit = nonnegative("misspecification", misspecification, hint=hint)
    is_bounded = reward_bounds is not None
    settings.radius = read_radius(radius, dim=dim, misspecification=misspecification, is_bounded=is_bounded)
    if reward_bounds is not None:
        settings.reward_low, settings.reward_high = reward_bounds
    if exploration is not None:
        settings.exploration = positive("exploration", exploration, hint="exploration is LinUCB's alpha, such as 1.")
    return settings


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
