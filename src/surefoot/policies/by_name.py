"""Policies by name: which are known, and a new one with these settings, or as an experiment begins with it."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from surefoot import policies
from surefoot.errors import ConfigError, SurefootError
from surefoot.hints import nearest
from surefoot.policies.policy import Policy

# Those of surefoot; programs may add their own.
POLICIES: tuple[str, ...] = tuple(name for name in policies.__all__ if name in Policy._registry)
if TYPE_CHECKING:
    PolicyName: TypeAlias = str
else:
    PolicyName = Literal[POLICIES]


def policy_class(name: str) -> type[Any]:
    """The policy class of that name: surefoot's own, or one that an imported module defines.

    >>> policy_class("CLUBC")
    Traceback (most recent call last):
    surefoot.errors.ConfigError: `policy` must be known, but got 'CLUBC'. Did you mean 'CLUCB'?
    One of your own is known once its module is imported.
    """
    kind = Policy._registry.get(name)
    if kind is None or inspect.isabstract(kind):
        raise ConfigError(
            f"`policy` must be known, but got {name!r}. {nearest(name, POLICIES)} "
            "One of your own is known once its module is imported."
        )
    return kind


def make_policy(name: str, settings: Mapping[str, Any], *, advice: str = "") -> Any:
    """A new policy; unknown and missing settings are named, and `advice` says how to give them."""
    kind = policy_class(name)
    try:
        return kind(**settings)
    except SurefootError:  # which may be a ValueError, too, and has the better words
        raise
    except OverflowError:
        raise ConfigError(f"`settings` must be numbers that {name} can compute with, but one is too large.") from None
    except (TypeError, ValueError) as error:
        # Python's sentence without the name of the constructor in front.
        text = str(error).split(")", 1)[-1].strip() or str(error)
        raise ConfigError(f"`settings` must be those of {name}: {text}. {advice}".rstrip()) from None


def first_policy(name: str, settings: Mapping[str, Any], *, policy_id: str, history: Any = None) -> Any:
    """A policy as an experiment begins with it: the same bits in every process, by one id, with what it learned before.

    `history` has `features` and `rewards` of the baseline.
    """
    policy = Policy.from_state({**make_policy(name, settings).state(), "id": policy_id})
    if history is None:
        return policy
    warm_start: Any = getattr(policy, "warm_start", None)
    if warm_start is None:
        raise ConfigError(f"`history` needs a policy over linear rewards, but {name} is not one.")
    warm_start(np.array(history.features, dtype=np.float64), np.array(history.rewards, dtype=np.float64))
    return policy
