"""Constraints: what must never be lost. The questions that they ask stand in `core/constraint.hpp`.

cumulative     at every round, all that was earned makes (1 - alpha) of the baseline's.  (paper, eq. 4)
checkpoints    the same, but only at every k-th round; the rest of the block lends its slack in advance.
stagewise      every single action makes (1 - alpha) of the baseline's.  (Moradipari et al. 2020)
reserve        cumulative, with an additive budget granted in advance.
realised_path  cumulative, in rewards that learner rounds actually received.  (after Du et al. 2021)
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from surefoot.arrays import count, finite, positive
from surefoot.errors import ConfigError


class Constraint:
    """What must never be lost: the base of all constraints, which are known by their names.

    `code` and `amount` are what the core reads, `says` is what a person is told. They stand in the order of the core's
    words, which is their code.

    Examples
    --------
    >>> {kind.name for kind in Constraint.__subclasses__()} >= {"cumulative", "reserve"}
    True
    """

    name: ClassVar[str]
    code: ClassVar[int]
    says: ClassVar[str]
    known: ClassVar[dict[str, type["Constraint"]]] = {}

    def __init_subclass__(cls) -> None:
        cls.code = len(Constraint.known)
        Constraint.known[cls.name] = cls

    @property
    def amount(self) -> float:
        """The constraint's own number; 0 if it has none."""
        return 0.0

    def plain(self) -> dict[str, Any]:
        """Plain data from which `read_constraint` makes the same constraint."""
        return {"name": self.name, **{key: getattr(self, key) for key in _own_fields(self)}}


@dataclass(frozen=True)
class Cumulative(Constraint):
    """At every round, all that was earned makes (1 - alpha) of what the baseline would have.  (paper, eq. 4)

    Examples
    --------
    >>> Cumulative().plain()
    {'name': 'cumulative'}
    """

    name: ClassVar[str] = "cumulative"
    says: ClassVar[str] = "The floor holds at every round."


@dataclass(frozen=True)
class Checkpoints(Constraint):
    """Cumulative, but only at rounds `every`, 2 `every`, ...: in between, the floor of the remaining rounds is lent.

    Parameters
    ----------
    every : int
        Rounds between two checkpoints.

    Raises
    ------
    ConfigError
        If `every` is not a positive whole number.

    Examples
    --------
    >>> Checkpoints(every=100).plain()
    {'name': 'checkpoints', 'every': 100}
    """

    every: int
    name: ClassVar[str] = "checkpoints"
    says: ClassVar[str] = "The floor holds at every so many rounds; in between, that of the remaining rounds is lent."

    def __post_init__(self) -> None:
        count("every", self.every, hint="every is the number of rounds between two checkpoints.")

    @property
    def amount(self) -> float:
        """Rounds between two checkpoints."""
        return float(self.every)


@dataclass(frozen=True)
class Stagewise(Constraint):
    """Every single action makes (1 - alpha) of the baseline's reward in its round.  (Moradipari et al. 2020)

    Examples
    --------
    >>> Stagewise().plain()
    {'name': 'stagewise'}
    """

    name: ClassVar[str] = "stagewise"
    says: ClassVar[str] = "Every single action keeps the floor in its own round."


@dataclass(frozen=True)
class Reserve(Constraint):
    """Cumulative, with `granted` more that may be lost over all rounds together.

    Parameters
    ----------
    granted : float
        The additional reward that may be lost in total.

    Raises
    ------
    ConfigError
        If `granted` is not positive.

    Examples
    --------
    >>> Reserve(granted=5.0).amount
    5.0
    """

    granted: float
    name: ClassVar[str] = "reserve"
    says: ClassVar[str] = "So much may be lost over all rounds together, in addition to alpha."

    def __post_init__(self) -> None:
        positive("granted", self.granted, hint="granted is the reward that may be lost on top, in total.")

    @property
    def amount(self) -> float:
        """What may be lost in addition."""
        return float(self.granted)


@dataclass(frozen=True)
class RealisedPath(Constraint):
    """Cumulative, where learner rounds count with the rewards they received.  (after Du et al. 2021)

    Parameters
    ----------
    lowest_reward : float
        The least a single reward can be: what a pending or proposed round may bring.

    Raises
    ------
    InputError
        If `lowest_reward` is not a finite number.

    Examples
    --------
    >>> RealisedPath(lowest_reward=0.0).plain()
    {'name': 'realised_path', 'lowest_reward': 0.0}
    """

    lowest_reward: float
    name: ClassVar[str] = "realised_path"
    says: ClassVar[str] = "Learner rounds count with the rewards they received, none of which is less than this."

    def __post_init__(self) -> None:
        finite("lowest_reward", self.lowest_reward, hint="lowest_reward is the least a single reward can be.")

    @property
    def amount(self) -> float:
        """The least a single reward can be."""
        return float(self.lowest_reward)


def _own_fields(constraint: Any) -> list[str]:
    return [field.name for field in fields(constraint)]


def read_constraint(constraint: Constraint | Mapping[str, Any] | str) -> Constraint:
    """A constraint from itself, its name, or its plain data.

    Parameters
    ----------
    constraint : Constraint, mapping or str
        The constraint, its `plain` data, or the name of one without settings.

    Returns
    -------
    Constraint
        The constraint.

    Raises
    ------
    ConfigError
        If the name is unknown, or its settings are missing or wrong.

    Examples
    --------
    >>> read_constraint({"name": "checkpoints", "every": 100})
    Checkpoints(every=100)
    """
    if isinstance(constraint, Constraint):
        return constraint
    data = {"name": constraint} if isinstance(constraint, str) else dict(constraint)
    name = data.pop("name", None)
    if name not in Constraint.known:
        raise ConfigError(f"`constraint` must be one of {', '.join(Constraint.known)}, but got {name!r}.")
    try:
        return Constraint.known[name](**data)
    except TypeError as error:
        raise ConfigError(f"`constraint` {name!r} was given settings it cannot take: {error}.") from None
