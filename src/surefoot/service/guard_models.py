"""What the API answers for a guard: its decisions, and where its share, its banks and both sides stand."""

from typing import Any, Literal

import msgspec

from surefoot.experiment import GuardAnswer, GuardStatus
from surefoot.records import Created, Guarded, ModeName, Source
from surefoot.safety.metric import Promise
from surefoot.service.event_heads import EventHead, event_head
from surefoot.service.numbers import finite
from surefoot.service.problems import Problem


class GuardDecided(msgspec.Struct, kw_only=True):
    """A guard's decision that is durable.

    action:       what is to be played, as it was given
    probability:  the probability with which the side that is played was chosen: the propensity to log
    share:        the probability with which the proposal was to be played; 0 where the baseline was held
    allowed:      the largest share that was proved to be safe; null for another visit of an open unit
    binds:        the metric that allowed least; null likewise
    margin:       what is left above the floor at worst, in units of the highest reward; null likewise
    is_visit:     another visit of an open unit, which keeps its side and its round
    is_held:      the baseline was to be played whatever the coin said
    head:         the receipt
    """

    decision_id: str
    action: Any
    source: Source
    probability: float
    share: float
    unit: str | None
    allowed: float | None
    binds: str | None
    margin: float | None
    mode: ModeName
    round: int
    time: float
    is_repeat: bool
    is_visit: bool
    is_held: bool
    is_fallback: bool
    explanation: str
    is_voided: bool = False
    head: EventHead | None = None


class GuardDecisionRead(GuardDecided, kw_only=True):
    """A guard's decision, what was asked, the coin, and what every bank held, as the journal holds them.

    draw:   the coin, uniform in [0, 1): the proposal is played where it lies below `share`; null where none was drawn
    proof:  one bank for each metric; null for another visit of an open unit
    """

    asked: dict[str, Any]
    draw: float | None
    proof: list[dict[str, Any]] | None


class GuardOutcome(msgspec.Struct, omit_defaults=True):
    """One entry of a guard's batch: the decision, or the problem."""

    decision: GuardDecided | None = None
    problem: Problem | None = None


class GuardOutcomes(msgspec.Struct):
    """The answers to a batch of a guard's decisions, in order."""

    results: list[GuardOutcome]


class MetricStanding(msgspec.Struct):
    """Where one metric of a guard stands; means and lift are null before both sides have a reward.

    kind, alpha:    at least (1 - alpha) of the baseline's is kept ("floor"), or at most (1 + alpha) reached ("ceiling")
    bank:           what may be spent, in the metric's own units; rounds without a reward count at their worst
    learner_mean, baseline_mean:  of the rewards that each side has brought
    lift:           by which share the learner's mean lies above the baseline's; misled where rewards change over time
    lift_low, lift_high: how much more a proposal earned on average, in the metric's own units: 95% at all times at once
    """

    name: str
    kind: Literal["floor", "ceiling"]
    alpha: float
    bank: float
    binds: bool
    learner_mean: float | None
    baseline_mean: float | None
    lift: float | None
    lift_low: float
    lift_high: float


class GuardStanding(msgspec.Struct):
    """Where a guard stands.

    promise:  whether the floor is kept on the mean over the guard's coins, or on what was played
    share:    the probability with which the next proposal would be played, were the baseline not held
    allowed:  the largest share that is proved to be safe
    binds:    the metric that allows least
    """

    promise: Promise
    share: float
    allowed: float
    binds: str
    metrics: list[MetricStanding]
    visits: int
    open_units: int


def guard_decided(answer: GuardAnswer) -> GuardDecided:
    """A guard's decision as the API tells it."""
    record = answer.record
    gate = record.certificate if isinstance(record, Guarded) else None
    return GuardDecided(
        decision_id=record.decision_id,
        action=answer.action,
        source=record.source,
        probability=answer.probability,
        share=record.share,
        unit=answer.unit,
        allowed=None if gate is None else gate.allowed,
        binds=None if gate is None else gate.binds,
        margin=finite(answer.margin),
        mode=record.mode,
        round=record.round,
        time=answer.time,
        is_repeat=answer.is_repeat,
        is_visit=answer.is_visit,
        is_held=record.is_held,
        is_fallback=record.is_fallback,
        explanation=answer.explain(),
        is_voided=answer.voided is not None,
        head=event_head(answer.head),
    )


def guard_decision_read(answer: GuardAnswer) -> GuardDecisionRead:
    """A guard's decision with everything there is."""
    record, told = answer.record, guard_decided(answer)
    return GuardDecisionRead(
        **{name: getattr(told, name) for name in told.__struct_fields__},
        asked=msgspec.to_builtins(record.asked),
        draw=record.draw,
        proof=msgspec.to_builtins(record.certificate.banks) if isinstance(record, Guarded) else None,
    )


def guard_standing(status: GuardStatus, created: Created) -> GuardStanding:
    """A guard's status as the API tells it."""
    return GuardStanding(
        promise=status.promise,
        share=status.share,
        allowed=status.allowed,
        binds=status.binds,
        metrics=[_metric(name, status, created.settings) for name in status.banks],
        visits=status.visits,
        open_units=status.open_units,
    )


def _metric(name: str, status: GuardStatus, settings: dict[str, Any]) -> MetricStanding:
    declared = (settings["metrics"] or {}).get(name, {"kind": "floor", "alpha": settings["alpha"]})
    return MetricStanding(
        name=name,
        kind=declared["kind"],
        alpha=declared["alpha"],
        bank=status.banks[name],
        binds=name == status.binds,
        learner_mean=finite(status.learner_means[name]),
        baseline_mean=finite(status.baseline_means[name]),
        lift=finite(status.lifts[name]),
        lift_low=status.lift_intervals[name][0],
        lift_high=status.lift_intervals[name][1],
    )
