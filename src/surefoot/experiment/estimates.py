"""What was earned and what the baseline would have earned, by the newest estimate: for people, not for proofs."""

import math
from typing import Any, NamedTuple

import numpy as np

from surefoot.arrays import Vector
from surefoot.policies.arm_policy import PLAYS, SEEN, ArmPolicy, mean_of
from surefoot.policies.base_policy import BasePolicy
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.safe_lucb import SafeLUCB


def estimates(policy: BasePolicy) -> tuple[float, float]:
    """What was earned, and what the baseline would have earned, by the newest estimate; nan if unknown."""
    if isinstance(policy, LinearPolicy):
        return _linear(policy)
    if isinstance(policy, ArmPolicy):
        return _arms(policy)
    return math.nan, math.nan


def _linear(policy: LinearPolicy) -> tuple[float, float]:
    theta, (earned, baseline) = policy.ridge.theta, ledger_sums(policy)
    return earned.at(theta), baseline.at(theta) if policy.needs_baseline else math.nan


class LedgerSum(NamedTuple):
    """A sum of mean rewards: <theta, vector> + constant."""

    vector: Vector
    constant: float

    def at(self, theta: Vector) -> float:
        """Its value for one theta."""
        return float(theta @ self.vector) + self.constant

    def less(self, other: "LedgerSum", share: float) -> "LedgerSum":
        """The sum less a share of another."""
        return LedgerSum(self.vector - share * other.vector, self.constant - share * other.constant)


def ledger_sums(policy: LinearPolicy) -> tuple[LedgerSum, LedgerSum]:
    """What was earned, and what the baseline would have earned; rewards that are known count as they are."""
    ledger, known = policy.ledger, known_rewards(policy)
    if known is not None:
        kept, owed = known
        return LedgerSum(ledger.played, kept), LedgerSum(np.zeros(policy.dim), owed + kept)
    return LedgerSum(ledger.played + ledger.conserved, 0.0), LedgerSum(ledger.displaced + ledger.conserved, 0.0)


def known_rewards(policy: LinearPolicy) -> tuple[float, float] | None:
    """What the baseline earned, and would have earned in the learner's rounds, where both are known."""
    if isinstance(policy, SafeLUCB):
        return policy.known_rewards
    ledger = policy.ledger
    return (ledger.conserved_reward, ledger.displaced_reward) if policy.needs_baseline_reward else None


def _arms(policy: ArmPolicy) -> tuple[float, float]:
    state: dict[str, Any] = policy.state()
    arms = state["arms"]
    means = [mean_of(arms, i) if arms[SEEN, i] else 0.0 for i in range(arms.shape[1])]
    earned = math.fsum(plays * mean for plays, mean in zip(arms[PLAYS], means, strict=True))
    known, default = policy.settings.get("baseline_reward"), state.get("default", -1)
    if default < 0:
        return earned, math.nan
    return earned, policy.rounds * (means[default] if known is None else known)
