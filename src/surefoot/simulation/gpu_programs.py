"""Which program plays which runs on a GPU, and the structs that both read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from surefoot.core import native
from surefoot.core.gpu_program import Engine
from surefoot.linear.radius import RADII
from surefoot.linear.ridge import FIXED
from surefoot.simulation.realisations import Block

# Their types in `core/gpu/play.cu`: the paper's are one, and each is one `Which` of it.
TYPES = {"LUCB": "PaperPolicy", "CLUCB": "PaperPolicy", "CLUCB2": "PaperPolicy", "SafeLUCB": "SafeLucb"}
WHICH = ("LUCB", "CLUCB", "CLUCB2")
# Lanes that play one run. More would share its rows, and repeat the rest of its rounds.
TEAMS = {"PaperPolicy": 4, "SafeLucb": 4}
BLOCKS = {"PaperPolicy": 8, "SafeLucb": 1}  # that a multiprocessor must have registers for
BLOCK = 32  # threads that are started together
ARENA_BYTES = 32 * BLOCK  # of a block's shared memory: where its threads take room from
BOARD_BYTES = 14240  # and what they tell each other where vectors are dealt
MOST_DEALT = 128  # rows that a warp scores together
ORDINARY = 2.0**60  # the largest number that their quotients are made for

# The structs of `gpu/play.cu`.
ROUNDS = np.dtype(
    [
        ("rounds", np.int32),
        ("actions", np.int32),
        ("checkpoints", np.uint64),
        ("checkpoint_count", np.int32),
        ("watched", np.uint64),
        ("watched_count", np.int32),
        ("memory", np.uint64),
        ("lane_room", np.uint64),
        ("team_room", np.uint64),
        ("groups", np.int32),
        ("slices", np.int32),
        ("tickets", np.uint64),
        ("done", np.uint64),
    ],
    align=True,
)


def task_dtype(settings: int) -> np.dtype[np.void]:
    """One run as the kernel reads it, with so many bytes of settings."""
    return np.dtype(
        [
            ("settings", np.void, settings),
            ("features", np.uint64),
            ("columns", np.uint64),
            ("means", np.uint64),
            ("baselines", np.uint64),
            ("draws", np.uint64),
            ("kept", np.uint64),
            ("learned", np.uint64),
            ("scale", np.float64),
            ("rewards", np.int32),
            ("is_told", np.int32),
            ("which", np.int64),
        ]
    )


# The others look at more than an ellipsoid and its widths.
DEALT_RADII = {RADII[name] for name in ("paper", "logdet", "amm")}


class Kind(NamedTuple):
    """What a program is compiled for: a policy's type in the core, a radius, and whether its runs are ordinary."""

    policy: str
    radius: int
    is_ordinary: bool


def engine_of(
    policy: str, radius: int = 0, is_ordinary: bool = True, *, fixed: bool = True, actions: int = MOST_DEALT
) -> Engine:
    """The engine for a policy's type and radius in the core, in worlds whose rows stay the same or not."""
    task = task_dtype(len(native.LinearSettings().raw())).itemsize
    team = team_of(policy, radius, fixed=fixed)
    dealt = policy == "PaperPolicy" and is_ordinary and fixed and radius in DEALT_RADII and actions <= MOST_DEALT
    shared = ARENA_BYTES + BOARD_BYTES * dealt
    return Engine(policy, radius, fixed, FIXED, team, BLOCK, BLOCKS[policy], task, ROUNDS.itemsize, shared, dealt)


def are_ordinary(blocks: Sequence[Block]) -> bool:
    """Whether all features lie between 1/ORDINARY and ORDINARY, or are zero.

    Where vectors are dealt, quotients and roots are rounded correctly as long as nothing on the way leaves the normal
    numbers. With such features, and a ridge within the same bounds, a row's leverage stays below 2^182, and det V
    grows by less than 2^800 between two factorisations of 1,024 observations.
    """
    sizes = np.abs(np.concatenate([block.features.ravel() for block in blocks]))
    return bool(np.all((sizes == 0.0) | ((sizes >= 1 / ORDINARY) & (sizes <= ORDINARY))))


def is_ordinary(settings: Any) -> bool:
    """Whether a ridge lies within those bounds, and nothing is declared that programs with dealt vectors leave out."""
    within = 1 / ORDINARY <= settings.ridge <= ORDINARY
    return bool(within and settings.misfit == 0.0 and settings.exploration == 0.0)


def team_of(policy: str, radius: int, *, fixed: bool) -> int:
    """How many lanes play a run; one alone prepares new rows, and chooses the sets of the `dual` radius."""
    return TEAMS[policy] if fixed and radius != RADII["dual"] else 1
