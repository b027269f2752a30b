"""What the API answers, as plain structs; and how they are made of what an experiment says."""

import math
from typing import Any

import msgspec

from surefoot.experiment import Answer, Receipt, Status
from surefoot.experiment.modes import ALLOWED
from surefoot.records import Created, ModeName, Reason, Response, Source
from surefoot.safety.certificate import CONDITION
from surefoot.service.event_heads import EventHead, event_head
from surefoot.service.guard_models import GuardStanding, guard_standing
from surefoot.service.lift_models import LiftStanding, lift_standing
from surefoot.service.numbers import ends, finite
from surefoot.service.problems import REFUSED, Problem, problem
from surefoot.service.request_models import RewardValue


class Certificate(msgspec.Struct):
    """What the gate saw. The learner was allowed exactly where `margin` is at least 0.

    guaranteed: earned at least, in the gate's own account, if the proposal is played (with probability 1 - delta, if
                what was declared is true); null: nothing is, for the alarm is on
    required:   what must be earned at least; null: no floor is kept
    margin:     guaranteed - required; null where one of them is
    proposal:   the learner's choice, by index and by name
    """

    guaranteed: float | None
    required: float | None
    margin: float | None
    proposal: int
    proposal_id: str | None
    is_held: bool


class Decided(msgspec.Struct, kw_only=True):
    """A decision that is durable. `action` is the index, `action_id` the name of what is to be played.

    With `is_voided` they are of what was really played, which the certificate is not about. `head` is the receipt.
    Within `confirm_within` seconds it must be said that it was played; null where nobody asks for that.
    """

    decision_id: str
    action_id: str | None
    action: int
    source: Source
    mode: ModeName
    round: int
    time: float
    is_repeat: bool
    is_fallback: bool
    certificate: Certificate
    explanation: str
    is_voided: bool = False
    head: EventHead | None = None
    confirm_within: float | None = None


class DecisionRead(Decided, kw_only=True):
    """A decision, what was asked, and the whole proof, as the journal holds them."""

    asked: dict[str, Any]
    proof: dict[str, Any]


class Received(msgspec.Struct):
    """What became of a reward: `refused` is null where it was accepted. `head` is the receipt."""

    decision_id: str
    value: RewardValue
    is_repeat: bool
    refused: Reason | None = None
    head: EventHead | None = None


class Abandoned(msgspec.Struct):
    """A decision whose reward will never be learned; `is_repeat` where that was said before. `head` is the receipt."""

    decision_id: str
    is_repeat: bool
    head: EventHead


class Voided(msgspec.Struct):
    """A round as it was played; `is_moved` is false where nothing was to be moved, or that was said before.

    `head` is the receipt.
    """

    decision_id: str
    is_moved: bool
    head: EventHead


class Correction(msgspec.Struct):
    """A reward as it counts now; `is_changed` is false where it had that value already. `head` is the receipt."""

    decision_id: str
    value: float
    is_changed: bool
    head: EventHead


class Confirmation(msgspec.Struct):
    """How many rounds waited for the word that they were played. `head` is the receipt."""

    confirmed: int
    head: EventHead


class Erasure(msgspec.Struct):
    """How many private texts were erased. `head` is the receipt.

    `is_on_disk` says that they are still in the log of a SQLite file, unreachable, since somebody reads the file; they
    leave it within seconds after that.
    """

    erased: int
    head: EventHead
    is_on_disk: bool = False


class Outcome(msgspec.Struct, omit_defaults=True):
    """One entry of a batch: the decision, or the problem."""

    decision: Decided | None = None
    problem: Problem | None = None


class RewardOutcome(msgspec.Struct, omit_defaults=True):
    """One entry of a batch: the receipt, or the problem."""

    receipt: Received | None = None
    problem: Problem | None = None


class Outcomes(msgspec.Struct):
    """The answers to a batch of decisions, in order."""

    results: list[Outcome]


class RewardOutcomes(msgspec.Struct):
    """The answers to a batch of rewards, in order."""

    results: list[RewardOutcome]


class Registered(msgspec.Struct):
    """A catalogue that decisions can refer to."""

    catalogue: str
    actions: int
    dim: int


