"""An audit from outside: every recorded decision checked from the raw events, by code that no decision ran through.

The audit shares nothing with `surefoot.policies`, `surefoot.safety` and `surefoot.linear` (a linter contract holds
that): it sums up what was played and learned by itself, solves again with plain NumPy, and has its own copy of every
formula. So it disagrees if either side is wrong.
"""

from collections.abc import Callable, Iterable

from surefoot.audit.auditor import Auditor
from surefoot.audit.chain import ExpectedHead, HeadSearch, JournalReport, audit_journal
from surefoot.audit.findings import Finding, Findings
from surefoot.audit.fork_checks import fork_faults
from surefoot.audit.report import Report, SharedReport
from surefoot.audit.shared_audit import audit_shards
from surefoot.errors import JournalCorruptedError
from surefoot.journal import Head, Journal, View
from surefoot.rounds.answers import EventHead

__all__ = [
    "ExpectedHead",
    "Finding",
    "Findings",
    "JournalReport",
    "Report",
    "SharedReport",
    "audit",
    "audit_journal",
    "audit_shards",
]

REPORT_EVERY = 200

Progress = Callable[[int, int], None]


def audit(
    journal: Journal,
    name: str,
    *,
    progress: Progress | None = None,
    expect: str | Iterable[Head | EventHead] | HeadSearch = (),
) -> Report:
    """Check one experiment of a journal, from its first event to its last.

    Parameters
    ----------
    journal : Journal
        The journal, which may be open read-only.
    name : str
        The experiment.
    progress : callable, optional
        Called with events checked and events in all.
    expect : str or iterable of Head or EventHead
        Hash of an event that must be in the chain, such as the head of an earlier report, or heads that were kept
        outside: they show that nothing was cut off or rewritten since.

    Returns
    -------
    Report
        What was checked, and every finding.

    Raises
    ------
    JournalNotFoundError
        If the journal has no such experiment.

    Examples
    --------
    >>> import surefoot
    >>> journal = surefoot.open_journal("memory:")
    >>> shop = surefoot.Experiment.create(journal, "shop", surefoot.UCB(arms=2))
    >>> audit(journal, "shop").is_clean
    True
    """
    view = journal.view(name)
    auditor = Auditor(view)
    start = _head(view, auditor)
    search, is_at_start = _search(expect), False
    try:
        for event in view.read(verify=False):
            auditor.take(event)
            search.take(event, auditor.findings)
            is_at_start |= event.head == start
            if progress is not None and event.number % REPORT_EVERY == 0:
                progress(event.number, max(event.number, start.number if start else 0))
    except JournalCorruptedError as error:
        auditor.findings.add(auditor.chain.head.number + 1, "unreadable", str(error))
    end = _head(view, auditor) if start is not None else None
    # A live experiment may have grown since the last page was read: then its head lies ahead, and that is fine.
    if end is not None and not (is_at_start and end.number > auditor.chain.head.number):
        auditor.chain.end(end)
    for text in fork_faults(journal, auditor.created):
        auditor.findings.add(1, "fork", text)
    auditor.private.end(is_sealed=auditor.is_sealed)
    search.end(auditor.chain.head.number, auditor.findings)
    return auditor.report(name, heads=search.matched)


def _head(view: View, auditor: Auditor) -> Head | None:
    """What the journal itself says is its end."""
    try:
        return view.head
    except JournalCorruptedError as error:
        auditor.findings.add(0, "head", str(error))
        return None


def _search(expect: str | Iterable[Head | EventHead] | HeadSearch) -> HeadSearch:
    if isinstance(expect, HeadSearch):
        return expect
    return HeadSearch(hashes=[expect]) if isinstance(expect, str) else HeadSearch(expect)
