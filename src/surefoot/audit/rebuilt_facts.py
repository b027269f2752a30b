"""The linear facts of a round, rebuilt: each name that a proof may use, and what it says by the audit's own sums."""

import math
from collections.abc import Callable

import numpy as np

from surefoot.audit.audit_ledger import AuditLedger
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.declarations import Declarations
from surefoot.audit.offered_rows import OfferedRows
from surefoot.audit.proof_checker import PROVED, LinearFact
from surefoot.audit.rebuilt_gram import EPS
from surefoot.audit.rebuilt_likelihood import LIKELIHOOD, RebuiltLikelihood

KEPT_LEAST = "least reward of the rounds that kept the baseline"
KEPT_MOST = "largest reward of the rounds that kept the baseline"
OWED_LEAST = "least reward of the baseline where the learner played"
OWED_MOST = "largest reward of the baseline where the learner played"
PLAYED = "declared range, over the learner's rounds"
REALISED = "rewards that the learner received"
BASELINE_LEAST = "least reward of the baseline"
BASELINE_MOST = "largest reward of the baseline"
RANGE = "declared range of an action"
KEPT_KNOWN = "known reward of the rounds that kept the baseline"
OWED_KNOWN = "known reward of the baseline where the learner played"
FLOOR = "floor of the baseline's reward"


class LinearFacts:
    """What may be said of theta beside the confidence set, in the round that proposes `a` instead of `b`."""

    def __init__(
        self,
        declared: Declarations,
        account: AuditLedger,
        seen: OfferedRows,
        proved: LinearFact | None,
        *,
        proposal: Vector,
        displaced: Vector,
        known: tuple[float, float],
        likelihood: RebuiltLikelihood | None = None,
    ) -> None:
        self._declared, self._account, self._seen, self._proved = declared, account, seen, proved
        self._likelihood = likelihood
        self._a, self._b, self._low, self._high = proposal, displaced, *known

    def named(self, name: str, normal: Vector, point: Vector | None = None) -> list[LinearFact]:
        """The facts that this policy may call so, those that say something."""
        if name == LIKELIHOOD:
            return [] if self._likelihood is None else self._likelihood.touched(point)
        if name == RANGE and self._declared.policy == "SafeLUCB":
            return [line for line in self._range_of(normal) if line.level > -float("inf")]
        facts = _KNOWN if self._declared.policy == "CLUCB" else _FLOOR if self._declared.policy == "CLUCB2" else _SAFE
        make = facts.get(name)
        return [] if make is None else [line for line in make(self) if line.level > -float("inf")]

    def _line(self, sign: float, vectors: tuple[Vector, ...], *terms: float) -> LinearFact:
        """A fact whose normal is the sum of these vectors, and its level that of these terms.

        What rounding may have done to it is told by what it is made of: the sums may be far smaller.
        """
        reach = math.fsum(float(np.linalg.norm(vector)) for vector in vectors)
        size = self._declared.knowledge.theta_bound * reach + math.fsum(map(abs, terms))
        return LinearFact(sign * sum(vectors[1:], vectors[0]), math.fsum(terms), 8 * EPS * size)

    def kept_least(self) -> list[LinearFact]:
        """Every round that kept the baseline earned at least what was known, or the floor."""
        sums, epsilon = self._account, self._declared.misspecification
        return [self._line(1.0, (sums.conserved,), sums.kept_low.value, -epsilon * sums.baseline_rounds)]

    def kept_most(self) -> list[LinearFact]:
        """And at most what was known, or the top of the range."""
        sums, epsilon = self._account, self._declared.misspecification
        return [self._line(-1.0, (sums.conserved,), -sums.kept_high.value, -epsilon * sums.baseline_rounds)]

    def owed_least(self) -> list[LinearFact]:
        """What the baseline would have earned at least where the learner played, this round included."""
        sums, epsilon = self._account, self._declared.misspecification
        terms = sums.owed_low.value, self._low, -epsilon * (sums.learner_rounds + 1)
        return [self._line(1.0, (sums.displaced, self._b), *terms)]

    def owed_most(self) -> list[LinearFact]:
        """And at most."""
        sums, epsilon = self._account, self._declared.misspecification
        terms = -sums.owed_high.value, -self._high, -epsilon * (sums.learner_rounds + 1)
        return [self._line(-1.0, (sums.displaced, self._b), *terms)]

    def played(self) -> list[LinearFact]:
        """The declared range of every action, summed over the learner's rounds."""
        rounds, (low, high) = self._account.learner_rounds + 1, self._declared.reward_range
        vectors, lost = (self._account.played, self._a), -rounds * self._declared.misspecification
        return [self._line(1.0, vectors, rounds * low, lost), self._line(-1.0, vectors, -rounds * high, lost)]

    def realised(self) -> list[LinearFact]:
        """The learner's rewards, less what luck may have added."""
        declared, sums = self._declared, self._account
        if declared.sum_delta <= 0 or not sums.rewarded_rounds:
            return []
        luck = sums.luck(declared.knowledge.noise, declared.sum_delta)
        epsilon = declared.misspecification
        return [self._line(1.0, (sums.rewarded,), sums.received, -luck, -epsilon * sums.rewarded_rounds)]

    def proved(self) -> list[LinearFact]:
        """What an earlier round proved, carried on through rounds that kept the baseline."""
        return [] if self._proved is None else [self._proved]

    def baseline_least(self) -> list[LinearFact]:
        """The baseline of this round."""
        return [self._line(1.0, (self._b,), self._low, -self._declared.misspecification)]

    def baseline_most(self) -> list[LinearFact]:
        """The baseline of this round, from above."""
        return [self._line(-1.0, (self._b,), -self._high, -self._declared.misspecification)]

    def floor(self) -> list[LinearFact]:
        """The declared floor, over the rounds that kept the baseline."""
        rounds = self._account.baseline_rounds
        return [self._line(1.0, (self._account.conserved,), rounds * self._declared.reward_floor)]

    def _range_of(self, normal: Vector) -> list[LinearFact]:
        """The declared range of an action that was really offered, now or before."""
        (low, high), epsilon = self._declared.reward_range, self._declared.misspecification
        lines = [self._line(1.0, (normal,), low, -epsilon)] if normal in self._seen else []
        return [*lines, self._line(1.0, (normal,), -high, -epsilon)] if -normal in self._seen else lines


_SAFE: dict[str, Callable[[LinearFacts], list[LinearFact]]] = {
    KEPT_LEAST: LinearFacts.kept_least,
    KEPT_MOST: LinearFacts.kept_most,
    OWED_LEAST: LinearFacts.owed_least,
    OWED_MOST: LinearFacts.owed_most,
    PLAYED: LinearFacts.played,
    REALISED: LinearFacts.realised,
    PROVED: LinearFacts.proved,
    BASELINE_LEAST: LinearFacts.baseline_least,
    BASELINE_MOST: LinearFacts.baseline_most,
}
_KNOWN = {KEPT_KNOWN: LinearFacts.kept_least, OWED_KNOWN: LinearFacts.owed_most}
_FLOOR = {FLOOR: LinearFacts.floor}
