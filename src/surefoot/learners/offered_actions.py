"""Where an action stands among those that are offered, whatever kind of thing an action is."""

from collections.abc import Sequence
from typing import Any

from surefoot.errors import InputError
from surefoot.policies.guard_settings import is_same


def position_of(actions: Sequence[Any], action: Any, *, what: str = "An action") -> int:
    """The place of an action, or an InputError that says `what` was none of them.

    >>> position_of(["mail", "call"], "call")
    1
    """
    for place, one in enumerate(actions):
        if is_same(one, action):
            return place
    raise InputError(
        f"{what} must be one of the {len(actions)} actions, but got {action!r:.80}. Nothing was played in this round."
    )
