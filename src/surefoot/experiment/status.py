"""Where an experiment stands, in numbers that a manager can read. Kept from event to event: asking costs nothing."""

import math
from dataclasses import dataclass
from typing import Any

from surefoot.experiment.records import ModeName, Reason
from surefoot.experiment.state import State
from surefoot.policies.arms import PLAYS, SEEN, ArmPolicy, mean_of
from surefoot.policies.base import Policy
from surefoot.policies.linear import LinearPolicy


@dataclass(frozen=True, slots=True)
class Status:
    """An experiment after its newest event.

    floor            what must have been earned by now: (1 - alpha) of the baseline's reward, exact where that is known
                     and estimated otherwise; nan for a policy that keeps none
    guaranteed       floor + margin: that the rewards' means add up to at least `margin` more than the floor is certain
                     (with probability 1 - delta), whatever the floor is exactly
    margin           of the newest learner round, which baseline rounds since can only have raised; nan before the first
    proposed_margin  of the newest proposal: below 0 it was not allowed
    worst_margin     the least margin of all learner rounds, and `worst_round` where that was
    learner_share    learner rounds of all rounds; `allowed_share`: rounds where the gate let the learner, held or not
    pending          decisions whose reward is not learned yet
    estimated_reward what was played has earned by the estimate of today, and `estimated_baseline` what the baseline had
    total_reward     sum of the rewards learned, defaults included
    is_refuted       the alarm: data and assumptions contradict each other, and only the baseline is played
    """

    name: str
    policy: str
    mode: ModeName
    events: int
    time: float
    rounds: int
    learner_rounds: int
    baseline_rounds: int
    held_rounds: int
    fallback_rounds: int
    learner_share: float
    allowed_share: float
    floor: float
    guaranteed: float
    margin: float
    proposed_margin: float
    worst_margin: float
    worst_round: int
    pending: int
    rewards: int
    learned: int
    defaults: int
    total_reward: float
    estimated_reward: float
    estimated_baseline: float
    refused: dict[Reason, int]
    is_refuted: bool


def status_of(name: str, state: State) -> Status:
    """The status at the state's head."""
    tally, rounds = state.tally, state.policy.rounds
    earned, baseline = estimates(state.policy)
    floor = (1 - state.policy.settings.get("alpha", math.nan)) * baseline
    return Status(
        name=name,
        policy=state.created.policy,
        mode=state.mode,
        events=state.head.number,
        time=state.time,
        rounds=rounds,
        learner_rounds=tally.learner_rounds,
        baseline_rounds=tally.baseline_rounds,
        held_rounds=tally.held_rounds,
        fallback_rounds=tally.fallback_rounds,
        learner_share=tally.learner_rounds / max(rounds, 1),
        allowed_share=tally.allowed_rounds / max(rounds, 1),
        floor=floor,
        guaranteed=floor + tally.newest_margin,
        margin=tally.newest_margin,
        proposed_margin=tally.proposed_margin,
        worst_margin=tally.worst_margin if tally.worst_round else math.nan,
        worst_round=tally.worst_round,
        pending=tally.pending,
        rewards=tally.rewards,
        learned=tally.learned,
        defaults=tally.defaults,
        total_reward=tally.total_reward,
        estimated_reward=earned,
        estimated_baseline=baseline,
        refused={reason: entry.total for reason, entry in tally.refusals.items()},
        is_refuted=bool(getattr(state.policy, "is_refuted", False)),
    )


def estimates(policy: Policy) -> tuple[float, float]:
    """What was played has earned by the newest estimate, and what the baseline would have; nan where unknown."""
    if isinstance(policy, LinearPolicy):
        return _linear(policy)
    if isinstance(policy, ArmPolicy):
        return _arms(policy)
    return math.nan, math.nan


def _linear(policy: LinearPolicy) -> tuple[float, float]:
    ledger, theta = policy.ledger, policy.ridge.theta
    if policy.needs_baseline_reward:
        return float(theta @ ledger.played) + ledger.conserved_reward, ledger.displaced_reward + ledger.conserved_reward
    earned = float(theta @ (ledger.played + ledger.conserved))
    return earned, float(theta @ (ledger.displaced + ledger.conserved)) if policy.needs_baseline else math.nan


def _arms(policy: ArmPolicy) -> tuple[float, float]:
    state: dict[str, Any] = policy.state()
    arms = state["arms"]
    means = [mean_of.function(arms, i) if arms[SEEN, i] else 0.0 for i in range(arms.shape[1])]
    earned = math.fsum(plays * mean for plays, mean in zip(arms[PLAYS], means, strict=True))
    known, default = policy.settings.get("baseline_reward"), state.get("default", -1)
    if default < 0:
        return earned, math.nan
    return earned, policy.rounds * (means[default] if known is None else known)
