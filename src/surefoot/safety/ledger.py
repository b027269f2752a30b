"""What has been played: the sums z, v, w of the paper, updated as soon as a round is decided.

It never waits for rewards: a pending round is in the ledger and not in the confidence set (docs/mathematics.md, "The
order of learning"). Every sum is compensated, so that a million rounds leave no rounding error behind.
"""

from typing import Any

from surefoot.arrays import Vector
from surefoot.linear.ridge import sized


class Ledger:
    """What has been played: sums over rounds, kept by the core.

    Parameters
    ----------
    dim : int
        Number of features of an action.
    core : optional
        The core's sums, where a policy keeps them.

    Examples
    --------
    >>> ledger = Ledger(dim=2)
    >>> ledger.learner_rounds, ledger.baseline_rounds, ledger.played
    (0, 0, array([0., 0.]))
    """

    def __init__(self, *, dim: int, core: Any = None) -> None:
        self.core = sized("Ledger", dim)(dim) if core is None else core

    @property
    def learner_rounds(self) -> int:
        """m: rounds in which the optimistic action was played."""
        return int(self.core.learner_rounds)

    @property
    def baseline_rounds(self) -> int:
        """n: rounds in which the baseline was played."""
        return int(self.core.baseline_rounds)

    @property
    def played(self) -> Vector:
        """z: sum of the learner's features over learner rounds."""
        total: Vector = self.core.played
        return total

    @property
    def displaced(self) -> Vector:
        """v: sum of the baseline's features over learner rounds."""
        total: Vector = self.core.displaced
        return total

    @property
    def conserved(self) -> Vector:
        """w: sum of the baseline's features over baseline rounds."""
        total: Vector = self.core.conserved
        return total

    @property
    def displaced_reward(self) -> float:
        """Known baseline reward given up over learner rounds."""
        return float(self.core.displaced_reward)

    @property
    def conserved_reward(self) -> float:
        """Known baseline reward kept over baseline rounds."""
        return float(self.core.conserved_reward)
