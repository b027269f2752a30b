"""What has been played, in the audit's own sums: z, v, w of the paper, known rewards, rewards received."""

import math

import numpy as np

from surefoot.audit.compensated_sums import CompensatedSum, UnboundedSum, Vector


class AuditLedger:
    """The sums over all rounds so far; pending rounds are in it, their rewards are not."""

    def __init__(self, dim: int) -> None:
        self._played, self._displaced, self._conserved = (
            CompensatedSum((dim,)),
            CompensatedSum((dim,)),
            CompensatedSum((dim,)),
        )
        self._rewarded = CompensatedSum((dim,))
        self.kept_low, self.kept_high, self.owed_low, self.owed_high = (
            UnboundedSum(),
            UnboundedSum(),
            UnboundedSum(),
            UnboundedSum(),
        )
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
