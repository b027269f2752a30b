"""Private texts of a sealed experiment: each is what its event commits to, or its erasure was written down."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from surefoot.audit.findings import AuditCounts, Findings
from surefoot.journal import View
from surefoot.journal.events import Event
from surefoot.journal.private_text import SALT_BYTES, PrivateText
from surefoot.rounds import Record, events

PAGE = 256


class _Actions(msgspec.Struct):
    baseline: msgspec.Raw = msgspec.Raw(b"null")
    proposal: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct):
    decision_id: str
    context: dict[str, Any] | None = None
    unit: str | None = None


class PrivateChecks:
    """Follows the texts of an experiment beside its events."""

    def __init__(self, view: View, findings: Findings, tally: AuditCounts) -> None:
        self._view, self._texts, self._findings, self._tally = view, _stream(view), findings, tally
        self._next = next(self._texts, None)
        self._missing, self._erased = set[int](), set[int]()

    def take(self, event: Event, record: Record) -> None:
        """Check the text of an event that commits to one."""
        text = self._text_of(event.number)
        if text is not None and len(text.salt) != SALT_BYTES:
            self._findings.add(event.number, "private", "its salt has another length: text may have moved into it")
        if isinstance(record, events.Round):
            if text is None:
                self._missing.add(event.number)
            elif f"{event.number:011d}.{_digest(text.salt, text.text)}" != record.decision_id or not _are_actions(
                record, text
            ):
                self._findings.add(event.number, "private", "its private text is not what the event commits to")
            elif (text.alias, text.person) != _names(text):
                self._findings.add(event.number, "private", "it is found by another id or person than its text says")
        elif isinstance(record, events.Voided):
            if text is not None and _digest(text.salt, text.text) != record.action:
                self._findings.add(event.number, "private", "its private text is not what the event commits to")
        elif text is not None:
            self._findings.add(event.number, "private", f"a {event.kind} has no private text")
        self._tally.texts += text is not None

    def erased(self, event: Event, record: events.Erased) -> None:
        """Texts that are gone, by somebody's word."""
        if any(not 0 < number < event.number for number in record.events):
            self._findings.add(event.number, "private", "it erases what is not there yet")
        for number in record.events:
            # Asked again: of a journal in use the text may have been read before it was erased.
            if number not in self._missing and self._view.private(number) is not None:
                text = f"its private text was erased by event {event.number}, and is there again"
                self._findings.add(number, "private", text)
        self._erased.update(record.events)
        self._tally.erasures.append((event.number, record))

    def end(self, *, is_sealed: bool) -> None:
        """Name the texts that went without a word, and what is kept where no reader in order comes by."""
        for number in self._view.strays():
            self._findings.add(number, "stray", "it is kept beside the chain, of which it is no event")
        if not is_sealed and self._next is not None:
            self._findings.add(self._next[0], "private", "an experiment that is not sealed has no private texts")
        for number in sorted(self._missing - self._erased):
            self._findings.add(number, "private", "its private text is gone, and nobody has said that it was erased")

    def _text_of(self, number: int) -> PrivateText | None:
        while self._next is not None and self._next[0] < number:
            self._next = next(self._texts, None)
        return self._next[1] if self._next is not None and self._next[0] == number else None


def _are_actions(record: events.Round, text: PrivateText) -> bool:
    """Whether the actions of a guard are those whose hashes the event holds."""
    if not isinstance(record, events.PairRound):
        return True
    actions = msgspec.json.decode(text.text, type=_Actions)
    pairs = ((record.request.baseline, actions.baseline), (record.request.proposal, actions.proposal))
    return all(digest == _digest(text.salt + b"action", bytes(action)) for digest, action in pairs)


def _names(text: PrivateText) -> tuple[str, str | None]:
    """By which id and person a decision must be found."""
    named = msgspec.json.decode(text.text, type=_Named)
    person = named.unit if named.unit is not None else (named.context or {}).get("person")
    return named.decision_id, None if person is None else str(person)


def _digest(salt: bytes, text: bytes) -> str:
    return hashlib.sha256(salt + text).hexdigest()


def _stream(view: View) -> Iterator[tuple[int, PrivateText]]:
    after = 0
    while page := view.privates(after, PAGE):
        yield from page
        after = page[-1][0]
