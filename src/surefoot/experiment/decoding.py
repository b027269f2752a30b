"""Events as records: what a payload holds, or why it cannot be read."""

from typing import TypeVar

import msgspec

from surefoot.errors import JournalSchemaError
from surefoot.journal import Event
from surefoot.records import Record, Source

R = TypeVar("R", bound=Record)


def decode(event: Event, kind: type[R]) -> R:
    """The record that an event holds."""
    try:
        return msgspec.json.decode(event.payload, type=kind)
    except msgspec.MsgspecError as error:
        raise JournalSchemaError(
            f"Event {event.number} must hold a {event.kind}, but cannot be read as one ({error}). "
            "It was written by a newer surefoot, or by something else."
        ) from error


class _Round(msgspec.Struct):
    round: int


class _Side(msgspec.Struct):
    round: int
    source: Source


def round_of(decision: Event) -> int:
    """The round of a decision, without reading the rest of it."""
    return msgspec.json.decode(decision.payload, type=_Round).round


def side_of(decision: Event) -> tuple[int, bool]:
    """The round of a decision, and whether the learner played."""
    found = msgspec.json.decode(decision.payload, type=_Side)
    return found.round, found.source == "learner"
