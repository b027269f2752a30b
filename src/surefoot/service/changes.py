"""Who did what: the words of people in an experiment's chain, newest first."""

from collections.abc import Callable
from typing import Any

import msgspec

from surefoot.experiment.sealing import callers_id
from surefoot.journal import Event, View
from surefoot.rounds import decode, events

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
    newest_of = [event for kind, (most, _, _) in KINDS.items() for event in view.newest_of(kind, min(most, limit))]
    newest = sorted(newest_of, key=lambda event: -event.number)[:limit]
    created = decode(next(view.read(limit=1)), events.Created)
    return [_change(event, created, view) for event in newest]


def _change(event: Event, created: events.Created, view: View) -> Change:
    _, kind, words = KINDS[event.kind]
    record: Any = decode(event, kind)
    text = words(record)
    if event.kind in OF_DECISIONS:
        text = f"Decision {callers_id(created, view, record.decision_id)}: {text}"
    origin = getattr(record, "origin", None)
    reason = getattr(record, "reason", "") if origin is None else origin.reason
    return Change(event.number, event.time, event.kind, text, getattr(record, "by", ""), reason)


def _created(record: events.Created) -> str:
    if record.origin is None:
        return f"Created, in mode {record.mode}."
    corrected = len(record.origin.corrections)
    right = f", {corrected:,} of their rewards corrected" if corrected else ""
    return f"Forked from {record.origin.experiment}, with {record.origin.rounds:,} of its rounds{right}."


def _mode(record: events.Mode) -> str:
    return (
        f"Restored, {record.lost:,} events lost; mode {record.mode}."
        if record.lost
        else f"Mode changed to {record.mode}."
    )


def _corrected(record: events.Corrected) -> str:
    values = [
        f"{float(value):g}" if name == events.METRIC else f"{name} {float(value):g}"
        for name, value in record.values.items()
    ]
    return f"reward corrected to {', '.join(values)}."


# How many are shown at most, what they hold, and in which words.
KINDS: dict[str, tuple[int, type[Any], Callable[[Any], str]]] = {
    events.CREATED: (1, events.Created, _created),
    events.MODE: (100, events.Mode, _mode),
    events.ACKNOWLEDGED: (100, events.Acknowledged, lambda record: f"Alarm answered: {record.response}."),
    events.ERASED: (100, events.Erased, lambda record: f"Private texts erased: {len(record.events):,}."),
    events.CORRECTED: (100, events.Corrected, _corrected),
    events.ABANDONED: (MOST_OF_CALLERS, events.Abandoned, lambda _: "settled without its reward."),
    events.VOIDED: (MOST_OF_CALLERS, events.Voided, lambda _: "moved to what was really played."),
}
OF_DECISIONS = (events.CORRECTED, events.ABANDONED, events.VOIDED)
