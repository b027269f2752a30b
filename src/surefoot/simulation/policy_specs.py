"""What a simulation or a replay plays: a policy by name, an object of your own, or a function that makes one."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surefoot.errors import ConfigError, PolicyError
from surefoot.hints import nearest
from surefoot.policies import CLUCB, CLUCB2, LUCB, UCB, ConservativeUCB, SafeLUCB
from surefoot.policies.delta_split import REALISED_SHARE
from surefoot.policies.linear_settings import read_number, suitable_ridge
from surefoot.safety.constraints import read_constraint

if TYPE_CHECKING:
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
OWN = ("policy", "alpha", "knows_baseline", "name")  # what a policy of your own takes


@dataclass(frozen=True, slots=True)
class Problem:
    """What a policy may know before its first round, whether rounds are simulated or logged.

    Parameters
    ----------
    dim : int
        Number of features of an action.
    actions : int
        Number of actions of the first round.
    noise : float
        Sub-Gaussian scale of a reward.
    theta_bound, feature_bound : float
        Bounds on the length of theta and of every feature row.
    baseline_reward : float, optional
        Mean reward of the baseline in the first round; None for a policy that does not know it.
    misspecification : float
        Declared bound on how far a mean reward may lie from <theta, features>.
    seed : int
        For a policy that draws: a different one in every run, and the same whenever the run is repeated.

    Examples
    --------
    >>> from surefoot.simulation import PaperWorld, simulate
    >>> def greedy(problem):
    ...     import surefoot
    ...
    ...     known = {"noise": problem.noise, "theta_bound": problem.theta_bound, "feature_bound": problem.feature_bound}
    ...     return surefoot.LUCB(dim=problem.dim, delta=0.9, ridge=0.3, **known)
    >>> (outcome,) = simulate(PaperWorld(actions=20), [greedy], runs=1, horizon=20)
    >>> outcome.spec.label
    'greedy'
    """

    dim: int
    actions: int
    noise: float
    theta_bound: float
    feature_bound: float
    baseline_reward: float | None = None
    misspecification: float = 0.0
    seed: int = 0

    def settings(self, *, ridge: float, delta: float) -> dict[str, Any]:
        """Settings of a linear policy for this problem.

        Parameters
        ----------
        ridge : float
            Regulariser lambda.
        delta : float
            Probability that the guarantee may fail.

        Returns
        -------
        dict
            delta, noise, ridge, theta_bound and feature_bound, as policies take them.
        """
        return {
            "delta": delta,
            "noise": self.noise,
            "ridge": ridge,
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
        }


@dataclass(frozen=True, slots=True)
class Spec:
    """One policy of a simulation or a replay, and its settings.

    Every run plays a new policy: one by name is built, a function is called, an object is copied.

    Parameters
    ----------
    policy : str, Policy or callable
        "SafeLUCB", "CLUCB", "CLUCB2", "CLUCB2-exact", "LUCB", "ConservativeUCB" or "UCB". "CLUCB2" works over the
        newest ellipsoid (`nesting="latest"`), "CLUCB2-exact" over all of them. Or a policy of your own: a new object
        with `decide` and `observe` as a `surefoot.Policy` has them, or a function from a `Problem` to one; it must
        survive `copy.deepcopy` where a replay rejects rounds. Of the settings below such a policy takes `alpha`,
        `knows_baseline` and `name`.
    alpha : float, optional
        Share of the baseline's reward you accept losing; required by policies with a floor, and refused by others. For
        a policy of your own, the share by which violations are counted; by default the object's own.
    delta : float
        Probability that the guarantee may fail.
    ridge : float, optional
        Regulariser; by default 1 for the paper's policies and the suitable one for SafeLUCB.
    floor_share : float
        The `reward_floor` of CLUCB2 and SafeLUCB, as a share of the baseline's reward.
    knows_baseline : bool
        Whether ConservativeUCB, SafeLUCB or your own policy knows the baseline's mean reward: as
        `Problem.baseline_reward`, and in every `decide`. A policy with `needs_baseline_reward` gets it there anyway.
    radius : str, optional
        Radius of the confidence set; by default the policy's own.
    reward_bounds : (low, high), optional
        Bounds of single rewards, for ConservativeUCB and SafeLUCB.
    reward_range, gate, constraint, realised_share, optimism
        Settings of SafeLUCB.
    exploration : float, optional
        LUCB's radius as a constant, which LinUCB calls alpha (Li et al. 2010), in place of one that holds at all times.
        No regret bound is left, but tables of a few thousand rows are learned before they end.
    name : str, optional
        Name in tables and legends; by default that of the policy, class or function.

    Raises
    ------
    ConfigError
        If the policy is unknown, is not new or has no name, or a setting is invalid or belongs to another policy.

    Examples
    --------
    >>> Spec("CLUCB", alpha=0.1).label
    'CLUCB, α = 0.1'
    >>> import surefoot
    >>> Spec(surefoot.UCB(arms=3), name="plain arms").label
    'plain arms'
    """

    policy: Any
    alpha: float | None = None
    delta: float = 0.001
    ridge: float | None = None
    floor_share: float = 0.0
    knows_baseline: bool = False
    radius: str | None = None
    reward_bounds: tuple[float, float] | None = None
    reward_range: tuple[float, float] | None = None
    gate: Literal["facts", "joint", "ledger"] = "facts"
    constraint: str | Mapping[str, Any] = "cumulative"
    realised_share: float = REALISED_SHARE
    optimism: Literal["set", "facts"] = "set"
    name: str = ""
    exploration: float | None = None

    def __post_init__(self) -> None:
        if self.is_own:
            self._check_own()
        else:
            self._check_named()
        for field in fields(self):
            # What is not listed belongs to every policy.
            takers = TAKERS.get(field.name, (self.policy,))
            refuses = field.name not in OWN if self.is_own else self.policy not in takers
            if refuses and getattr(self, field.name) != field.default:
                owners = ", ".join(takers) if field.name in TAKERS else "surefoot's policies"
                raise ConfigError(f"`{field.name}` must not be given for {self.name}: it is a setting of {owners}.")

    def _check_named(self) -> None:
        if self.policy not in NAMES:
            raise ConfigError(
                f"`policy` must be one that can be simulated, but got {self.policy!r}. {nearest(self.policy, NAMES)}"
            )
        object.__setattr__(self, "name", self.name or self.policy)
        for name in ("delta", "ridge", "exploration", "alpha"):
            if getattr(self, name) is not None:
                read_number(name, getattr(self, name))
        if self.exploration is not None and self.radius is not None:
            raise ConfigError("`radius` must not be given with `exploration`, which is one. Leave out either.")
        if self.is_conservative:
            if self.alpha is None:
                raise ConfigError(f"`alpha` must be given for {self.policy}: the share you accept losing.")
        elif self.alpha is not None:
            raise ConfigError(f"`alpha` must not be given for {self.policy}, which keeps no floor.")
        if not 0 <= self.floor_share <= 1:
            raise ConfigError(f"`0 <= floor_share <= 1` must hold, but got {self.floor_share}.")

    def _check_own(self) -> None:
        if self.is_object:
            _check_new(self.policy)
            settings = getattr(self.policy, "settings", None)
            if self.alpha is None and isinstance(settings, dict):
                object.__setattr__(self, "alpha", settings.get("alpha"))
        elif not callable(self.policy):
            raise ConfigError(
                f"A policy must be a name, an object or a function that makes one, but got {self.policy!r:.80}. "
                'A policy of surefoot goes by its name as Spec("CLUCB", alpha=0.1).'
            )
        if self.alpha is not None:
            read_number("alpha", self.alpha)
        source = type(self.policy) if self.is_object else self.policy
        object.__setattr__(self, "name", self.name or getattr(source, "__name__", type(source).__name__))
        if self.name == "<lambda>":
            raise ConfigError('A policy of your own needs a name that tables can show: Spec(..., name="mine").')

    @property
    def is_own(self) -> bool:
        """Whether it is a policy of your own rather than one of surefoot's by name."""
        return not isinstance(self.policy, str)

    @property
    def is_object(self) -> bool:
        """Whether it is a policy object, which every run copies."""
        return _is_playable(self.policy) and not isinstance(self.policy, type)

    @property
    def is_compiled(self) -> bool:
        """Whether the core plays it; otherwise the policy object does."""
        return not self.is_own and self.policy != EXACT

    @property
    def is_linear(self) -> bool:
        """Whether it is one of surefoot's that plays over features rather than plain arms."""
        return self.policy in LINEAR

    @property
    def is_conservative(self) -> bool:
        """Whether it is one of surefoot's that keeps a floor."""
        return not self.is_own and self.policy not in ("LUCB", "UCB")

    @property
    def label(self) -> str:
        """Its name and alpha, for a legend."""
        return self.name if self.alpha is None else f"{self.name}, α = {self.alpha:g}"

    def check(self, world: "World") -> None:
        """Check that this policy can play in a world; one of your own refuses by itself.

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

    def settings_in(self, problem: Problem) -> dict[str, Any]:
        """The settings of a linear policy by name in a problem, the ridge and the radius included.

        Parameters
        ----------
        problem : Problem
            What is known of the world or the log.

        Returns
        -------
        dict
            Settings, as linear policies take them.
        """
        settings = problem.settings(ridge=self.ridge or 1.0, delta=self.delta)
        if self.ridge is None and self.policy == "SafeLUCB":
            settings["ridge"] = suitable_ridge(problem.dim, problem.noise, problem.theta_bound, problem.feature_bound)
        settings |= {} if self.exploration is None else {"exploration": self.exploration}
        settings |= {} if self.radius is None else {"radius": self.radius}
        return settings

    def new_policy(self, problem: Problem) -> Any:
        """A policy for one run.

        Parameters
        ----------
        problem : Problem
            What it may know.

        Returns
        -------
        Policy
            A new one.

        Raises
        ------
        ConfigError
            If a setting does not fit the problem.
        PolicyError
            If a function of your own fails, or makes something else than a new policy.
        """
        return self._new_own(problem) if self.is_own else self._new_named(problem)

    def _new_named(self, problem: Problem) -> Any:
        mean: Any = problem.baseline_reward or 0.0
        if self.policy == "UCB":
            return UCB(arms=problem.actions, noise=problem.noise)
        if self.policy == "ConservativeUCB":
            assert self.alpha is not None
            return ConservativeUCB(
                arms=problem.actions,
                alpha=self.alpha,
                delta=self.delta,
                noise=problem.noise,
                reward_bounds=self.reward_bounds,
                baseline_reward=mean if self.knows_baseline else None,
            )
        settings = {"dim": problem.dim, **self.settings_in(problem)}
        if self.policy == "LUCB":
            return LUCB(**settings)
        settings["alpha"] = self.alpha
        if self.policy == "CLUCB":
            return CLUCB(**settings)
        settings["reward_floor"] = self.floor_share * mean
        if self.policy != "SafeLUCB":
            return CLUCB2(nesting="exact" if self.policy == EXACT else "latest", **settings)
        return SafeLUCB(
            reward_bounds=self.reward_bounds,
            reward_range=self.reward_range,
            gate=self.gate,
            constraint=read_constraint(self.constraint),
            realised_share=self.realised_share,
            optimism=self.optimism,
            misspecification=problem.misspecification,
            **settings,
        )

    def _new_own(self, problem: Problem) -> Any:
        try:
            known = problem if self.knows_baseline else replace(problem, baseline_reward=None)
            policy = copy.deepcopy(self.policy) if self.is_object else self.policy(known)
            if not _is_playable(policy):
                raise ConfigError(f"It must have `decide` and `observe`, but it is {policy!r:.80}.")
            _check_new(policy)
        except Exception as error:
            raise PolicyError(f"No policy could be made for {self.name!r}: {error!s:.300}") from error
        return policy

    def tells(self, policy: Any) -> bool:
        """Whether `decide` gets the baseline's mean reward.

        Parameters
        ----------
        policy : Policy
            What `new_policy` returned.

        Returns
        -------
        bool
            True where the policy is to know it, or cannot decide without.
        """
        # ConservativeUCB was given it when it was built.
        knows = self.knows_baseline and self.policy != "ConservativeUCB"
        return knows or bool(getattr(policy, "needs_baseline_reward", False))


def as_specs(policies: Sequence[Any]) -> list[Spec]:
    """Specs as they are; policies of your own, objects or functions, as specs of them."""
    return [policy if isinstance(policy, Spec) else Spec(policy) for policy in policies]


def played_row(decision: Any, actions: int, baseline: int) -> tuple[int, bool]:
    """The row that a decision plays and whether it is the learner's; ConfigError if there is no such row."""
    row, source = getattr(decision, "action", None), getattr(decision, "source", "learner")
    if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not 0 <= row < actions:
        raise ConfigError(f"`action` must be a row index from 0 to {actions - 1}, but it decided for {row!r:.80}.")
    if source not in ("learner", "baseline") or (source == "baseline" and row != baseline):
        raise ConfigError(
            f'`source` must be "learner", or "baseline" where the baseline\'s row {baseline} is played, but it decided '
            f"for row {row} by {source!r:.80}."
        )
    return int(row), source == "learner"


def seed_of_run(seed: int, run: int) -> int:
    """A policy's own seed in one run, apart from the streams of the world."""
    return int(np.random.SeedSequence([seed, run]).generate_state(1, np.uint64)[0])


def _is_playable(policy: Any) -> bool:
    return all(callable(getattr(policy, name, None)) for name in ("decide", "observe"))


def _check_new(policy: Any) -> None:
    if getattr(policy, "rounds", 0):
        raise ConfigError(f"A policy must be new, so that runs are alike, but this one has decided: {policy!r:.80}.")
