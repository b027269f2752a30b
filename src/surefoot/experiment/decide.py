"""The verb `decide`: look up the id, ask the policy, write, and only then answer."""

import math
from functools import partial
from typing import Any

import msgspec

from surefoot import records
from surefoot.errors import DecisionConflictError, InputError, SurefootError
from surefoot.experiment.answer import Answer
from surefoot.experiment.certificate_records import certified, decided
from surefoot.experiment.confirm import confirm
from surefoot.experiment.new_decision import NewDecision, Verdict
from surefoot.experiment.question import Read
from surefoot.experiment.sealing import is_sealed, new_reference, opened, reference, seal, sealed_question
from surefoot.experiment.state import decode
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.experiment.void import fall_back, find_voided
from surefoot.journal import Event
from surefoot.journal.private_text import PrivateText
from surefoot.linear.actions import Catalogue
from surefoot.policies import Decision


def decide(turn: UnitOfWork, question: Read) -> Answer | SurefootError:
    """The decision, or the error that refuses it, returned so that the rest of the transaction still counts."""
    if question.confirms:
        confirm(turn, question.confirms)
    # Before anything else: a retry gets what was decided, whatever holds by now.
    found = turn.transaction.find(question.key)
    if found is not None:
        return _again(turn, found, question)
    refused = _refuse_actions(turn, question)
    if refused is not None:
        return refused
    is_held = question.is_fallback or turn.state.mode != "guarded"
    told = question.told
    features: Any = question.rows if question.catalogue is None else question.catalogue
    try:
        private = seal(question.decision_id, told) if is_sealed(turn.state.created) else None
        decision = turn.state.linear.decide(
            features, baseline=told.baseline, baseline_reward=told.baseline_reward, hold=is_held
        )
    except SurefootError as error:  # the policy has changed nothing
        return error
    # Only now: a question that is refused leaves nothing in the journal.
    if question.catalogue is not None:
        _register(turn, question.catalogue)
    return _written(turn, question, decision, is_held, private)


def _again(turn: UnitOfWork, found: Event, question: Read) -> Answer | SurefootError:
    record = opened(decode(found, records.DecisionRecord), turn.transaction.private(found.number))
    if record.asked != question.asked:
        return DecisionConflictError(
            f"A decision_id must stand for one question, but {question.decision_id!r} was asked before with other "
            "features, actions, baseline or context. Use a new id for a new question."
        )
    if question.is_fallback:
        moved = fall_back(turn, question.decision_id, record.round, question.by)
        if isinstance(moved, SurefootError):
            return moved
    ref = reference(found)
    within = turn.state.created.confirm_within if turn.state.unconfirmed.awaits(ref) else None
    return Answer(record, found.time, True, find_voided(turn.transaction, ref), found.head, within)


def _refuse_actions(turn: UnitOfWork, question: Read) -> InputError | None:
    if question.rows is not None or question.catalogue is not None:
        return None
    asked, arms = question.asked, turn.state.created.settings.get("arms")
    if arms is None:
        return InputError("`features` must be given: one row per action. Only policies over plain arms need none.")
    if asked.actions is not None and len(asked.actions) != arms:
        return InputError(f"`actions` must name each of {arms} arms, but got {len(asked.actions)} names.")
    return None


def _register(turn: UnitOfWork, catalogue: Catalogue) -> None:
    """Write a catalogue down before the first decision that refers to it."""
    key = f"c:{catalogue.digest}"
    if catalogue.digest not in turn.state.catalogues and turn.transaction.find(key) is None:
        rows = records.CatalogueRecord(digest=catalogue.digest, rows=catalogue.rows.tolist())
        turn.write(records.CATALOGUE, rows, key)
    turn.state.remember(catalogue)


def _written(
    turn: UnitOfWork, question: Read, decision: Decision, is_held: bool, private: PrivateText | None
) -> Answer:
    state, round_, action, source = turn.state, decision.round, decision.action, decision.source
    draw = None if math.isnan(decision.draw) else decision.draw
    # With any other radius the number of observations determines the set.
    with_sets = state.created.settings.get("radius") == "dual"
    ref, key = question.decision_id, question.key
    found: tuple[Verdict | records.CertificateRecord, bytes] | None = None
    if private is None:
        asked = question.asked
    else:
        asked = question.told
        ref, key = new_reference(turn.transaction, private), None  # type: ignore[assignment]
        if draw is None and not with_sets and _is_plain(question):
            baseline: Any = question.told.baseline
            found = decided(decision, question.rows, baseline, ref, is_held=is_held, mode=state.mode)  # type: ignore[arg-type]
    if found is None:
        kept = asked if private is None else sealed_question(asked, question.features)
        found = _recorded(decision, kept, ref, is_held, question.is_fallback, state.mode, draw, with_sets)
    told, payload = found
    event = turn.append(records.DECISION, payload, key, private)
    made = NewDecision(
        question.decision_id,
        round_,
        state.mode,
        asked,
        action,
        source,
        told,
        is_held,
        question.is_fallback,
        draw,
        partial(_read, event, private),
    )
    state.decided(made, event.time, ref)
    within = state.created.confirm_within if source == "learner" else None
    return Answer(made, event.time, False, None, state.head, within)


def _is_plain(question: Read) -> bool:
    """Whether the chain holds nothing of it but rows and the place of the baseline."""
    told = question.told
    is_round = told.baseline is not None and told.baseline_reward is None and not question.is_fallback
    return question.rows is not None and is_round


def _recorded(
    decision: Decision,
    asked: records.Asked,
    ref: str,
    is_held: bool,
    is_fallback: bool,
    mode: records.ModeName,
    draw: float | None,
    with_sets: bool,
) -> tuple[Verdict | records.CertificateRecord, bytes]:
    """What is told of the certificate, and the record of the round as it is written."""
    told, certificate = certified(decision, with_sets=with_sets)
    record = records.DecisionRecord(
        decision_id=ref,
        round=decision.round,
        mode=mode,
        asked=asked,
        action=decision.action,
        source=decision.source,
        certificate=certificate,
        is_held=is_held,
        is_fallback=is_fallback,
        draw=draw,
    )
    is_told = isinstance(certificate, msgspec.Raw)  # by the core, which refuses rows that are not finite
    return told, records.encode_finite(record) if is_told else records.encode(record)


def _read(event: Event, private: PrivateText | None) -> records.DecisionRecord:
    return opened(decode(event, records.DecisionRecord), private)
