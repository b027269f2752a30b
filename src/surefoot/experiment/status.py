"""Where an experiment stands. Counts are kept from event to event, so a status costs nothing."""

import math
from dataclasses import dataclass

from surefoot.experiment.counts import GuardCounts
from surefoot.experiment.estimates import estimates
from surefoot.experiment.guard_status import GuardStatus, guard_status
from surefoot.experiment.lift import NOTHING, Interval, Lift, earnings_of, guard_lift
from surefoot.experiment.state import State
from surefoot.policies import Guard
from surefoot.records import ModeName, Reason, Response

STALLED = 1000  # rounds for which rewards may wait for a missing one before it counts as stalled


@dataclass(frozen=True, slots=True)
class Status:
    """Where an experiment stands after its newest event, in numbers that a manager can read.

    Attributes
    ----------
    name, policy, mode : str
        The experiment, its policy, and who may play.
    events, head_hash, time : int, str and float
        Number, hash and time of the newest event.
    rounds, learner_rounds, baseline_rounds : int
        Rounds decided, and by whom.
    held_rounds, fallback_rounds : int
        Rounds that had to be the baseline's whatever the gate said, and those of them that callers played on their own.
    learner_share, allowed_share : float
        Share of rounds that the learner played, and in which the gate let a proposal pass. In shadow nothing is spent
        of what the gate allows, so that it lets many more pass than the learner would have played.
    floor : float
        What must have been earned by now: (1 - alpha) of the baseline's reward, exact if that is known and estimated
        otherwise; nan for a policy without a floor.
    guaranteed : float
        floor + margin; nan while the alarm is on.
    margin : float
        Of the newest learner round, which baseline rounds since can only have raised: the mean rewards add up to at
        least this much more than the floor, with probability 1 - delta and if what was declared is true. nan before the
        first.
    proposed_margin : float
        Of the newest proposal: below 0 it was not allowed.
    worst_margin, worst_round : float and int
        The least margin of all learner rounds, and where that was.
    pending, waiting : int
        Decisions whose reward is not learned yet, and those of them whose reward has come and waits for an earlier one.
    held_up_by, held_up_rounds, is_stalled : str, int and bool
        The decision that rewards wait for, how many rounds ago it was made, and whether that is long.
    rewards, learned, defaults, abandoned : int
        Rewards accepted, learned, learned by default, and decisions settled without one.
    voided : int
        Rounds that were not played as decided; of linear policies they count on the side that was played.
    unconfirmed : int
        Learner rounds that nobody has confirmed in time, which count at their worst (`confirm_within`).
    total_reward : float
        Sum of the rewards received, defaults included.
    estimated_reward, estimated_baseline : float
        What was earned, and what the baseline would have earned, by the newest estimate.
    refused : dict
        Refused rewards by reason.
    is_refuted, alarm, alarm_round, alarm_answer, alarm_responses
        Whether the alarm is on; what happened, after how many rounds; "stay" if it was acknowledged so; possible
        answers.
    restarts, promise_round, debt
        Alarms answered by a restart, the round from which the promise counts, and what must be earned back under it.
    lift : Lift or None
        How much more a decision of the learner earned than the baseline would have, with an interval that holds at all
        times at once; None before its first, while the alarm is on, and for policies that have no such interval.
    reward_interval, surplus_interval : (low, high)
        What was earned, and by how much that lies above the floor: bounds that hold at all times with probability
        1 - delta. nan where there are none.
    guard : GuardStatus or None
        Of a guard: its share, its banks, and the means of both sides. There `floor` is nan, margins are in units of the
        highest reward, and `learned` counts every round that is settled.

    Examples
    --------
    >>> import surefoot
    >>> shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", surefoot.UCB(arms=2))
    >>> shop.status().mode, shop.status().rounds
    ('shadow', 0)
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
    voided: int = 0
    head_hash: str = ""
    unconfirmed: int = 0
    guard: GuardStatus | None = None
    lift: Lift | None = None
    reward_interval: Interval = NOTHING.reward
    surplus_interval: Interval = NOTHING.surplus


def status_of(name: str, state: State) -> Status:
    """The status at the state's head."""
    tally, policy = state.tally, state.policy
    rounds, settlement, alarm = policy.rounds, policy.settlement, policy.alarm
    earned, baseline = estimates(policy)
    earned, baseline = earned + tally.carried_reward, baseline + tally.carried_baseline
    guard, known = None, earnings_of(policy)
    lift = known.lift
    if isinstance(policy, Guard) and isinstance(tally, GuardCounts):
        guard = guard_status(policy, tally)
        lift = guard_lift(policy, tally.learner_rounds)
    floor = math.nan if guard is not None else (1 - policy.settings.get("alpha", math.nan)) * baseline
    margin = math.nan if alarm is not None and policy.keeps_floor else tally.newest_margin
    # Of what a promise has carried over a restart there are estimates alone.
    reward, surplus = (NOTHING.reward, NOTHING.surplus) if tally.carried_baseline else (known.reward, known.surplus)
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
        # A guard books an abandoned round at its worst, which is settled, too.
        learned=rounds - len(settlement) - (tally.abandoned if guard is None else 0),
        defaults=tally.defaults + settlement.defaults,
        abandoned=tally.abandoned,
        total_reward=_total_reward(state),
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
        voided=tally.voided,
        head_hash=state.head.hash,
        unconfirmed=state.unconfirmed.overdue,
        guard=guard,
        lift=lift,
        reward_interval=reward,
        surplus_interval=surplus,
    )


def _total_reward(state: State) -> float:
    """Sum of the rewards received, defaults included; a guard's are in its own status, by metric."""
    settlement = state.policy.settlement
    if isinstance(settlement.default_reward, tuple):
        return math.nan
    return state.tally.total_reward + settlement.defaults * settlement.default_reward


def _answer(state: State) -> Response | None:
    """What was answered to the alarm that is on."""
    alarm, answer = state.policy.alarm, state.answer
    return answer.response if alarm is not None and answer is not None and answer.alarm_round == alarm.round else None
