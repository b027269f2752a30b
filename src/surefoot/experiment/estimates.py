"""What was earned and what the baseline would have earned, by the newest estimate: for people, not for proofs."""

import math
from typing import Any

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
    ledger, theta = policy.ledger, policy.ridge.theta
    known = policy.known_rewards if isinstance(policy, SafeLUCB) else None
    if known is not None:
        kept, owed = known
        return float(theta @ ledger.played) + kept, owed + kept
    if policy.needs_baseline_reward:
        return float(theta @ ledger.played) + ledger.conserved_reward, ledger.displaced_reward + ledger.conserved_reward
    earned = float(theta @ (ledger.played + ledger.conserved))
    return earned, float(theta @ (ledger.displaced + ledger.conserved)) if policy.needs_baseline else math.nan


def _arms(policy: ArmPolicy) -> tuple[float, float]:
    state: dict[str, Any] = policy.state()
    arms = state["arms"]
    means = [mean_of(arms, i) if arms[SEEN, i] else 0.0 for i in range(arms.shape[1])]
    earned = math.fsum(plays * mean for plays, mean in zip(arms[PLAYS], means, strict=True))
    known, default = policy.settings.get("baseline_reward"), state.get("default", -1)
    if default < 0:
        return earned, math.nan
    return earned, policy.rounds * (means[default] if known is None else known)
