"""What has been played, in the audit's own sums: z, v, w of the paper, known rewards, rewards received."""

import math

import numpy as np

from surefoot.audit.compensated_sums import CompensatedSum, UnboundedSum, Vector
from surefoot.audit.recorded_round import RecordedRound


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

    def play(self, round_: RecordedRound, displaced: Vector, known: tuple[float, float]) -> None:
        """Count a round the moment it was decided."""
        low, high = known
        self._first = displaced.copy() if self._first is None else self._first
        self.has_moved = self.has_moved or low != high or not np.array_equal(self._first, displaced)
        if round_.is_learner:
            self.learner_rounds += 1
            self._played.add(round_.rows[round_.action])
            self._displaced.add(displaced)
            self.owed_low.add(low)
            self.owed_high.add(high)
        else:
            self.baseline_rounds += 1
            self._conserved.add(displaced)
            self.kept_low.add(low)
            self.kept_high.add(high)

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
