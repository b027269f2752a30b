"""The verb `decide` of a guard: look up the id, draw the coin, write it down, and only then answer."""

import math

from surefoot import records
from surefoot.errors import DecisionConflictError, SurefootError
from surefoot.experiment.answer import Answer
from surefoot.experiment.guard_answer import GuardAnswer
from surefoot.experiment.guard_question import ReadGuarded
from surefoot.experiment.sealing import is_sealed, new_reference, opened, read_decision, reference, seal_guarded
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.experiment.void import fall_back, find_voided
from surefoot.journal import Event, View
from surefoot.journal.private_text import PrivateText
from surefoot.policies import GuardDecision
from surefoot.safety.bank_proof import BankProof
from surefoot.safety.guard_certificate import GuardCertificate


def decide_guarded(turn: UnitOfWork, question: ReadGuarded) -> GuardAnswer | SurefootError:
    """The decision, or the error that refuses it, returned so that the rest of the transaction still counts."""
    found = turn.transaction.find(question.key)
    if found is not None:
        return _again(turn, found, question)
    guard = turn.state.guard
    is_held = question.is_fallback or turn.state.mode != "guarded"
    rounds = guard.rounds
    try:
        kept, asked, private = _sealed(turn, question)
        decision = guard.decide(
            baseline=asked.baseline,
            proposal=asked.proposal,
            unit=asked.unit,
            prediction=asked.prediction,
            hold=is_held,
        )
    except SurefootError as error:  # the guard has changed nothing
        return error
    # No new round: the unit is open, and its coin fell before.
    if decision.round <= rounds:
        return _visit(turn, question, decision, is_held, (kept, asked, private))
    record = records.Guarded(
        decision_id=kept,
        round=decision.round,
        mode=turn.state.mode,
        asked=asked,
        source=decision.source,
        share=decision.share,
        draw=_coin(decision.draw),
        certificate=_written(decision.certificate),
        is_held=is_held,
        is_fallback=question.is_fallback,
    )
    event = turn.write(records.GUARDED, record, question.key if private is None else None, private)
    turn.state.decided(record, event.time)
    return GuardAnswer(opened(record, private), event.time, head=event.head)


def _sealed(turn: UnitOfWork, question: ReadGuarded) -> tuple[str, records.AskedGuard, PrivateText | None]:
    """The decision's id and its question as the chain holds them, and what is kept beside."""
    if not is_sealed(turn.state.created):
        return question.decision_id, question.asked, None
    asked, private = seal_guarded(question.decision_id, question.asked, turn.transaction)
    return new_reference(turn.transaction, private), asked, private


def answer_of(
    event: Event, view: View, voided: records.Voided | None, *, is_repeat: bool = True
) -> Answer | GuardAnswer:
    """The decision that an event holds, of either kind, in the caller's own words."""
    record = read_decision(event, view)
    if isinstance(record, records.DecisionRecord):
        return Answer(record, event.time, is_repeat, voided, event.head)
    return GuardAnswer(record, event.time, is_repeat, voided, event.head)


def _again(turn: UnitOfWork, found: Event, question: ReadGuarded) -> GuardAnswer | SurefootError:
    record = read_decision(found, turn.transaction)
    if record.asked != question.asked:
        return DecisionConflictError(
            f"A decision_id must stand for one question, but {question.decision_id!r} was asked before with another "
            "baseline, proposal, unit, prediction or context. Use a new id for a new question."
        )
    if question.is_fallback:
        moved = fall_back(turn, question.decision_id, record.round, question.by)
        if isinstance(moved, SurefootError):
            return moved
    assert isinstance(record, records.Visit)
    voided = find_voided(turn.transaction, reference(found))
    return GuardAnswer(record, found.time, True, voided, found.head)


def _visit(
    turn: UnitOfWork,
    question: ReadGuarded,
    decision: GuardDecision,
    is_held: bool,
    sealed: tuple[str, records.AskedGuard, PrivateText | None],
) -> GuardAnswer:
    """A unit keeps its side; where the baseline is to be held, its round goes on, and its visit plays the baseline."""
    kept, asked, private = sealed
    record = records.Visit(
        decision_id=kept,
        round=decision.round,
        mode=turn.state.mode,
        asked=asked,
        source=decision.source,
        share=0.0 if is_held else decision.share,
        draw=None if is_held else _coin(decision.draw),
        is_held=is_held,
        is_fallback=question.is_fallback,
    )
    event = turn.write(records.VISIT, record, question.key if private is None else None, private)
    turn.state.visited(record)
    return GuardAnswer(opened(record, private), event.time, head=event.head)


def _coin(draw: float) -> float | None:
    return None if math.isnan(draw) else draw


def _written(certificate: GuardCertificate) -> records.GuardCertificateRecord:
    return records.GuardCertificateRecord(
        allowed=certificate.allowed,
        binds=certificate.binds,
        banks=[_bank(bank) for bank in certificate.proof.banks],
    )


def _bank(bank: BankProof) -> records.Bank:
    return records.Bank(
        metric=bank.metric,
        log_wealth=list(bank.log_wealth),
        bound=bank.bound,
        owed=bank.owed,
        carried=bank.available,
        cost=bank.cost,
        coins=bank.coins,
    )
