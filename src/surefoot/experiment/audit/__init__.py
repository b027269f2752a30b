"""An audit from outside: every recorded decision checked from the raw events, by code that no decision ran through.

The audit shares nothing with `surefoot.policies`, `surefoot.safety` and `surefoot.linear` (a linter contract holds
that): it sums up what was played and learned by itself, solves afresh with plain NumPy, and has its own copy of every
formula. So it disagrees where either side is wrong.
"""

from collections.abc import Callable

from surefoot.errors import JournalCorruptedError
from surefoot.experiment.audit.findings import Finding, Findings
from surefoot.experiment.audit.report import Report
from surefoot.experiment.audit.walk import Walk
from surefoot.journal import Journal

__all__ = ["Finding", "Findings", "Report", "audit"]

REPORT_EVERY = 200

Progress = Callable[[int, int], None]


def audit(journal: Journal, name: str, *, progress: Progress | None = None, expect: str | None = None) -> Report:
    """Check one experiment of a journal, from its first event to its last.

    `expect` is the hash of an event that must be in the chain, such as the head that an earlier audit reported: it
    shows that nothing was cut off or rewritten since.
    """
    walk, view = Walk(name), journal.view(name)
    number, is_met = 0, expect is None
    try:
        start = view.head
        is_at_start = False
        for event in view.read(verify=False):
            walk.take(event)
            is_met |= event.hash == expect
            is_at_start |= event.head == start
            number = max(number, event.number)
            if progress is not None and event.number % REPORT_EVERY == 0:
                progress(number, start.number)
        end = view.head
        # A live experiment may have grown since the last page was read: then its head lies ahead, and that is fine.
        if not (is_at_start and end.number > number):
            walk.chain.end(end)
    except JournalCorruptedError as error:
        walk.findings.add(number + 1, "unreadable", str(error))
    if not is_met:
        walk.findings.add(0, "expected", f"no event has the hash {expect}, which the chain once had")
    if progress is not None:
        progress(number, number)
    return Report(name=name, created=walk.created, tally=walk.tally, findings=walk.findings, head=walk.chain.head)
