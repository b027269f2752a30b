"""A policy as plain data, and back: what `Policy.state` writes and `Policy.from_state` reads."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from surefoot.arrays import Matrix
from surefoot.errors import StateError
from surefoot.safety.alarm import Alarm

if TYPE_CHECKING:
    from surefoot.policies.base_policy import BasePolicy

P = TypeVar("P", bound="BasePolicy")
STATE_FORMAT = 1


def saved(policy: "BasePolicy") -> dict[str, Any]:
    """Everything a policy knows, as plain arrays, numbers and strings."""
    return {
        "format": STATE_FORMAT,
        "policy": type(policy).__name__,
        "id": policy.id,
        "settings": policy.settings,
        "rounds": policy.rounds,
        "restarts": policy.restarts,
        "alarm": {} if policy.alarm is None else policy.alarm.plain(),
        **policy.settlement.state(),
        **policy._arrays(),
    }


def read_kind(state: Any) -> str:
    """The class of the policy that was saved, if this version can read the state."""
    if not isinstance(state, Mapping) or state.get("format") != STATE_FORMAT:
        found = state.get("format") if isinstance(state, Mapping) else state
        raise StateError(
            f"`format` must be {STATE_FORMAT}, but got {found!r}. "
            "This state is not surefoot's, or was written by a version that this one cannot read."
        )
    return str(state.get("policy"))


def restored(kind: type[P], state: Mapping[str, Any]) -> P:
    """A policy of that class as it was saved."""
    try:
        policy = kind(**kind._completed(state["settings"]))
        policy._id = str(state["id"])
        policy._rounds = int(state["rounds"])
        policy._restarts = int(state.get("restarts", 0))
        policy._alarm = Alarm(**state["alarm"]) if state.get("alarm") else None
        policy._restore(state)
        # After `_restore`: whether a round teaches may depend on what the policy remembers.
        teaches = {is_learner: policy._teaches(is_learner) for is_learner in (True, False)}
        policy._settlement.restore(state, policy._feature_size(), teaches)
    except (KeyError, TypeError, IndexError, ValueError, OverflowError) as error:
        raise StateError(f"This state is incomplete or damaged: {error!r}. Restore it from a full copy.") from error
    return policy


def shaped(saved: Any, shape: tuple[int, ...], name: str) -> Matrix:
    """A saved array of exactly that shape, as the core takes it."""
    if np.shape(saved) != shape:
        raise StateError(f"`{name}` must have shape {shape}, but got {np.shape(saved)}.")
    return np.ascontiguousarray(saved, dtype=np.float64)


def refill(buffer: Matrix, saved: Any, name: str) -> None:
    """Copy a saved array into a buffer of exactly its shape."""
    if np.shape(saved) != buffer.shape:
        raise StateError(f"`{name}` must have shape {buffer.shape}, but got {np.shape(saved)}.")
    buffer[:] = saved
