"""Chains, checked with nothing but SHA-256: no event edited, dropped, doubled or moved; heads that were kept elsewhere.

An event's hash is taken of eight parts joined by newlines: the format's name, the experiment's name, the event's
number, kind, key, time (hexadecimal), the hash of the event before, and the payload. The journal's own chain notes the
heads of all experiments, so that one that is gone is missed.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from surefoot.audit.findings import Findings
from surefoot.errors import ConfigError, JournalCorruptedError, JournalNotFoundError
from surefoot.journal import Head, Journal
from surefoot.journal.events import JOURNAL, START, Event
from surefoot.journal.journal_chain import GivenUp, Tombstone, known_heads, tombstones
from surefoot.journal.signatures import PublicKey, head_message
from surefoot.rounds.answers import EventHead

FORMAT = "surefoot-event/1"
NOTHING = "0" * 64


class HashChain:
    """Follows a chain from its first event; after a break it goes on from there, so that each break is named."""

    def __init__(self, name: str, findings: Findings) -> None:
        self._name, self._findings = name, findings
        self.head = Head(0, NOTHING)

    def follow(self, event: Event) -> None:
        """Check one event against the one before, and against its own hash."""
        last = self.head.number
        if event.number != last + 1:
            self._findings.add(event.number, "number", f"it comes after event {last}: {_gap(last, event.number)}")
        elif event.previous != self.head.hash:
            text = f"it does not follow event {last} as that one is now: one of the two was changed or replaced"
            self._findings.add(event.number, "previous", text)
        if event.hash != digest(self._name, event):
            text = f"this {event.kind} is not what its hash was taken of: it was edited"
            self._findings.add(event.number, "hash", text)
        self.head = Head(event.number, event.hash)

    def end(self, head: Head) -> None:
        """Check the end of the chain against the head that is kept beside it."""
        if head.number != self.head.number:
            text = f"the journal says that event {head.number} is its last, but events end with {self.head.number}"
            self._findings.add(head.number, "head", text)
        elif head != self.head:
            self._findings.add(head.number, "head", "this event is not the one that the journal says is its last")


def digest(name: str, event: Event) -> str:
    """The hash that this event must have."""
    parts = (FORMAT, name, str(event.number), event.kind, event.key or "", event.time.hex(), event.previous)
    return hashlib.sha256("\n".join(parts).encode() + b"\n" + event.payload).hexdigest()


def _gap(last: int, number: int) -> str:
    if number <= last:
        return "doubled, or out of order"
    return f"event {last + 1} is missing" if number == last + 2 else f"events {last + 1} to {number - 1} are missing"


class ExpectedHead(msgspec.Struct, frozen=True, omit_defaults=True):
    """A head that an experiment once had.

    Attributes
    ----------
    experiment, number, hash : str, int and str
        The event, and what its hash was.
    time, signature : float and str
        When a server gave it out, and its Ed25519 signature over all of this; "" where there is none.
    key : str
        Name of the key that has signed it (`PublicKey.name`), for a server's keys change.

    Examples
    --------
    >>> ExpectedHead("shop", 1, "0" * 64).number
    1
    """

    experiment: str
    number: int
    hash: str
    time: float = 0.0
    signature: str = ""
    key: str = ""

    def is_signed_by(self, *keys: PublicKey) -> bool:
        """Whether it has a signature, by one of these keys.

        Parameters
        ----------
        keys : PublicKey
            The server's keys, of now and of before.

        Returns
        -------
        bool
            Whether it has, by the one that it names.
        """
        message = head_message(self.experiment, Head(self.number, self.hash), self.time)
        return any(key.name == self.key and key.has_signed(self.signature, message) for key in keys)


class HeadSearch:
    """Looks for heads, and for hashes of any number, while the events of one experiment go by."""

    def __init__(self, heads: Iterable[Head | EventHead] = (), hashes: Iterable[str] = ()) -> None:
        self.matched, self._hashes = 0, set(hashes)
        self._heads: dict[int, set[str]] = {}
        for head in heads:
            self._heads.setdefault(head.number, set()).add(head.hash)

    def take(self, event: Event, findings: Findings) -> None:
        """Compare an event with what is known of its number."""
        if event.hash in self._hashes:
            self._hashes.discard(event.hash)
            self.matched += 1
        for hash_ in self._heads.pop(event.number, ()):
            self.matched += hash_ == event.hash
            if hash_ != event.hash:
                text = f"it once had the hash {hash_}: it or an event before it was rewritten"
                findings.add(event.number, "expected", text)

    def end(self, last: int, findings: Findings) -> None:
        """Name what never came."""
        for hash_ in self._hashes:
            findings.add(0, "expected", f"no event has the hash {hash_}, which the chain once had")
        for number in sorted(self._heads):
            findings.add(number, "expected", f"it was there, and is gone: the chain ends with event {last}")


def read_expected(path: Path) -> list[ExpectedHead]:
    """The heads of a file of JSON lines: receipts of a client, heads of a server, or its log."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(
            f"`--expect` must be a hash or a file of heads, but {path} cannot be read: {error}."
        ) from None
    heads = list(_heads(lines))
    if not heads:
        raise ConfigError(
            f"`--expect` must be a hash or a file of JSON lines with `experiment`, `number` and `hash`, but {path} "
            "has none of these."
        )
    return heads


def newest_heads(expected: Iterable[ExpectedHead], *, given_up: GivenUp | None = None) -> dict[str, Head]:
    """The furthest head of each experiment that no restore has given up.

    By number, and not by time: whoever writes an old head down late would hide a newer one.
    """
    newest: dict[str, Head] = {}
    for one in expected:
        head = Head(one.number, one.hash)
        if given_up is None or not given_up.covers(one.experiment, head, one.time):
            newest[one.experiment] = max(head, newest.get(one.experiment, head))
    return newest


def _heads(lines: Iterable[bytes]) -> Iterator[ExpectedHead]:
    for line in lines:
        try:
            entry: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
            # In a log, `time` is that of the line.
            entry["time"] = entry.pop("head_time", entry.get("time", 0.0))
            yield msgspec.convert(entry, ExpectedHead)
        except msgspec.MsgspecError:  # a log has other lines, too
            continue


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
            if not one.signature:
                fault = "is not signed"
            elif one.key in {key.name for key in keys}:
                fault = f"was not signed with the key {one.key}, or was changed since"
            else:
                fault = f"names the key {one.key or 'of no name'}, which is not among these"
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
