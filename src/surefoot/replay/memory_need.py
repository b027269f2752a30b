"""Whether the matrices of a fit or a replay fit into memory, told before hours are spent on finding out.

Policies keep several matrices of dim x dim numbers, where dim counts every action's own columns: 20 actions of 1,024
buckets are 20,500 dimensions, and 3 GB a matrix.
"""

from collections.abc import Sequence

from surefoot.errors import ConfigError
from surefoot.replay.batch import Log
from surefoot.replay.guarded_lucb import GUARD
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.workers import available_memory

FIT = 12  # matrices that a fit holds at once
WHOLE, OF_BLOCKS = 3, 5  # that each policy of a replay fills, and those of which it fills only actions' own blocks


def replayed_matrices(policies: Sequence[Spec], blocks: int) -> float:
    """How many matrices a replay fills, where actions have so many blocks of their own (0: one of all).

    Policies of your own are not counted, for nobody knows what they keep; a guard's learner is LUCB.
    """
    counted = sum(not policy.is_own or policy.name == GUARD for policy in policies)
    return counted * (WHOLE + OF_BLOCKS / max(1, blocks))


def check_memory(log: Log, matrices: float, *, available: int | None = None) -> None:
    """Refuse a log whose matrices would not fit."""
    need, have = 8 * log.dim**2 * matrices, available_memory() if available is None else available
    if need <= have:
        return
    each = log.dim // max(1, len(log.actions))
    raise ConfigError(
        f"{matrices:.3g} matrices of {log.dim:,} x {log.dim:,} numbers must fit into memory, but they take "
        f"{_size(need)}, and {_size(have)} are free: {len(log.actions)} actions have {each:,} columns "
        "each. Take fewer buckets (`--hash`) or columns (`--context`), fewer policies (`--policy`), or describe "
        "actions by features of their own (`--action-features`)."
    )


def _size(number: float) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.0f} MB"
