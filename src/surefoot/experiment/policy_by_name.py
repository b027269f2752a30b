"""Policies by name: which are known, and a new one with given settings, or as an experiment begins with it."""

import inspect
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from surefoot.errors import ConfigError, SurefootError
from surefoot.hints import nearest
from surefoot.policies import Guard, Policy
from surefoot.policies.base_policy import BasePolicy
from surefoot.records import Created, History

PolicyName: TypeAlias = Literal["SafeLUCB", "CLUCB", "CLUCB2", "LUCB", "ConservativeUCB", "UCB"]
POLICIES: tuple[str, ...] = get_args(PolicyName)  # those of surefoot; programs may add their own


def is_guard(name: str) -> bool:
    """Whether a policy of that name is a guard, which decides between a baseline and a proposal.

    >>> is_guard("Guard"), is_guard("SafeLUCB")
    (True, False)
    """
    kind = Guard._registry.get(name)
    return kind is not None and issubclass(kind, Guard)


def policy_kind(name: str, known: tuple[str, ...] = POLICIES) -> type[Policy]:
    """The policy class of that name: surefoot's own, or one that an imported module defines.

    >>> policy_kind("CLUBC")
    Traceback (most recent call last):
    surefoot.errors.ConfigError: `policy` must be known, but got 'CLUBC'. Did you mean 'CLUCB'?
    One of your own is known once its module is imported.
    """
    kind = Policy._registry.get(name)
    if kind is None or not issubclass(kind, Policy) or inspect.isabstract(kind):
        raise ConfigError(
            f"`policy` must be known, but got {name!r}. {nearest(name, known)} "
            "One of your own is known once its module is imported."
        )
    return kind


def make_policy(name: str, settings: Mapping[str, Any], *, advice: str = "") -> Policy:
    """A new policy; unknown and missing settings are named, and `advice` says how to give them."""
    made: Policy = _made(policy_kind(name), name, settings, advice)
    return made


def make_any_policy(name: str, settings: Mapping[str, Any], *, advice: str = "") -> Policy | Guard:
    """The same, or a guard."""
    if not is_guard(name):
        linear: Policy = _made(policy_kind(name, (*POLICIES, Guard.__name__)), name, settings, advice)
        return linear
    made: Guard = _made(Guard._registry[name], name, settings, advice)
    return made


def _made(kind: Any, name: str, settings: Mapping[str, Any], advice: str) -> Any:
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


def new_policy(created: Created) -> BasePolicy:
    """The policy as it stands before the first decision: the same bits in every process."""
    if is_guard(created.policy):
        # One id in every process: a policy knows its decisions by it.
        guard = make_any_policy(created.policy, created.settings)
        return BasePolicy.from_state({**guard.state(), "id": created.policy_id})
    kind = policy_kind(created.policy)
    fresh = make_policy(created.policy, kind._completed(created.settings))
    policy = Policy.from_state({**fresh.state(), "id": created.policy_id})
    if created.history is not None:
        _warm_start(policy, created.history)
    return policy


def _warm_start(policy: Policy, history: History) -> None:
    enter = getattr(policy, "warm_start", None)
    if enter is None:
        raise ConfigError(f"`history` needs a policy over linear rewards, but {type(policy).__name__} is not one.")
    enter(np.array(history.features, dtype=np.float64), np.array(history.rewards, dtype=np.float64))
