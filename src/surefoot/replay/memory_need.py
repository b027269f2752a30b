"""Whether the matrices of a fit or a replay fit into memory, told before hours are spent on finding out.

Policies keep several matrices of dim x dim numbers, where dim counts every action's own columns: 20 actions of 1,024
buckets are 20,500 dimensions, and 3 GB a matrix.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.replay.batch import Log
from surefoot.replay.guarded_lucb import GUARD
from surefoot.simulation.contestants import Entrant
from surefoot.simulation.policy_specs import Spec

FIT = 12  # matrices that a fit holds at once
WHOLE, OF_BLOCKS = 3, 5  # that each policy of a replay fills, and those of which it fills only actions' own blocks


def replayed_matrices(policies: Sequence[Entrant], blocks: int) -> float:
    """How many matrices a replay fills, where actions have so many blocks of their own (0: one of all).

    Policies of your own are not counted, for nobody knows what they keep; a guard's learner is LUCB.
    """
    counted = sum(isinstance(policy, Spec) or policy.name == GUARD for policy in policies)
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


def available_memory() -> int:
    """What programs may still take, in bytes: of the machine, and of a container where it has a limit."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        found = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        found = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([found, *_left_in_container()])


def _left_in_container(folder: Path = Path("/sys/fs/cgroup")) -> list[int]:
    try:
        limit, used = ((folder / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return [] if limit == "max" else [int(limit) - int(used) + _given_up_on_demand(folder)]
    except (OSError, ValueError):
        return []


def _given_up_on_demand(folder: Path) -> int:
    """Files that were read and are kept in case they are read again: counted as used, but free to whoever needs it."""
    try:
        told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(told.get("inactive_file", 0))
    except (OSError, ValueError):
        return 0
