"""Learner rounds that callers must confirm: what nobody confirms in time counts at its worst, until somebody does.

A round is confirmed by the word of its caller, by its accepted reward, or by the word that something else was played.
Before every decision each round that is due must have been charged, and no other.
"""

from typing import Any

from surefoot.audit.findings import Findings
from surefoot.audit.linear_checks import LinearChecks
from surefoot.journal.events import Event
from surefoot.rounds import Record, events


class ConfirmationChecks:
    """Follows the rounds that wait to be confirmed; `book` is told how many are charged."""

    def __init__(self, created: events.Created, book: Any, findings: Findings) -> None:
        self._within, self._findings = created.confirm_within, findings
        self._book = book if isinstance(book, LinearChecks) else None
        self._due: dict[str, tuple[int, float]] = {}  # in the order of the decisions: round, and when it is due
        self._charged: set[str] = set()
        self._condemned: set[str] = set()  # voided too late: charged whatever is said of them

    def take(self, event: Event, record: Record) -> None:
        """Check what one event means for them, before the event itself is judged."""
        if isinstance(record, events.Confirmed):
            if not record.decision_ids or not all(self._awaits(one) for one in record.decision_ids):
                self._findings.add(event.number, "confirmed", "it confirms a round that does not wait for it")
            self._heard(*record.decision_ids)
        elif isinstance(record, events.Overdue):
            self._overdue(event, record)
        elif isinstance(record, events.Voided) or (isinstance(record, events.Reward) and not record.refused):
            self._heard(record.decision_id)
        elif isinstance(record, events.RowsRound):
            self._check_due(event)
            if self._within is not None and record.source == "learner":
                self._due[record.decision_id] = record.round, event.time + self._within

    def condemn(self, decision_id: str) -> None:
        """Charge a round for good, of which something was said so late that rewards may have influenced it."""
        self._condemned.add(decision_id)
        self._tell()

    def restart(self) -> None:
        """After a restart all rounds before it are charged, or forgotten."""
        self._due.clear()
        self._charged.clear()
        self._condemned.clear()
        self._tell()

    def _overdue(self, event: Event, record: events.Overdue) -> None:
        for one in record.decisions:
            round_, due = self._due.pop(one.decision_id, (0, 0.0))
            if round_ != one.round or event.time < due:
                text = f"round {one.round} is charged at its worst, but was confirmed, or is not due yet"
                self._findings.add(event.number, "overdue", text)
            self._charged.add(one.decision_id)
        self._tell()

    def _check_due(self, event: Event) -> None:
        """The oldest is due first, for times never run backwards."""
        round_, due = next(iter(self._due.values()), (0, event.time + 1.0))
        if due <= event.time:
            text = f"round {round_} was not confirmed in time, and is not counted at its worst"
            self._findings.add(event.number, "overdue", text)

    def _awaits(self, decision_id: str) -> bool:
        return decision_id in self._due or decision_id in self._charged

    def _heard(self, *decision_ids: str) -> None:
        for decision_id in decision_ids:
            self._due.pop(decision_id, None)
            self._charged.discard(decision_id)
        self._tell()

    def _tell(self) -> None:
        if self._book is not None:
            self._book.unplayed = len(self._charged) + len(self._condemned)
