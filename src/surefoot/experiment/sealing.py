"""Sealing: what is about people stays out of the chain, so that it can be erased and the mathematics still be audited.

In a sealed experiment the chain holds a decision's features, its proof and its reward, under a *reference* in place of
its id: the event's number, and the commitment to a private text, which has the id, the names of actions, the unit and
the context (of a guard the actions themselves, too; the chain has salted hashes of them, by which one can tell whether
they were the same). State, snapshots and events know the reference alone. Answers are given in the caller's own words
as long as the text is there; of one that was erased they have the reference.
"""

import hashlib
import re
import secrets
from typing import Any

import msgspec

from surefoot.errors import InputError
from surefoot.journal import Event, View, canonical
from surefoot.journal.private_text import PrivateText, by_alias, new_salt
from surefoot.rounds import decode
from surefoot.rounds.events import ABANDONED, ROUND, VISIT, Created, Voided, reward_key

REFERENCE = re.compile(r"([0-9]{11,18})\.[0-9a-f]{64}")  # of a sealed decision: its number, and its commitment
PERSON = "person"  # the field of a context that says whom the decision is about


class RowsText(msgspec.Struct, omit_defaults=True):
    """What the private text of a decision over rows holds."""

    decision_id: str
    actions: list[str] | None = None
    context: dict[str, Any] | None = None

    def words(self) -> dict[str, Any]:
        """The fields of the request that the chain does not hold."""
        return {"actions": self.actions, "context": self.context}


class PairText(msgspec.Struct, omit_defaults=True):
    """What the private text of a guard's decision holds."""

    decision_id: str
    context: dict[str, Any] | None = None
    unit: str | None = None
    baseline: Any = None
    proposal: Any = None

    def words(self) -> dict[str, Any]:
        """The fields of the request that the chain does not hold."""
        return {"context": self.context, "unit": self.unit, "baseline": self.baseline, "proposal": self.proposal}


class _Reference(msgspec.Struct):
    decision_id: str


class _Unit(msgspec.Struct, frozen=True):
    unit: str | None = None


class _RequestUnit(msgspec.Struct):
    request: _Unit = _Unit()


class _Number(msgspec.Struct):
    round: int


def reference(decision: Event) -> str:
    """A decision's id in the chain: the caller's own where nothing is sealed."""
    return msgspec.json.decode(decision.payload, type=_Reference).decision_id


def round_number(decision: Event) -> int:
    """The round of a decision, without reading the rest of it."""
    return msgspec.json.decode(decision.payload, type=_Number).round


def find_reference(created: Created, view: View, ref: str) -> Event | None:
    """The decision of an id in the chain; of a sealed one the id begins with the event's number."""
    if not created.is_sealed:
        return view.find(f"d:{ref}")
    match = REFERENCE.fullmatch(ref)
    event = None if match is None else next(view.read(max(0, int(match[1]) - 1), limit=1), None)
    return event if event is not None and event.kind in (ROUND, VISIT) and reference(event) == ref else None


def find_decision(created: Created, view: View, decision_id: str) -> Event | None:
    """The decision of a caller's id, or of a reference, which is all that is left once the id is erased."""
    if not created.is_sealed:
        return view.find(f"d:{decision_id}")
    return view.find(by_alias(decision_id)) or find_reference(created, view, decision_id)


def new_reference(view: View, private: PrivateText) -> str:
    """The reference of the decision that is about to be appended; by its number, so that indexes grow at one end."""
    return f"{view.head.number + 1:011d}.{private.commitment()}"


def stranger(created: Created, decision_id: str) -> str:
    """How an id that no decision has may be written down."""
    return hashlib.sha256(new_salt() + decision_id.encode()).hexdigest() if created.is_sealed else decision_id


def callers_id(created: Created, view: View, ref: str) -> str:
    """The id that a caller gave to the decision of a reference; the reference where it is erased."""
    event = find_reference(created, view, ref)
    private = None if event is None else view.private(event.number)
    return ref if private is None or private.alias is None else private.alias


def seal_voided(record: Voided, private: PrivateText | None) -> tuple[Voided, PrivateText | None]:
    """What a guard really played, as the chain holds it, and the text; the baseline needs none."""
    if private is None or record.action is None or isinstance(record.action, int):
        return record, None
    text = PrivateText(None, private.person, new_salt(), canonical(record.action))
    return msgspec.structs.replace(record, action=text.commitment()), text


def find_rewards(view: View, ref: str) -> list[Event]:
    """What settled a decision so far: its rewards, part by part, or the word that it was abandoned."""
    accepted = list[Event]()
    while (event := view.find(reward_key(ref, len(accepted)))) is not None:
        accepted.append(event)
        if event.kind == ABANDONED:
            break
    return accepted


def find_voided(view: View, ref: str) -> Voided | None:
    """What was really played, in the caller's own words, where the decision of this reference was voided."""
    event = view.find(f"v:{ref}")
    if event is None:
        return None
    record, private = decode(event, Voided), view.private(event.number)
    return record if private is None else msgspec.structs.replace(record, action=msgspec.json.decode(private.text))


def check_unsealed(decision_id: str) -> None:
    """Raise where a caller's id could be taken for a reference."""
    if REFERENCE.fullmatch(decision_id):
        raise InputError(
            f"`decision_id` must not look like a sealed decision's reference, but got {decision_id!r:.80}: it would "
            "hide the one that is known by it alone."
        )


def person_of(context: dict[str, Any] | None) -> str | None:
    """Whom a context says that a decision is about."""
    person = None if context is None else context.get(PERSON)
    return None if person is None else read_person(person, "`person` of a context")


def read_person(person: Any, what: str) -> str:
    """Whom a decision is about, as it is kept."""
    if not isinstance(person, str | int) or not str(person).isprintable() or not 0 < len(str(person)) <= 200:
        raise InputError(f"{what} must be 1 to 200 printable characters, but got {person!r:.80}.")
    return str(person)


def unit_reference(unit: str, view: View) -> str:
    """A unit's name in the chain, which it keeps as long as any of its visits has its text."""
    # The newest are enough, but where the last words were all that something else was played.
    for most in (8, None):
        for number in reversed(view.about(unit, newest=most)):
            (event,) = view.page(number - 1, 1)
            known = msgspec.json.decode(event.payload, type=_RequestUnit).request.unit
            if known is not None:
                return known
    return secrets.token_hex(16)
