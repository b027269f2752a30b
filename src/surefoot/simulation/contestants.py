"""Contestants: policies of one's own in simulations and replays, beside those that a `Spec` names."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from surefoot.arrays import fraction
from surefoot.errors import ConfigError, PolicyError
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.problem import Problem

if TYPE_CHECKING:
    from surefoot.simulation.worlds import World


@runtime_checkable
class Playable(Protocol):
    """What engine and replay ask of a policy; every `surefoot.Policy` has it.

    Examples
    --------
    >>> import surefoot
    >>> isinstance(surefoot.UCB(arms=2), Playable)
    True
    """

    def decide(self, features: Any, *, baseline: int, baseline_reward: float | None) -> Any:
        """Decide one round.

        Parameters
        ----------
        features : ndarray of shape (actions, dim)
            One row per action, read-only.
        baseline : int
            The row that the baseline plays.
        baseline_reward : float or None
            Its mean reward, for a policy that is told.

        Returns
        -------
        Decision
            Or anything with an `action`, a row of the features, and a `source`: "learner" or "baseline".
        """
        ...

    def observe(self, decision: Any, reward: float) -> None:
        """Take the reward of a decision, at any time after it.

        Parameters
        ----------
        decision : Decision
            What `decide` returned.
        reward : float
            What its action brought.
        """
        ...


Factory: TypeAlias = Callable[[Problem], Playable]


def needs_baseline_reward(policy: Playable) -> bool:
    """Whether a policy cannot decide without the baseline's mean reward, as CLUCB; it says so by an attribute."""
    return bool(getattr(policy, "needs_baseline_reward", False))


@dataclass(frozen=True, slots=True, eq=False)
class Contestant:
    """A policy of your own, for `simulate` and `replay`.

    Every run plays a policy of its own: a factory is called for each, a policy object is copied.

    Parameters
    ----------
    make : Policy or callable
        A new policy, or a function from a `Problem` to one. What it makes needs `decide` and `observe` as a
        `surefoot.Policy` has them, and must survive `copy.deepcopy` where a replay rejects rounds.
    name : str, optional
        Name in tables and legends; by default that of the class or function.
    alpha : float, optional
        Share of the baseline's reward by which its violations are counted; by default a policy object's own.
    knows_baseline : bool
        Whether it is told the baseline's mean reward, as `Problem.baseline_reward` and in every `decide`; a policy with
        `needs_baseline_reward` is told in `decide` anyhow.

    Raises
    ------
    ConfigError
        If it is neither a policy nor a function, a policy that is not new, or a function without a name.

    Examples
    --------
    >>> import surefoot
    >>> policy = surefoot.UCB(arms=3)
    >>> Contestant(policy, name="plain arms").label
    'plain arms'
    """

    make: Any
    name: str | None = None
    alpha: float | None = None
    knows_baseline: bool = False

    def __post_init__(self) -> None:
        if not (self.is_object or callable(self.make)):
            raise ConfigError(
                f"A contestant must be a policy, a function that makes one, or a Spec, but got {self.make!r:.80}. "
                'A policy of surefoot goes by its name as Spec("CLUCB", alpha=0.1).'
            )
        if self.is_object:
            _check_new(self.make)
            own = getattr(self.make, "settings", None)
            if self.alpha is None and isinstance(own, dict):
                object.__setattr__(self, "alpha", own.get("alpha"))
        if self.alpha is not None:
            fraction("alpha", self.alpha, hint="alpha is the share of the baseline's reward you accept losing.")
        if self.name is None:
            made = type(self.make) if self.is_object else self.make
            object.__setattr__(self, "name", getattr(made, "__name__", type(made).__name__))
        if not self.name or self.name == "<lambda>":
            raise ConfigError('A contestant needs a name that tables can show: Contestant(..., name="mine").')

    @property
    def is_object(self) -> bool:
        """Whether it is a policy rather than a function that makes one."""
        return isinstance(self.make, Playable) and not isinstance(self.make, type)

    @property
    def policy(self) -> str:
        """Its name."""
        return self.name or ""

    @property
    def label(self) -> str:
        """What a legend calls it."""
        return self.policy if self.alpha is None else f"{self.policy}, α = {self.alpha:g}"

    def check(self, world: "World") -> None:
        """Any world will do: what a policy of your own cannot play, it refuses itself.

        Parameters
        ----------
        world : World
            The world.
        """

    def new_policy(self, problem: Problem) -> Playable:
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
        PolicyError
            If the factory fails, or makes something else than a new policy.
        """
        try:
            told = problem if self.knows_baseline else problem.without_baseline()
            policy = copy.deepcopy(self.make) if self.is_object else self.make(told)
            if not isinstance(policy, Playable):
                raise ConfigError(f"It must have `decide` and `observe`, but it is {policy!r:.80}.")
            _check_new(policy)
        except Exception as error:
            raise PolicyError(f"No policy could be made for {self.policy!r}: {error!s:.300}") from error
        return policy

    def tells(self, policy: Playable) -> bool:
        """Whether `decide` is given the baseline's mean reward: where it is to be, and where the policy needs it.

        Parameters
        ----------
        policy : Policy
            What `new_policy` returned.

        Returns
        -------
        bool
            Whether it is told.
        """
        return self.knows_baseline or needs_baseline_reward(policy)


Entrant: TypeAlias = Spec | Contestant
Entry: TypeAlias = Spec | Contestant | Playable | Factory


def entrants(given: Sequence[Entry]) -> list[Entrant]:
    """Specs as they are, and all else as contestants."""
    return [entry if isinstance(entry, (Spec, Contestant)) else Contestant(entry) for entry in given]


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


def _check_new(policy: Any) -> None:
    if getattr(policy, "rounds", 0):
        raise ConfigError(f"A policy must be new, so that runs are alike, but this one has decided: {policy!r:.80}.")
