"""The bank of a guard, which holds the slack that may be spent: the grid of its rates, and what a saved one must be.

What a bank is and how a round enters it, with the proof, stands in `core/bank.hpp`; how large a share to ask for in
`core/ramp.hpp`.
"""

import math

from surefoot.core.native import RATE_GRID as RATE_GRID
from surefoot.core.native import Bank
from surefoot.errors import StateError

RATES = len(RATE_GRID)


def check_bank(bank: Bank) -> None:
    """Raise where a saved bank cannot be one: the core trusts these numbers."""
    if not all(map(math.isfinite, bank.save().tolist())) or min(bank.owed, bank.entered, bank.coins) < 0.0:
        raise StateError("`banks` must hold finite numbers, and owe nothing below 0, but do not.")
    sides = bank.learner, bank.baseline
    if min(min(side.count, side.rewards) for side in sides) < 1.0:
        raise StateError("`banks` must have counted at least one reward of each side, but have not.")
