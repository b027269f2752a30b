"""Events as records: what a payload holds, or why it cannot be read.

A newer minor version may add fields to a record, and an older one passes over them: so servers of one journal can be
updated one after the other. Whatever changes what a state is comes as a new kind of event, which is not passed over.
"""

import re
from typing import Any, TypeVar

import msgspec

from surefoot.errors import JournalSchemaError
from surefoot.journal import Event, Journal, View
from surefoot.records import DECISION, GUARDED, SEALED, SHARDED, VISIT, Created, Record

R = TypeVar("R", bound=Record)
DECISIONS = (DECISION, GUARDED, VISIT)
REFERENCE = re.compile(r"([0-9]{11,18})\.[0-9a-f]{64}")  # of a sealed decision: its number, and its commitment
MOST_NEW = 100  # fields of one event that may be passed over
UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.+?)`(?: - at `(?P<path>.+)`)?")


def decode(event: Event, kind: type[R]) -> R:
    """The record that an event holds."""
    try:
        return msgspec.json.decode(event.payload, type=kind)
    except msgspec.MsgspecError as error:
        first = error
    try:
        return _without_new(event.payload, kind)
    except msgspec.MsgspecError:
        raise JournalSchemaError(
            f"Event {event.number} must hold a {event.kind}, but cannot be read as one ({first}). "
            "It was written by a newer surefoot, or by something else."
        ) from first


def _without_new(payload: bytes, kind: type[R]) -> R:
    """The same without the fields that this version does not know."""
    found = msgspec.json.decode(payload)
    for _ in range(MOST_NEW):
        try:
            return msgspec.json.decode(msgspec.json.encode(found), type=kind)
        except msgspec.ValidationError as error:
            unknown = UNKNOWN.fullmatch(str(error))
            if unknown is None:
                raise
            for place in _places(found, unknown["path"] or "$"):
                place.pop(unknown["field"], None)
    raise msgspec.ValidationError(f"More than {MOST_NEW} fields are unknown.")


def _places(found: Any, path: str) -> list[Any]:
    """The objects at a path as msgspec writes it: $.asked, $.pieces[...].fact."""
    places = [found]
    for name, index in re.findall(r"\.(\w+)|(\[[^\]]*\])", path):
        inner = [place.get(name) if name and isinstance(place, dict) else place for place in places]
        places = inner if not index else [one for place in inner for one in _values(place)]
    return [place for place in places if isinstance(place, dict)]


def _values(place: Any) -> Any:
    return place.values() if isinstance(place, dict) else place


def created_of(journal: Journal, name: str) -> Created:
    """What an experiment was created with."""
    return decode(next(journal.view(name).read(limit=1)), Created)


def is_hub(created: Created) -> bool:
    """Whether it is the ledger that shards share; the chain of each shard is another one."""
    return created.format == SHARDED and created.shard is None


class _Round(msgspec.Struct):
    round: int


class _Reference(msgspec.Struct):
    decision_id: str


def reference(decision: Event) -> str:
    """A decision's id in the chain: the caller's own where nothing is sealed."""
    return msgspec.json.decode(decision.payload, type=_Reference).decision_id


def find_reference(created: Created, view: View, ref: str) -> Event | None:
    """The decision of an id in the chain; of a sealed one the id begins with the event's number."""
    if created.format != SEALED:
        return view.find(f"d:{ref}")
    found = REFERENCE.fullmatch(ref)
    event = None if found is None else next(view.read(max(0, int(found[1]) - 1), limit=1), None)
    return event if event is not None and event.kind in DECISIONS and reference(event) == ref else None


def round_of(decision: Event) -> int:
    """The round of a decision, without reading the rest of it."""
    return msgspec.json.decode(decision.payload, type=_Round).round
