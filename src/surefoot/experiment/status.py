"""Where an experiment stands, in numbers that a manager can read. Kept from event to event: asking costs nothing."""

import math
from dataclasses import dataclass

from surefoot.experiment.estimates import estimates
from surefoot.experiment.state import State
from surefoot.records import ModeName, Reason, Response

STALLED = 1000  # rounds for which rewards may wait for one that has not come, before somebody should look


@dataclass(frozen=True, slots=True)
class Status:
    """An experiment after its newest event.

    floor            what must have been earned by now: (1 - alpha) of the baseline's reward, exact where that is known
                     and estimated otherwise; nan for a policy that keeps none
    guaranteed       floor + margin: the rewards' means add up to at least `margin` more than the floor, whatever that
                     is exactly (with probability 1 - delta, if what was declared is true); nan while the alarm is on
    margin           of the newest learner round, which baseline rounds since can only have raised; nan before the first
    proposed_margin  of the newest proposal: below 0 it was not allowed
    worst_margin     the least margin of all learner rounds, and `worst_round` where that was
    learner_share    learner rounds of all rounds; `allowed_share`: rounds where the gate let the learner, held or not
    pending          decisions whose reward is not learned yet; `waiting`: those of them whose reward has come and
                     waits for the reward of `held_up_by`, decided `held_up_rounds` ago; `is_stalled` where that is long
    estimated_reward what was played has earned by the estimate of today, and `estimated_baseline` what the baseline had
    abandoned        decisions whose reward will never be learned
    total_reward     sum of the rewards received, defaults included
    is_refuted       the alarm is on: data and declarations contradict each other, and only the baseline is played
    alarm            what happened, in words, and `alarm_round`, after how many rounds; `alarm_answer`, if it was
                     acknowledged by staying on the baseline, and `alarm_responses`, how it may be answered
    restarts         how often an alarm was answered by a restart; the promise counts from `promise_round` on, and
                     `debt` is what must be earned back under it
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
    waiting: int
    held_up_by: str | None
    held_up_rounds: int
    is_stalled: bool
    rewards: int
    learned: int
    defaults: int
    abandoned: int
    total_reward: float
    estimated_reward: float
    estimated_baseline: float
    refused: dict[Reason, int]
    is_refuted: bool
    alarm: str | None
    alarm_round: int
    alarm_answer: Response | None
    alarm_responses: tuple[Response, ...]
    restarts: int
    promise_round: int
    debt: float


def status_of(name: str, state: State) -> Status:
    """The status at the state's head."""
    tally, policy = state.tally, state.policy
    rounds, settlement, alarm = policy.rounds, policy.settlement, policy.alarm
    earned, baseline = estimates(policy)
    earned, baseline = earned + tally.carried_reward, baseline + tally.carried_baseline
    floor = (1 - policy.settings.get("alpha", math.nan)) * baseline
    margin = math.nan if alarm is not None and policy.keeps_floor else tally.newest_margin
    held_up_rounds = 0 if policy.held_up_by is None else rounds - policy.held_up_by
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
        guaranteed=floor + margin,
        margin=margin,
        proposed_margin=tally.proposed_margin,
        worst_margin=tally.worst_margin if tally.worst_round else math.nan,
        worst_round=tally.worst_round,
        pending=len(settlement),
        waiting=settlement.rewards_waiting,
        held_up_by=state.open_ids.get(policy.held_up_by or 0),
        held_up_rounds=held_up_rounds,
        is_stalled=held_up_rounds >= STALLED,
        rewards=tally.rewards,
        learned=rounds - len(settlement) - tally.abandoned,
        defaults=tally.defaults + settlement.defaults,
        abandoned=tally.abandoned,
        total_reward=tally.total_reward + settlement.defaults * settlement.default_reward,
        estimated_reward=earned,
        estimated_baseline=baseline,
        refused={reason: entry.total for reason, entry in tally.refusals.items()},
        is_refuted=alarm is not None,
        alarm=None if alarm is None else alarm.text,
        alarm_round=0 if alarm is None else alarm.round,
        alarm_answer=_answer(state),
        alarm_responses=policy.responses,
        restarts=len(tally.restarts),
        promise_round=tally.promise_round,
        debt=float(getattr(policy, "debt", 0.0)),
    )


def _answer(state: State) -> Response | None:
    """What was answered to the alarm that is on."""
    alarm, answer = state.policy.alarm, state.answer
    return answer.response if alarm is not None and answer is not None and answer.alarm_round == alarm.round else None
