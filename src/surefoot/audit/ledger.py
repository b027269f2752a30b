"""What has been played and what follows from it: the audit's own sums, the rows offered, and the facts of a round."""

import math
from collections.abc import Callable

import numpy as np

from surefoot.audit.compensated_sums import CompensatedSum, Matrix, UnboundedSum, Vector
from surefoot.audit.confidence_sets import EPS
from surefoot.audit.declarations import Declarations
from surefoot.audit.likelihood import LIKELIHOOD, RebuiltLikelihood
from surefoot.audit.recorded_proof import PROVED, LinearFact

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


class AuditLedger:
    """The sums over all rounds so far; pending rounds are in it, their rewards are not."""

    def __init__(self, dim: int) -> None:
        self._played, self._displaced, self._conserved, self._rewarded = (CompensatedSum((dim,)) for _ in range(4))
        self.kept_low, self.kept_high, self.owed_low, self.owed_high = (UnboundedSum() for _ in range(4))
        self._received = UnboundedSum()
        self.learner_rounds = self.baseline_rounds = self.rewarded_rounds = 0
        self._first: Vector | None = None
        self.has_moved = False  # whether a baseline's reward was not exactly known, or its features changed

    def emptied(self) -> "AuditLedger":
        """A ledger without rounds that remembers the rewards received, and whether the baseline has moved."""
        fresh = AuditLedger(self._played.value.size)
        fresh._rewarded, fresh._received, fresh.rewarded_rounds = self._rewarded, self._received, self.rewarded_rounds
        fresh.has_moved = self.has_moved
        return fresh

    def play(self, features: Vector, displaced: Vector, known: tuple[float, float], *, is_learner: bool) -> None:
        """Count a round the moment it was decided."""
        low, high = known
        self._first = displaced.copy() if self._first is None else self._first
        self.has_moved = self.has_moved or low != high or not np.array_equal(self._first, displaced)
        self._count(features, displaced, 1, is_learner=is_learner)
        for total, one in self._known(known, is_learner):
            total.add(one)

    def take_back(self, features: Vector, displaced: Vector, known: tuple[float, float], *, is_learner: bool) -> None:
        """Undo it, for a round that was not played as it was decided."""
        self._count(-features, -displaced, -1, is_learner=is_learner)
        for total, one in self._known(known, is_learner):
            total.take_back(one)

    def _count(self, features: Vector, displaced: Vector, rounds: int, *, is_learner: bool) -> None:
        if is_learner:
            self.learner_rounds += rounds
            self._played.add(features)
            self._displaced.add(displaced)
        else:
            self.baseline_rounds += rounds
            self._conserved.add(displaced)

    def _known(self, known: tuple[float, float], is_learner: bool) -> tuple[tuple[UnboundedSum, float], ...]:
        """The sums of what is known of the baseline, and what a round adds to each."""
        low, high = (self.owed_low, self.owed_high) if is_learner else (self.kept_low, self.kept_high)
        return (low, known[0]), (high, known[1])

    def receive(self, features: Vector, reward: float) -> None:
        """Count the reward of a learner round, now that it is learned."""
        self.rewarded_rounds += 1
        self._received.add(reward)
        self._rewarded.add(features)

    @property
    def played(self) -> Vector:
        """z: features that the learner played."""
        return np.asarray(self._played.value)

    @property
    def displaced(self) -> Vector:
        """v: features of the baseline where the learner played."""
        return np.asarray(self._displaced.value)

    @property
    def conserved(self) -> Vector:
        """w: features of the baseline where it was played."""
        return np.asarray(self._conserved.value)

    @property
    def rewarded(self) -> Vector:
        """Features of the learner rounds whose reward was learned."""
        return np.asarray(self._rewarded.value)

    @property
    def received(self) -> float:
        """What the learner's rounds really brought, as far as it was learned."""
        return self._received.value

    def luck(self, noise: float, delta: float) -> float:
        """How much more than their means these rewards may add up to, at any time, with probability 1 - delta.

        sum r >= sum y - psi, psi = sqrt(s (ln(s/rho) + 2 ln(1/delta))), s = sigma^2 m + rho.
        (docs/mathematics.md, "Realised sum")
        """
        # Any rho that is fixed beforehand is valid, but this must be the policies' own.
        rho = 30.0 * noise**2
        total = noise**2 * self.rewarded_rounds + rho
        return math.sqrt(total * (math.log(total / rho) + 2.0 * math.log(1.0 / delta)))


class OfferedRows:
    """A set of rows in eight bytes each, by Python's salted hash: nobody can prepare a row that collides."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._old = np.zeros(0, dtype=np.int64)
        self._last: bytes | None = None

    def add(self, rows: Matrix) -> None:
        """Note every row of a round; a catalogue that stays the same costs nothing."""
        data = rows.tobytes()
        if data == self._last:
            return
        self._last = data
        # Adding 0.0 turns -0.0 into 0.0: rows that are equal must have equal bytes.
        self._recent.update(hash(row.tobytes()) for row in rows + 0.0)
        if len(self._recent) > 65536 + self._old.size // 4:
            merged = np.concatenate([self._old, np.fromiter(self._recent, dtype=np.int64)])
            self._old, self._recent = np.unique(merged), set()

    def __contains__(self, row: Vector) -> bool:
        key = hash((row + 0.0).tobytes())
        at = int(np.searchsorted(self._old, key))
        return key in self._recent or (at < self._old.size and int(self._old[at]) == key)


class CarriedProof:
    """That <theta, normal> >= level; sums without drift, for a proof may use the fact a billion times over.

    claimed_level: the most that the records may claim; what they give away for rounding, the audit need not
    """

    def __init__(self, question: Vector, level: float, claimed_level: float) -> None:
        self._normal, self._level, self._claimed_level = CompensatedSum(question.shape), UnboundedSum(), UnboundedSum()
        self._normal.add(question)
        self._level.add(level)
        self._claimed_level.add(claimed_level)

    def add(self, share: float, baseline: Vector, gain: float, claimed_level: float) -> None:
        """A round of the baseline: that share of its features, and at least so much more."""
        self._normal.add_product(np.float64(share), baseline)
        # Rounded down: a fact must not be worth more than was proved.
        self._level.add(math.nextafter(share * gain, -math.inf))
        self._claimed_level.add(share * claimed_level)

    def claim(self, level: float) -> None:
        """Go on from the level that a record claimed, where that is less: rounding must not pile up."""
        if level < self._claimed_level.value:
            self._claimed_level = UnboundedSum()
            self._claimed_level.add(level)

    def line(self, theta_bound: float) -> LinearFact:
        """The fact."""
        normal, level = np.asarray(self._normal.value), self._level.value
        error = 8 * EPS * (theta_bound * float(np.linalg.norm(normal)) + abs(level))
        return LinearFact(normal, level, error, self._claimed_level.value)


class LinearFacts:
    """What may be said of theta beside the confidence set, in the round that proposes `a` instead of `b`."""

    def __init__(
        self,
        declared: Declarations,
        account: AuditLedger,
        offered: OfferedRows,
        proved: LinearFact | None,
        *,
        proposal: Vector,
        displaced: Vector,
        known: tuple[float, float],
        likelihood: RebuiltLikelihood | None = None,
    ) -> None:
        self._declared, self._account, self._offered, self._proved = declared, account, offered, proved
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
        lines = [self._line(1.0, (normal,), low, -epsilon)] if normal in self._offered else []
        return [*lines, self._line(1.0, (normal,), -high, -epsilon)] if -normal in self._offered else lines


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