class Summary(msgspec.Struct):
    """An experiment at a glance; numbers that do not exist yet are null.

    See `surefoot.experiment.Status` for what they mean. `guard` is there where the policy is one; then `floor` and
    `total_reward` are null, and margins are in units of the highest reward. `events` and `head_hash` are its head.
    """

    name: str
    policy: str
    mode: ModeName
    allowed_modes: list[ModeName]
    description: str
    time: float
    events: int
    head_hash: str
    rounds: int
    learner_rounds: int
    baseline_rounds: int
    held_rounds: int
    fallback_rounds: int
    learner_share: float
    allowed_share: float
    floor: float | None
    guaranteed: float | None
    margin: float | None
    proposed_margin: float | None
    worst_margin: float | None
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
    voided: int
    unconfirmed: int
    total_reward: float | None
    estimated_reward: float | None
    estimated_baseline: float | None
    refused: dict[str, int]
    is_refuted: bool
    alarm: str | None
    alarm_round: int
    alarm_answer: Response | None
    alarm_responses: list[Response]
    restarts: int
    promise_round: int
    debt: float
    lift: LiftStanding | None = None
    reward_interval: tuple[float | None, float | None] = (None, None)
    surplus_interval: tuple[float | None, float | None] = (None, None)
    guard: GuardStanding | msgspec.UnsetType = msgspec.UNSET


class Forked(msgspec.Struct):
    """A fork: the new experiment, how many rows it begins with, and what was not carried over, a sentence each."""

    experiment: Summary
    carried: int
    lost: list[str]


class DamagedExperiment(msgspec.Struct):
    """An experiment that cannot be read, and why."""

    name: str
    reason: str


class Experiments(msgspec.Struct):
    """All experiments, by name."""

    experiments: list[Summary]
    damaged: list[DamagedExperiment] = []


def decided(answer: Answer, explanation: str) -> Decided:
    """A decision as the API tells it."""
    record = answer.made
    return Decided(
        decision_id=record.decision_id,
        action_id=answer.action_id,
        action=answer.action,
        source=answer.source,
        mode=record.mode,
        round=record.round,
        time=answer.time,
        is_repeat=answer.is_repeat,
        is_fallback=record.is_fallback,
        certificate=_certificate(answer),
        explanation=explanation,
        is_voided=answer.voided is not None,
        head=event_head(answer.head),
        confirm_within=answer.confirm_within,
    )


def decision_read(answer: Answer) -> DecisionRead:
    """A decision with everything there is."""
    record = answer.record
    told = decided(answer, explained(answer))
    return DecisionRead(
        **{name: getattr(told, name) for name in told.__struct_fields__},
        asked=msgspec.to_builtins(record.asked),
        proof=msgspec.to_builtins(record.certificate.proof),
    )


def received(receipt: Receipt, value: RewardValue) -> Received | Problem:
    """A receipt for the value that was sent, or the problem that a refusal is."""
    if receipt.refused is not None:
        rule = " A guard takes values within their declared bounds." if isinstance(receipt.value, dict) else ""
        detail = f"Decision {receipt.decision_id!r:.80} got {value!r:.200}."
        return problem(REFUSED[receipt.refused], detail + rule * (receipt.refused == "out_of_range"))
    return Received(receipt.decision_id, value, receipt.is_repeat, head=event_head(receipt.head))


def summary(status: Status, created: Created) -> Summary:
    """A status as the API tells it."""
    found: dict[str, Any] = {
        name: finite(value) if isinstance(value := getattr(status, name), float) else value for name in status.__slots__
    }
    found["alarm_responses"] = list(status.alarm_responses)
    found["lift"] = lift_standing(status.lift)
    found |= {name: ends(getattr(status, name)) for name in ("reward_interval", "surplus_interval")}
    found["guard"] = msgspec.UNSET if status.guard is None else guard_standing(status.guard, created)
    allowed = list(ALLOWED[status.mode])
    return Summary(**found, allowed_modes=allowed, description=created.description)


def explained(answer: Answer) -> str:
    """Why, in a sentence that calls the proposal by the caller's own name."""
    sentence, names = answer.explain(), answer.made.asked.actions
    proposal = answer.made.certificate.proposal
    if names is None or not 0 <= proposal < len(names):
        return sentence
    return sentence.replace(f"action {proposal}", names[proposal], 1)


def brief(answer: Answer) -> str:
    """The same in short, without looking into the proof: quick enough for every answer."""
    record, margin = answer.made, answer.margin
    if record.source == "baseline" or answer.voided is not None or not math.isfinite(margin):
        return explained(answer)
    name = answer.action_id or f"action {answer.action}"
    return f"Played the learner: {name} leaves us at least {margin:.4g} above the floor; {CONDITION}."


def _certificate(answer: Answer) -> Certificate:
    record, names = answer.made, answer.made.asked.actions
    found = record.certificate
    return Certificate(
        guaranteed=finite(float(found.guaranteed)),
        required=finite(float(found.required)),
        margin=finite(found.margin),
        proposal=found.proposal,
        proposal_id=None if names is None or found.proposal < 0 else names[found.proposal],
        is_held=record.is_held,
    )
