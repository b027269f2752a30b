"""A proof of an earlier round, carried on: the question of then, and what the baseline has added to it since."""

import math

import numpy as np

from surefoot.audit.compensated_sums import CompensatedSum, UnboundedSum, Vector
from surefoot.audit.proof_checker import LinearFact
from surefoot.audit.rebuilt_gram import EPS


class CarriedProof:
    """That <theta, normal> >= level; sums without drift, for a proof may use the fact a billion times over.

    said: the most that the records may claim; what they give away for rounding, the audit need not
    """

    def __init__(self, question: Vector, level: float, said: float) -> None:
        self._normal, self._level, self._said = CompensatedSum(question.shape), UnboundedSum(), UnboundedSum()
        self._normal.add(question)
        self._level.add(level)
        self._said.add(said)

    def add(self, share: float, baseline: Vector, gain: float, said: float) -> None:
        """A round of the baseline: that share of its features, and at least so much more."""
        self._normal.add_product(np.float64(share), baseline)
        # Rounded down: a fact must not be worth more than was proved.
        self._level.add(math.nextafter(share * gain, -math.inf))
        self._said.add(share * said)

    def claim(self, level: float) -> None:
        """Go on from the level that a record claimed, where that is less: rounding must not pile up."""
        if level < self._said.value:
            self._said = UnboundedSum()
            self._said.add(level)

    def line(self, theta_bound: float) -> LinearFact:
        """The fact."""
        normal, level = np.asarray(self._normal.value), self._level.value
        error = 8 * EPS * (theta_bound * float(np.linalg.norm(normal)) + abs(level))
        return LinearFact(normal, level, error, self._said.value)
