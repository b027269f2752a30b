"""Specs: which policy to simulate, with which settings, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from surefoot.arrays import fraction, positive
from surefoot.errors import ConfigError
from surefoot.hints import nearest
from surefoot.policies.safe_settings import REALISED_SHARE, suitable_ridge
from surefoot.safety.constraints import read_constraint
from surefoot.simulation.problem import Problem
from surefoot.simulation.worlds import World

NAMES = ("LUCB", "CLUCB", "CLUCB2", "UCB", "ConservativeUCB", "SafeLUCB", "CLUCB2-exact")
EXACT = "CLUCB2-exact"  # not in the core: the policy object plays
LINEAR = ("LUCB", "CLUCB", "CLUCB2", "CLUCB2-exact", "SafeLUCB")
# Settings that not every policy has; given to another policy, they are refused rather than ignored.
TAKERS: dict[str, tuple[str, ...]] = {
    "ridge": LINEAR,
    "radius": LINEAR,
    "exploration": ("LUCB",),
    "floor_share": ("CLUCB2", "CLUCB2-exact", "SafeLUCB"),
    "knows_baseline": ("ConservativeUCB", "SafeLUCB"),
    "reward_bounds": ("ConservativeUCB", "SafeLUCB"),
    **dict.fromkeys(("reward_range", "gate", "constraint", "realised_share", "optimism"), ("SafeLUCB",)),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """One policy of a simulation or a replay, by name, with its settings.

    Parameters
    ----------
    policy : str
        "SafeLUCB", "CLUCB", "CLUCB2", "CLUCB2-exact", "LUCB", "ConservativeUCB" or "UCB". "CLUCB2" works over the
        newest ellipsoid (`nesting="latest"`), "CLUCB2-exact" over all of them.
    alpha : float, optional
        Share of the baseline's reward you accept losing; required by policies with a floor, and refused by others.
    delta : float
        Probability that the guarantee may fail.
    ridge : float, optional
        Regulariser; by default 1 for the paper's policies and the suitable one for SafeLUCB.
    floor_share : float
        CLUCB2 and SafeLUCB are told this share of the baseline's reward as `reward_floor`.
    knows_baseline : bool
        Whether ConservativeUCB and SafeLUCB are told the baseline's mean reward.
    radius : str, optional
        Radius of the confidence set; by default the policy's own.
    reward_bounds : (low, high), optional
        Bounds of single rewards that ConservativeUCB and SafeLUCB are told.
    reward_range, gate, constraint, realised_share, optimism
        Settings of SafeLUCB.
    exploration : float, optional
        LUCB's radius as a constant, which LinUCB calls alpha (Li et al. 2010), in place of one that holds at all times.
        No regret bound is left, but tables of a few thousand rows are learned before they end.
    name : str, optional
        Name in tables and legends.

    Raises
    ------
    ConfigError
        If the policy is unknown, or a setting is invalid or belongs to another policy.

    Examples
    --------
    >>> Spec("CLUCB", alpha=0.1).label
    'CLUCB, α = 0.1'
    """

    policy: str
    alpha: float | None = None
    delta: float = 0.001
    ridge: float | None = None
    floor_share: float = 0.0
    knows_baseline: bool = False
    radius: str | None = None
    reward_bounds: tuple[float, float] | None = None
    reward_range: tuple[float, float] | None = None
    gate: str = "facts"
    constraint: str | Mapping[str, Any] = "cumulative"
    realised_share: float = REALISED_SHARE
    optimism: str = "set"
    name: str | None = None
    exploration: float | None = None

    def __post_init__(self) -> None:
        if self.policy not in NAMES:
            raise ConfigError(
                f"`policy` must be one that can be simulated, but got {self.policy!r}. {nearest(self.policy, NAMES)}"
            )
        fraction("delta", self.delta, hint="delta is the probability that the guarantee fails.")
        if self.ridge is not None:
            positive("ridge", self.ridge, hint="ridge is the regulariser lambda.")
        if self.exploration is not None:
            positive("exploration", self.exploration, hint="exploration is LinUCB's alpha, such as 1.")
            if self.radius is not None:
                raise ConfigError("`radius` must not be given with `exploration`, which is one. Leave out either.")
        if self.is_conservative:
            if self.alpha is None:
                raise ConfigError(f"`alpha` must be given for {self.policy}: the share you accept losing.")
            fraction("alpha", self.alpha, hint="alpha is the share of the baseline's reward you accept losing.")
        elif self.alpha is not None:
            raise ConfigError(f"`alpha` must not be given for {self.policy}, which keeps no floor.")
        for field in fields(self):
            # What is not listed belongs to every policy.
            takers = TAKERS.get(field.name, (self.policy,))
            if self.policy not in takers and getattr(self, field.name) != field.default:
                raise ConfigError(
                    f"`{field.name}` must not be given for {self.policy}: it is a setting of {', '.join(takers)}."
                )
        if not 0 <= self.floor_share <= 1:
            raise ConfigError(f"`0 <= floor_share <= 1` must hold, but got {self.floor_share}.")

    def settings_in(self, problem: Problem) -> dict[str, float]:
        """What the policy is told of a problem, the ridge included.

        Parameters
        ----------
        problem : Problem
            What is known of the world or the log.

        Returns
        -------
        dict
            Settings, as linear policies take them.
        """
        told = problem.settings(ridge=self.ridge or 1.0, delta=self.delta)
        if self.ridge is None and self.policy == "SafeLUCB":
            told["ridge"] = suitable_ridge(problem.dim, told["noise"], told["theta_bound"], told["feature_bound"])
        if self.exploration is not None:
            told["exploration"] = self.exploration
        return told

    def safe_settings(self) -> dict[str, Any]:
        """The settings that only SafeLUCB takes."""
        return {
            "reward_bounds": self.reward_bounds,
            "reward_range": self.reward_range,
            "gate": self.gate,
            "constraint": read_constraint(self.constraint),
            "realised_share": self.realised_share,
            "optimism": self.optimism,
        }

    @property
    def is_compiled(self) -> bool:
        """Whether the core plays it; otherwise the policy object does."""
        return self.policy != EXACT

    @property
    def is_linear(self) -> bool:
        """Whether it plays over features rather than plain arms."""
        return self.policy in LINEAR

    @property
    def is_conservative(self) -> bool:
        """Whether it keeps a floor."""
        return self.policy not in ("LUCB", "UCB")

    @property
    def label(self) -> str:
        """What a legend calls it."""
        name = self.name or self.policy
        return name if self.alpha is None else f"{name}, α = {self.alpha:g}"

    def check(self, world: World) -> None:
        """Check that this policy can play in a world.

        Parameters
        ----------
        world : World
            The world.

        Raises
        ------
        ConfigError
            If plain arms or a fixed floor meet a world whose actions or baseline change.
        """
        if self.policy in ("UCB", "ConservativeUCB") and not world.fixed:
            raise ConfigError(f"{self.policy} plays plain arms and needs a world whose actions stay the same.")
        if self.policy == "ConservativeUCB" and world.baseline.policy is not None:
            raise ConfigError("ConservativeUCB needs a baseline that is the same arm in every round.")
        if self.floor_share > 0 and not world.fixed:
            raise ConfigError("`floor_share` needs a world in which the baseline's reward stays the same.")
