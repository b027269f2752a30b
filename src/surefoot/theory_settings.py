"""What the paper's bounds are told, checked: the declared model, and the numbers of each theorem."""

import math
from typing import NamedTuple

from surefoot import arrays
from surefoot.errors import ConfigError
from surefoot.linear.radius import paper_radius

DIM_HINT = "It is the length of one feature row."
RIDGE_HINT = "It is the weight of the ridge penalty; 1 is a common choice."
FEATURE_HINT = "It bounds the Euclidean norm of every feature row."
ROUNDS_HINT = "It is the horizon, in decisions."
GAP_HINT = "The baseline is never better than the best action; 0 is always a gap_floor."
CONSTANT_HINT = "The lemma is about positive constants."


class DeclaredModel(NamedTuple):
    """The settings that every bound shares (Assumptions 1 and 2), checked by `declared_model`."""

    dim: int
    delta: float
    noise: float
    ridge: float
    theta_bound: float
    feature_bound: float

    @property
    def reach(self) -> float:
        """W = D / sqrt(lambda), the largest w there is."""
        return self.feature_bound / math.sqrt(self.ridge)

    def radius(self, observations: int) -> float:
        """Radius beta, unchecked."""
        return paper_radius(observations, *self)

    def scale(self, *, cap: float, least: int) -> float:
        """Smallest G >= B sqrt(lambda) + sigma with cap <= G sqrt(d ln(least D^2 / (lambda delta)))."""
        log = math.log(least) + 2 * math.log(self.reach) - math.log(self.delta)
        return max(self.theta_bound * math.sqrt(self.ridge) + self.noise, cap / math.sqrt(self.dim * log))

    def require_small_ridge(self) -> None:
        """Theorems 2 and 4 absorb the 1 in 1 + M D^2 / lambda; Theorem 4 does so without saying."""
        if math.sqrt(self.ridge) > self.feature_bound:
            raise ConfigError(
                f"`ridge <= feature_bound**2` must hold, but got ridge={self.ridge}, "
                f"feature_bound={self.feature_bound}. "
                "A larger feature_bound is still a bound: pass feature_bound=math.sqrt(ridge) here."
            )


def declared_model(
    dim: int, delta: float, noise: float, ridge: float, theta_bound: float, feature_bound: float
) -> DeclaredModel:
    """The settings that every bound shares, checked."""
    dim = arrays.count("dim", dim, hint=DIM_HINT)
    if dim == 1:
        raise ConfigError(
            "`dim >= 2` must hold for the paper's radius, but got dim=1. With d = 1 it lies below the theorem it comes "
            "from (Abbasi-Yadkori et al. 2011, Theorem 2): ln(1/delta) stands where 2 ln(1/delta) is proved, so its "
            "sets may fail more often than delta. Append a constant 0 to the features, or use another radius."
        )
    return DeclaredModel(
        dim=dim,
        delta=arrays.fraction("delta", delta, hint="It is the probability that the guarantee fails; 0.001 is common."),
        noise=arrays.nonnegative("noise", noise, hint="It is the sub-Gaussian scale of the reward noise."),
        ridge=arrays.positive("ridge", ridge, hint=RIDGE_HINT),
        theta_bound=arrays.positive("theta_bound", theta_bound, hint="It bounds the Euclidean norm of theta."),
        feature_bound=arrays.positive("feature_bound", feature_bound, hint=FEATURE_HINT),
    )


def tolerance(alpha: float, reward_floor: float, gap_floor: float = 0.0) -> float:
    """Least loss that one baseline round earns the right to: alpha r_l."""
    alpha = arrays.fraction("alpha", alpha, hint="It is the share of the baseline's reward you accept losing.")
    hint = "A baseline that may earn nothing never pays for exploring, so no number of its rounds is enough."
    floor = arrays.positive("reward_floor", reward_floor, hint=hint)
    gap = arrays.nonnegative("gap_floor", gap_floor, hint=GAP_HINT)
    if floor + gap > 1 + 1e-9:
        raise ConfigError(
            f"`reward_floor + gap_floor <= 1` must hold, but got {reward_floor=}, {gap_floor=}. "
            "The theorems are for mean rewards in [0, 1]: divide rewards and noise by the largest mean reward."
        )
    return alpha * floor


def checked_ceiling(gap_ceiling: float, gap_floor: float = 0.0) -> float:
    """Delta_h, checked."""
    ceiling = arrays.nonnegative("gap_ceiling", gap_ceiling, hint="It bounds the baseline's gap to the best action.")
    if not arrays.nonnegative("gap_floor", gap_floor, hint=GAP_HINT) <= ceiling <= 1:
        raise ConfigError(
            f"`gap_floor <= gap_ceiling <= 1` must hold, but got {gap_floor=}, {gap_ceiling=}. "
            "Mean rewards lie in [0, 1], so 1 is always a gap_ceiling and 0 always a gap_floor."
        )
    return ceiling
