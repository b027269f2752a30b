"""Sealing: what is about people stays out of the chain, so that it can be erased and the mathematics still be audited.

In a sealed experiment the chain holds a decision's features, its proof and its reward, under a *reference* in place of
its id: the event's number, and the commitment to a private text, which has the id, the names of actions, the unit and
the context (of a guard the actions themselves, too; the chain has salted hashes of them, by which one can tell whether
they were the same). State, snapshots and events know the reference alone. Answers are given in the caller's own words
as long as the text is there; of one that was erased they have the reference.
"""

import hashlib
import secrets
from typing import Any, TypeVar

import msgspec

from surefoot.errors import InputError
from surefoot.experiment.decoding import REFERENCE, decode, find_reference
from surefoot.experiment.decoding import reference as reference
from surefoot.experiment.question import key_of
from surefoot.journal import Event, View, canonical
from surefoot.journal.events import check_text, encode_sorted
from surefoot.journal.private_text import PrivateText, new_salt
from surefoot.records import (
    DECISION,
    GUARDED,
    SEALED,
    Asked,
    AskedGuard,
    Created,
    DecisionRecord,
    Guarded,
    Visit,
    Voided,
)

D = TypeVar("D", DecisionRecord, Visit)
PERSON = "person"  # the field of a context that says whom the decision is about


class DecisionText(msgspec.Struct, omit_defaults=True):
    """What a decision's private text holds."""

    decision_id: str
    actions: list[str] | None = None
    context: dict[str, Any] | None = None
    unit: str | None = None
    baseline: Any = None
    proposal: Any = None


class _Unit(msgspec.Struct, frozen=True):
    unit: str | None = None


class _AskedUnit(msgspec.Struct):
    asked: _Unit = _Unit()


def is_sealed(created: Created) -> bool:
    """Whether an experiment keeps what is about people beside its chain."""
    return created.format == SEALED


def find_decision(created: Created, view: View, decision_id: str) -> Event | None:
    """The decision of a caller's id, or of a reference, which is all that is left once the id is erased."""
    found = view.find(key_of(decision_id, sealed=is_sealed(created)))
    if found is None and is_sealed(created):
        found = find_reference(created, view, decision_id)
    return found


def stranger(created: Created, decision_id: str) -> str:
    """How an id that no decision has may be written down."""
    return hashlib.sha256(new_salt() + decision_id.encode()).hexdigest() if is_sealed(created) else decision_id


def new_reference(view: View, private: PrivateText) -> str:
    """The reference of the decision that is about to be appended; by its number, so that indexes grow at one end."""
    return f"{view.head.number + 1:011d}.{private.commitment()}"


def seal(decision_id: str, asked: Asked) -> PrivateText:
    """What the chain does not hold of a decision's question (`sealed_question`)."""
    _check_id(decision_id)
    text = DecisionText(decision_id, asked.actions, asked.context)
    return PrivateText(decision_id, _person(asked.context), new_salt(), encode_sorted(text))


def sealed_question(asked: Asked, features: list[list[float]] | None) -> Asked:
    """What the chain holds of it: all that the mathematics need."""
    return Asked(
        features=features, catalogue=asked.catalogue, baseline=asked.baseline, baseline_reward=asked.baseline_reward
    )


def seal_guarded(decision_id: str, asked: AskedGuard, view: View) -> tuple[AskedGuard, PrivateText]:
    """The same of a guard. A unit keeps its reference as long as any of its visits has its text."""
    _check_id(decision_id)
    text = DecisionText(decision_id, None, asked.context, asked.unit, asked.baseline, asked.proposal)
    if asked.unit is not None:
        check_text("unit", asked.unit, 200)
    person = _person(asked.context)
    if asked.unit is not None and person not in (None, asked.unit):
        raise InputError(
            f"`person` of a context must be the unit, {asked.unit!r:.80}, where there is one, but got {person!r:.80}. "
            "A decision is about one person, by whom it can be erased."
        )
    person = asked.unit or person
    private = PrivateText(decision_id, person, new_salt(), canonical(text))
    sealed = msgspec.structs.replace(
        asked,
        baseline=sealed_action(private.salt, asked.baseline),
        proposal=sealed_action(private.salt, asked.proposal),
        unit=None if asked.unit is None else _unit_reference(asked.unit, view),
        context=None,
    )
    return sealed, private


def sealed_action(salt: bytes, action: Any) -> str:
    """A guard's action as the chain holds it: equal for equal actions of one decision."""
    return hashlib.sha256(salt + b"action" + canonical(action)).hexdigest()


def opened(record: D, private: PrivateText | None) -> D:
    """A decision in the caller's own words, as far as they are there."""
    if private is None:
        return record
    text = msgspec.json.decode(private.text, type=DecisionText)
    if isinstance(record, DecisionRecord):
        asked: Any = msgspec.structs.replace(record.asked, actions=text.actions, context=text.context)
    else:
        asked = msgspec.structs.replace(
            record.asked, baseline=text.baseline, proposal=text.proposal, unit=text.unit, context=text.context
        )
    return msgspec.structs.replace(record, decision_id=text.decision_id, asked=asked)


def callers_id(created: Created, view: View, ref: str) -> str:
    """The id that a caller gave to the decision of a reference; the reference where it is erased."""
    event = find_reference(created, view, ref)
    private = None if event is None else view.private(event.number)
    return ref if private is None or private.alias is None else private.alias


def read_decision(event: Event, view: View) -> DecisionRecord | Visit:
    """A decision of any kind, in the caller's own words."""
    kind: Any = DecisionRecord if event.kind == DECISION else Guarded if event.kind == GUARDED else Visit
    found: DecisionRecord | Visit = opened(decode(event, kind), view.private(event.number))
    return found


def seal_voided(record: Voided, private: PrivateText | None) -> tuple[Voided, PrivateText | None]:
    """What a guard really played, as the chain holds it, and the text; the baseline needs none."""
    if private is None or record.action is None:
        return record, None
    text = PrivateText(None, private.person, new_salt(), canonical(record.action))
    return msgspec.structs.replace(record, action=text.commitment()), text


def read_voided(event: Event, view: View) -> Voided:
    """What was really played, in the caller's own words."""
    record, private = decode(event, Voided), view.private(event.number)
    return record if private is None else msgspec.structs.replace(record, action=msgspec.json.decode(private.text))


def _check_id(decision_id: str) -> None:
    if REFERENCE.fullmatch(decision_id):
        raise InputError(
            f"`decision_id` must not look like a sealed decision's reference, but got {decision_id!r:.80}: it would "
            "hide the one that is known by it alone."
        )


def _person(context: dict[str, Any] | None) -> str | None:
    found = None if context is None else context.get(PERSON)
    return None if found is None else read_person(found, "`person` of a context")


def read_person(person: Any, what: str) -> str:
    """Whom a decision is about, as it is kept."""
    if not isinstance(person, str | int) or not str(person).isprintable() or not 0 < len(str(person)) <= 200:
        raise InputError(f"{what} must be 1 to 200 printable characters, but got {person!r:.80}.")
    return str(person)


def _unit_reference(unit: str, view: View) -> str:
    # The newest are enough, but where the last words were all that something else was played.
    for most in (8, None):
        for number in reversed(view.about(unit, newest=most)):
            (event,) = view.page(number - 1, 1)
            if (found := msgspec.json.decode(event.payload, type=_AskedUnit).asked.unit) is not None:
                return found
    return secrets.token_hex(16)
