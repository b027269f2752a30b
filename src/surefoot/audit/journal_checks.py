"""The journal as a whole: its own chain, the heads that it and others have kept, and experiments that are gone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from surefoot.audit.expected_heads import ExpectedHead, HeadSearch
from surefoot.audit.findings import Findings
from surefoot.audit.hash_chain import HashChain
from surefoot.errors import JournalCorruptedError, JournalNotFoundError
from surefoot.journal import Head, Journal
from surefoot.journal.events import JOURNAL, START, Event
from surefoot.journal.journal_chain import Tombstone, known_heads, tombstones
from surefoot.journal.signatures import PublicKey


@dataclass
class JournalReport:
    """What an audit says of a journal as a whole.

    Attributes
    ----------
    findings : Findings
        Everything that does not fit; empty for an honest journal.
    head : Head
        Where the journal's own chain ended.
    expected : dict of str to list of Head
        Heads by experiment that the events must have: give them to the audit of each.
    deleted : list of Tombstone
        Experiments that were removed, by whom and why.
    notes, signed : int
        Events of the journal's own chain, and heads whose signature was checked.

    Examples
    --------
    >>> JournalReport().is_clean
    True
    """

    findings: Findings = field(default_factory=Findings)
    head: Head = START
    expected: dict[str, list[Head]] = field(default_factory=dict)
    deleted: list[Tombstone] = field(default_factory=list)
    notes: int = 0
    signed: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether everything fits."""
        return len(self.findings) == 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "experiment": JOURNAL,
            "is_clean": self.is_clean,
            "head": {"number": self.head.number, "hash": self.head.hash},
            "notes": self.notes,
            "deleted": [msgspec.to_builtins(one) for one in self.deleted],
            "signatures_checked": self.signed,
            "findings": len(self.findings),
            "findings_by_check": dict(self.findings.counts),
            "listed": [{"event": one.event, "check": one.what, "text": one.text} for one in self.findings],
        }


def audit_journal(
    journal: Journal, *, expect: Iterable[ExpectedHead] = (), keys: Sequence[PublicKey] = ()
) -> JournalReport:
    """Check a journal as a whole: its own chain, the signatures of heads, and that no experiment is missing.

    Parameters
    ----------
    journal : Journal
        The journal, which may be open read-only.
    expect : iterable of ExpectedHead
        Heads that were kept outside, of any experiments and of the journal's own chain.
    keys : sequence of PublicKey
        The server's keys, of now and of before: every one of these heads must be signed with one of them.

    Returns
    -------
    JournalReport
        Every finding, and the heads that the audit of each experiment must find.

    Examples
    --------
    >>> import surefoot
    >>> audit_journal(surefoot.open_journal("memory:")).is_clean
    True
    """
    report, kept = JournalReport(), list(expect)
    if keys:
        _check_signatures(report, kept, keys)
    for one in kept:
        report.expected.setdefault(one.experiment, []).append(Head(one.number, one.hash))
    events = _own_chain(journal, report)
    for name, heads in known_heads(events).items():
        report.expected.setdefault(name, []).extend(Head(*head) for head in heads.items())
    names, gone = journal.names(), tombstones(events)
    # An older version wrote it first: a removal that was cut short did not happen.
    report.deleted = [one for one in gone.values() if one.name not in names]
    for name in sorted(report.expected.keys() - {*names, JOURNAL}):
        # What a tombstone does not cover was removed without a word.
        if name in gone and all(gone[name].covers(head) for head in report.expected[name]):
            continue
        last = max(report.expected[name])
        text = f"experiment {name!r} is gone, which once had event {last.number}, hash {last.hash}"
        report.findings.add(0, "removed", text)
    return report


def _check_signatures(report: JournalReport, kept: list[ExpectedHead], keys: Sequence[PublicKey]) -> None:
    """A head without a signature is a finding, too: anybody could have written it."""
    for one in kept:
        report.signed += 1
        if not one.is_signed_by(*keys):
            fault = "was not signed with any of these keys, or was changed since" if one.signature else "is not signed"
            report.findings.add(0, "signature", f"the head {one.number} of {one.experiment!r} {fault}")


def _own_chain(journal: Journal, report: JournalReport) -> list[Event]:
    """The events of the journal's own chain, checked."""
    search, events = HeadSearch(report.expected.pop(JOURNAL, ())), list[Event]()
    try:
        view = journal.view(JOURNAL)
    except JournalNotFoundError:
        search.end(0, report.findings)
        return []
    chain = HashChain(JOURNAL, report.findings)
    try:
        for event in view.read(verify=False):
            chain.follow(event)
            search.take(event, report.findings)
            if _is_readable(event, report):
                events.append(event)
        head = view.head
        if head.number <= chain.head.number:  # a live journal may have grown since
            chain.end(head)
    except JournalCorruptedError as error:
        report.findings.add(chain.head.number + 1, "unreadable", str(error))
    search.end(chain.head.number, report.findings)
    report.head, report.notes = chain.head, len(events)
    return events


def _is_readable(event: Event, report: JournalReport) -> bool:
    try:
        known_heads([event])
        tombstones([event])
    except msgspec.MsgspecError as error:
        report.findings.add(event.number, "payload", f"it cannot be read as {event.kind}: {error}")
        return False
    return True
