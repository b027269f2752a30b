"""A baseline that is more than one row: drawn with given chances, or any of several actions, whichever suits.

Of a drawn one the mean row is booked, so the promise is about what it earns on average over its own draws; the row that
was really played is learned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.arrays import Matrix, Vector, finite_array
from surefoot.errors import InputError


@dataclass(frozen=True, slots=True)
class DrawnBaseline:
    """The chance of every action to be the one that is played today."""

    chances: Vector

    def offer(self, rows: Matrix) -> Matrix:
        """The rows, and after them the mean row of the baseline.

        It never has the largest UCB: that of a mean is at most the mean of theirs.
        """
        return np.vstack([rows, self.chances @ rows])

    def draw(self, coin: float) -> int:
        """The action that a number uniform in [0, 1) stands for."""
        ends = np.cumsum(self.chances)
        # Rounding must not draw an action without a chance.
        return int(min(np.searchsorted(ends, coin * ends[-1], side="right"), np.flatnonzero(self.chances)[-1]))

    def played(self, step: tuple[Any, ...], row: int, rows: Matrix) -> tuple[Any, ...]:
        """What the core has step, with the row that is played and learned in place of the mean row."""
        proposal, is_learner, _, *rest = step
        return (row if proposal == rows.shape[0] else proposal, is_learner, rows[row].tobytes(), *rest)


def read_drawn(baseline: Any, actions: int) -> DrawnBaseline | None:
    """A baseline given as one chance per action; None if it is something else."""
    if not isinstance(baseline, (Sequence, np.ndarray)) or isinstance(baseline, (str, bytes)):
        return None
    chances = finite_array("baseline", baseline, ndim=1)
    if chances.size != actions or (chances < 0.0).any() or abs(float(chances.sum()) - 1.0) > 1e-9:
        raise InputError(
            f"`baseline` must be a row, or {actions} chances of at least 0 that add up to 1, one per action, but got "
            f"{chances.tolist()}. They are those of the strategy that is played today."
        )
    return DrawnBaseline(chances / chances.sum())


def most_telling(any_of: Any, rows: Matrix, share: float, ridge: Any, radius: float) -> int:
    """Of several rows that may all be today's, the one over which the learner's proposal will be proved first.

    That is where the contrast q = proposal - share x is narrowest once x has been learned: ||q||^2 - <x, q>^2 / (1 +
    ||x||^2), all in V^-1. The proposal is the row with the largest UCB at that radius.
    """
    candidates = []
    for row in any_of:
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not 0 <= row < rows.shape[0]:
            raise InputError(
                f"A set given as `baseline` must hold rows from 0 to {rows.shape[0] - 1}, but got {row!r}. Any of them "
                "may be played today."
            )
        candidates.append(int(row))
    if not candidates:
        raise InputError("A set given as `baseline` must hold at least one row, but it is empty.")
    white = rows @ ridge.whitener.T
    squares = np.einsum("ij,ij->i", white, white)
    proposal = int(np.argmax(rows @ ridge.theta + radius * np.sqrt(squares)))
    candidates.sort()  # a set has no order of its own, and a tie must not depend on one
    played = white[candidates]
    contrast = white[proposal] - share * played
    along = np.einsum("ij,ij->i", played, contrast)
    left = np.einsum("ij,ij->i", contrast, contrast) - along**2 / (1.0 + squares[candidates])
    return candidates[int(np.argmin(left))]
