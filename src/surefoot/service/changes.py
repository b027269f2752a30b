"""Who did what: the words of people in an experiment's chain, newest first."""

from collections.abc import Callable
from typing import Any

import msgspec

from surefoot import records
from surefoot.experiment.decoding import decode
from surefoot.experiment.sealing import callers_id
from surefoot.journal import Event, View

MOST_OF_CALLERS = 5  # of what callers say all the time, so that it does not hide the rest


class Change(msgspec.Struct, frozen=True):
    """Something that somebody did or said; `by` is the owner of a token and its id, or what a command was told.

    event, time: where it stands in the chain, and when it was said
    """

    event: int
    time: float
    kind: str
    text: str
    by: str
    reason: str


class Changes(msgspec.Struct, frozen=True):
    """The newest first."""

    changes: list[Change]


def changes_of(view: View, limit: int) -> list[Change]:
    """The newest words of people, of all kinds."""
    found = [event for kind, (most, _) in KINDS.items() for event in view.newest_of(kind, min(most, limit))]
    newest = sorted(found, key=lambda event: -event.number)[:limit]
    created = decode(next(view.read(limit=1)), records.Created)
    return [_change(event, created, view) for event in newest]


def _change(event: Event, created: records.Created, view: View) -> Change:
    record: Any = decode(event, records.RECORDS[event.kind])
    text = KINDS[event.kind][1](record)
    if event.kind in OF_DECISIONS:
        text = f"Decision {callers_id(created, view, record.decision_id)}: {text}"
    origin = getattr(record, "origin", None)
    reason = getattr(record, "reason", "") if origin is None else origin.reason
    return Change(event.number, event.time, event.kind, text, getattr(record, "by", ""), reason)


def _created(record: records.Created) -> str:
    if record.origin is None:
        return f"Created, in mode {record.mode}."
    corrected = len(record.origin.corrections)
    told = f", {corrected:,} of their rewards corrected" if corrected else ""
    return f"Forked from {record.origin.experiment}, with {record.origin.rounds:,} of its rounds{told}."


# How many are shown at most, and in which words.
KINDS: dict[str, tuple[int, Callable[[Any], str]]] = {
    records.CREATED: (1, _created),
    records.MODE: (100, lambda record: f"Mode changed to {record.mode}."),
    records.ACKNOWLEDGED: (100, lambda record: f"Alarm answered: {record.response}."),
    records.ERASED: (100, lambda record: f"Private texts erased: {len(record.events):,}."),
    records.CORRECTED: (100, lambda record: f"reward corrected to {float(record.value):g}."),
    records.ABANDONED: (MOST_OF_CALLERS, lambda _: "settled without its reward."),
    records.VOIDED: (MOST_OF_CALLERS, lambda _: "moved to what was really played."),
}
OF_DECISIONS = (records.CORRECTED, records.ABANDONED, records.VOIDED)
