"""From the first event to the last: the chain, the mode, private texts and snapshots; rounds are left to their kind."""

import math
from typing import Any

import numpy as np

from surefoot.audit.chain import HashChain
from surefoot.audit.declarations import ARMS, GUARDS, LINEAR, faults
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.guard_checks import GuardChecks
from surefoot.audit.private_checks import PrivateChecks
from surefoot.audit.recorded_round import read_payload
from surefoot.audit.report import Report
from surefoot.audit.rows_checks import RowsChecks
from surefoot.audit.snapshot_checks import snapshot_faults
from surefoot.journal import View
from surefoot.journal.events import Event
from surefoot.rounds import events

# Written out again: the audit takes no rule from the code that it audits.
NEXT_MODES = {"shadow": ("guarded", "paused"), "guarded": ("paused",), "paused": ("guarded",)}


class Auditor:
    """The audit of one experiment, event by event; `rows` and `pair` check what is of their kind."""

    def __init__(
        self, view: View, *, rows: type[RowsChecks] = RowsChecks, pair: type[GuardChecks] = GuardChecks
    ) -> None:
        self._attachment, self._rows, self._pair = view.attachment, rows, pair
        self.findings, self.tally = Findings(), AuditCounts()
        self.chain = HashChain(view.name, self.findings)
        self.private = PrivateChecks(view, self.findings, self.tally)
        self.created: events.Created | None = None
        self.checks: Any = None  # of its kind
        self._mode = self._decides_by = ""  # the mode and the policy as they were declared

    @property
    def is_sealed(self) -> bool:
        """Whether the experiment keeps private texts beside its chain."""
        return self.created is not None and self.created.is_sealed

    def report(self, name: str, *, heads: int = 0) -> Report:
        """What is to be said of the events so far."""
        coins = None if self.checks is None else self.checks.coins
        return Report(name, self.created, self.tally, self.findings, self.chain.head, coins, heads)

    def take(self, event: Event) -> None:
        """Check one event."""
        # What cannot be read is a link of the chain all the same.
        self.chain.follow(event)
        self.tally.events += 1
        self._check_time(event)
        try:
            record = read_payload(event.kind, event.payload, is_pair=isinstance(self.checks, GuardChecks))
        except ValueError as error:
            self.findings.add(event.number, "payload", f"it cannot be read as a {event.kind}: {error}")
            return
        if event.kind != events.CREATED and self.checks is None:
            if self.created is not None:  # its policy cannot be audited, which was said before
                return
            self.findings.add(event.number, "created", f"a {event.kind} must come after the experiment was created")
            return
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what leaves the floats proves nothing
                self._take(event, record)
        except (ValueError, ArithmeticError, LookupError, TypeError) as error:
            self.findings.add(event.number, "numbers", f"its numbers cannot be worked with: {error}")

    def _take(self, event: Event, record: Any) -> None:
        if self.is_sealed:
            self.private.take(event, record)
        match record:
            case events.Created():
                self._take_created(event, record)
            case events.Mode():
                self._take_mode(event, record)
            case events.Erased():
                self._take_erased(event, record)
            case events.Snapshot():
                self._take_snapshot(event, record)
            case _:
                self._check(event, record)

    def _check(self, event: Event, record: Any) -> None:
        self.checks.take(event, record, self._mode)

    def _check_time(self, event: Event) -> None:
        if math.isnan(self.tally.first_time):
            self.tally.first_time = self.tally.last_time = event.time
        if event.time < self.tally.last_time:
            seconds = self.tally.last_time - event.time
            self.findings.add(event.number, "time", f"it was written {seconds:.6g} s before the event that it follows")
        self.tally.last_time = event.time

    def _take_created(self, event: Event, created: events.Created) -> None:
        if self.created is not None or event.number != 1:
            self.findings.add(event.number, "created", "an experiment is created once, by event 1")
        if self.created is not None:
            return
        self.created, self._mode, self._decides_by = created, created.mode, created.policy
        self.tally.modes.append((event.number, created.mode))
        for text in faults(created):
            self.findings.add(event.number, "settings", text)
        if created.policy in (*LINEAR, *ARMS):
            self.checks = self._rows(created, self.findings, self.tally)
        elif created.policy in GUARDS:
            self.checks = self._pair(created, self.findings, self.tally)
        else:
            text = f"the audit knows {', '.join((*LINEAR, *ARMS, *GUARDS))}, but this is {created.policy!r}"
            self.findings.add(event.number, "policy", text)
        if isinstance(self.checks, RowsChecks) and created.history is not None:
            self.checks.learn_history(event, created.history)
        elif created.history is not None:
            self.findings.add(event.number, "history", "only a policy over rows begins with a history")

    def _take_mode(self, event: Event, mode: events.Mode) -> None:
        if mode.mode not in NEXT_MODES[self._mode]:
            self.findings.add(event.number, "mode", f"an experiment cannot go from {self._mode!r} to {mode.mode!r}")
        self._mode = mode.mode
        self.tally.modes.append((event.number, mode.mode))

    def _take_erased(self, event: Event, erased: events.Erased) -> None:
        if not self.is_sealed:
            self.findings.add(event.number, "private", "nothing can be erased from an experiment that is not sealed")
        self.private.erased(event, erased)

    def _take_snapshot(self, event: Event, snapshot: events.Snapshot) -> None:
        self.tally.snapshots += 1
        if (snapshot.number, snapshot.hash) != (event.number - 1, event.previous):
            self.findings.add(event.number, "snapshot", "a snapshot must be of the state at the event before it")
        # One that was removed since, for newer ones, is nobody's start any more.
        data = self._attachment(snapshot.digest)
        # After any other finding, what the audit itself has counted may be beside the point.
        is_clean = len(self.findings) == self.findings.counts["snapshot"]
        if data is not None and self.created is not None and is_clean:
            for text in snapshot_faults(data, event, self.created, self._mode, self.tally, self._decides_by):
                self.findings.add(event.number, "snapshot", text)
