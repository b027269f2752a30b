"""How many rare rewards must be seen until bounds that hold at all times let a better arm act freely.

To prove that an arm pays at least (1 - alpha) of a baseline, with r the quotient of their means and
kappa = r - (1 - alpha), bounds such as ours need so many rewards N_a and N_b of each that

    r^2 / N_a + (1 - alpha)^2 / N_b <= kappa^2 / (2 ln(1/delta)),

where N_b counts as infinite if the baseline's mean is known. Until then an arm of which nothing else tells may have a
share alpha of the rounds. It is no limit: one look at a time that was fixed in advance needs about half as many.
(docs/mathematics.md, "How many rewards these bounds need")
"""

import math
from dataclasses import dataclass

from surefoot.arrays import Vector


@dataclass(frozen=True, slots=True)
class RewardsNeeded:
    """What is needed of an arm that pays `lift` more than the baseline, as a share.

    >>> needed = RewardsNeeded(lift=0.5, alpha=0.1, delta=0.001, is_known=True)
    >>> round(needed.rewards(0.1)), round(needed.rounds(0.02, share=0.1))
    (86, 28782)
    """

    lift: float
    alpha: float
    delta: float
    is_known: bool = False

    @property
    def precision(self) -> float:
        """What the two terms must not exceed together."""
        return (self.lift + self.alpha) ** 2 / (2.0 * math.log(1.0 / self.delta))

    def rounds(self, rate: float, share: float) -> float:
        """Rounds until both have brought enough, if the arm has this share of them and the baseline pays `rate`."""
        ratio, kept = 1.0 + self.lift, (1.0 - self.alpha) ** 2
        terms = ratio / share + (0.0 if self.is_known else kept / (1.0 - share) if share < 1.0 else math.inf)
        return terms / (self.precision * rate)

    def rewards(self, share: float) -> float:
        """The arm's own rewards in these rounds."""
        return self.rounds(1.0, share) * share * (1.0 + self.lift)

    def times(self, arm: Vector, baseline: Vector) -> Vector:
        """How many times as many rewards were seen of the arm and of the baseline as are needed, run by run."""
        ratio, kept = 1.0 + self.lift, (1.0 - self.alpha) ** 2
        # Of what was never seen, nothing is known: a quotient of 0.
        left = 0.0 if self.is_known else kept * baseline**-1.0
        return self.precision / (ratio**2 * arm**-1.0 + left)
