"""What has been played: the sums z, v, w of the paper, updated as soon as a round is decided.

It never waits for rewards: a pending round is in the ledger and not in the confidence set (docs/mathematics.md, "The
order of learning"). Every sum is compensated, so that a million rounds leave no rounding error behind.
"""

import numpy as np

from surefoot.arrays import Vector
from surefoot.compiled import compiled
from surefoot.linear.exact import add

# The head of the array, then two rows (sum, carry) for each of played, displaced, conserved.
LEARNER_ROUNDS, BASELINE_ROUNDS, CONSERVED_REWARD, CONSERVED_CARRY, DISPLACED_REWARD, DISPLACED_CARRY, HEAD = range(7)


@compiled
def book_learner(ledger: Vector, played: Vector, displaced: Vector, displaced_reward: float, d: int) -> None:
    """Count a learner round: z += phi_a, v += phi_b."""
    ledger[LEARNER_ROUNDS] += 1.0
    add(ledger, DISPLACED_REWARD, displaced_reward, 1)
    for i in range(d):
        add(ledger, HEAD + i, played[i], d)
        add(ledger, HEAD + 2 * d + i, displaced[i], d)


@compiled
def book_baseline(ledger: Vector, conserved: Vector, conserved_reward: float, d: int) -> None:
    """Count a baseline round: w += phi_b."""
    ledger[BASELINE_ROUNDS] += 1.0
    add(ledger, CONSERVED_REWARD, conserved_reward, 1)
    for i in range(d):
        add(ledger, HEAD + 4 * d + i, conserved[i], d)


def new_ledger(dim: int) -> Vector:
    """An empty ledger."""
    return np.zeros(HEAD + 6 * dim)


class Ledger:
    """What has been played: named views into one flat array, `buffer`, that compiled code shares.

    Parameters
    ----------
    dim : int
        Number of features of an action.

    Examples
    --------
    >>> ledger = Ledger(dim=2)
    >>> ledger.learner_rounds, ledger.baseline_rounds, ledger.played
    (0, 0, array([0., 0.]))
    """

    def __init__(self, *, dim: int) -> None:
        self.buffer = new_ledger(dim)

    @property
    def learner_rounds(self) -> int:
        """m: rounds in which the optimistic action was played."""
        return int(self.buffer[LEARNER_ROUNDS])

    @property
    def baseline_rounds(self) -> int:
        """n: rounds in which the baseline was played."""
        return int(self.buffer[BASELINE_ROUNDS])

    @property
    def played(self) -> Vector:
        """z: sum of the learner's features over learner rounds."""
        return self._sum(0)

    @property
    def displaced(self) -> Vector:
        """v: sum of the baseline's features over learner rounds."""
        return self._sum(2)

    @property
    def conserved(self) -> Vector:
        """w: sum of the baseline's features over baseline rounds."""
        return self._sum(4)

    @property
    def displaced_reward(self) -> float:
        """Known baseline reward given up over learner rounds."""
        return float(self.buffer[DISPLACED_REWARD] + self.buffer[DISPLACED_CARRY])

    @property
    def conserved_reward(self) -> float:
        """Known baseline reward kept over baseline rounds."""
        return float(self.buffer[CONSERVED_REWARD] + self.buffer[CONSERVED_CARRY])

    def _sum(self, row: int) -> Vector:
        sums = self.buffer[HEAD:].reshape(6, -1)
        total: Vector = sums[row] + sums[row + 1]
        return total
