"""The verb `decide` of a guard: look up the id, draw the coin, write it down, and only then answer."""

import math

from surefoot import records
from surefoot.errors import DecisionConflictError, SurefootError
from surefoot.experiment.decoding import decode
from surefoot.experiment.guard_answer import GuardAnswer
from surefoot.experiment.guard_question import ReadGuarded
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.experiment.void import FALLBACK, find_voided, void
from surefoot.journal import Event
from surefoot.policies import GuardDecision
from surefoot.safety.bank_proof import BankProof
from surefoot.safety.guard_certificate import GuardCertificate


def decide_guarded(turn: UnitOfWork, question: ReadGuarded) -> GuardAnswer | SurefootError:
    """The decision, or the error that refuses it, returned so that the rest of the transaction still counts."""
    found = turn.transaction.find(question.key)
    if found is not None:
        return _again(turn, found, question)
    guard, asked = turn.state.guard, question.asked
    is_held = question.is_fallback or turn.state.mode != "guarded"
    rounds = guard.rounds
    try:
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
        return _visit(turn, question, decision, is_held)
    record = records.Guarded(
        decision_id=question.decision_id,
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
    event = turn.write(records.GUARDED, record, question.key)
    turn.state.decided(record, event.time)
    return GuardAnswer(record, event.time, head=event.head)


def find_guarded(event: Event, voided: records.Voided | None = None, *, is_repeat: bool = True) -> GuardAnswer:
    """The answer that an event holds, and what was really played."""
    kind = records.Guarded if event.kind == records.GUARDED else records.Visit
    return GuardAnswer(decode(event, kind), event.time, is_repeat, voided, event.head)


def _again(turn: UnitOfWork, found: Event, question: ReadGuarded) -> GuardAnswer | SurefootError:
    answer = find_guarded(found)
    if answer.record.asked != question.asked:
        return DecisionConflictError(
            f"A decision_id must stand for one question, but {question.decision_id!r} was asked before with another "
            "baseline, proposal, unit, prediction or context. Use a new id for a new question."
        )
    if question.is_fallback:
        moved = void(turn, question.decision_id, None, FALLBACK, "")
        if isinstance(moved, SurefootError):
            return moved
    return find_guarded(found, find_voided(turn.transaction, question.decision_id))


def _visit(turn: UnitOfWork, question: ReadGuarded, decision: GuardDecision, is_held: bool) -> GuardAnswer:
    """A unit keeps its side; where the baseline is to be held, its round goes on, and its visit plays the baseline."""
    record = records.Visit(
        decision_id=question.decision_id,
        round=decision.round,
        mode=turn.state.mode,
        asked=question.asked,
        source=decision.source,
        share=0.0 if is_held else decision.share,
        draw=None if is_held else _coin(decision.draw),
        is_held=is_held,
        is_fallback=question.is_fallback,
    )
    event = turn.write(records.VISIT, record, question.key)
    turn.state.visited(record)
    return GuardAnswer(record, event.time, head=event.head)


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
