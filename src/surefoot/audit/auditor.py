"""From the first event to the last: the chain, the mode, private texts and snapshots; rounds are left to their kind."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from surefoot.audit.chain import HashChain, HeadSearch
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.declarations import ARMS, GUARDS, LINEAR, faults
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.guard_checks import GuardChecks
from surefoot.audit.private_checks import PrivateChecks
from surefoot.audit.recorded_round import read_payload
from surefoot.audit.report import Report
from surefoot.audit.rows_checks import RowsChecks
from surefoot.errors import JournalCorruptedError, JournalNotFoundError
from surefoot.journal import Head, Journal, View
from surefoot.journal.events import Event
from surefoot.journal.journal_chain import tombstone
from surefoot.rounds import events
from surefoot.rounds.answers import EventHead

REPORT_EVERY = 200
# Written out again: the audit takes no rule from the code that it audits.
SNAPSHOT_FORMAT = 4
NEXT_MODES = {"shadow": ("guarded", "paused"), "guarded": ("paused",), "paused": ("guarded",)}

Progress = Callable[[int, int], None]


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
        self.tally.check_rounding(self.findings)
        coins = None if self.checks is None else self.checks.coins
        return Report(name, self.created, self.tally, self.findings, self.chain.head, coins, heads)

    def take(self, event: Event) -> None:
        """Check one event."""
        # What cannot be read is a link of the chain all the same.
        self.chain.follow(event)
        self.tally.events += 1
        self._check_time(event)
        if event.kind != events.CREATED and self.checks is None:
            if self.created is None:
                self.findings.add(event.number, "created", f"a {event.kind} must come after the experiment was created")
            return  # what cannot be audited was named before
        try:
            record = read_payload(event.kind, event.payload, is_pair=self.checks is not None and self.checks.is_pair)
        except (ValueError, RecursionError) as error:
            self.findings.add(event.number, "payload", f"it cannot be read as a {event.kind}: {error}")
            return
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what leaves the floats proves nothing
                self._take(event, record)
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
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
        is_sound = True
        for text in faults(created):
            self.findings.add(event.number, "settings", text)
            is_sound = False
        if not is_sound:  # nothing can be said of decisions by settings that no policy takes
            return
        if created.policy in (*LINEAR, *ARMS):
            self.checks = self._rows(created, self.findings, self.tally)
        elif created.policy in GUARDS:
            self.checks = self._pair(created, self.findings, self.tally)
        else:
            text = f"the audit knows {', '.join((*LINEAR, *ARMS, *GUARDS))}, but this is {created.policy!r}"
            self.findings.add(event.number, "policy", text)
        if self.checks is not None and created.history is not None:
            self.checks.learn_history(event, created.history)

    def _take_mode(self, event: Event, mode: events.Mode) -> None:
        is_restored = mode.lost is not None
        if mode.lost is not None:
            assert self.checks is not None
            self.checks.restored(mode.lost)
        is_kept = is_restored and self._mode != "guarded" and mode.mode == self._mode
        if mode.mode not in NEXT_MODES[self._mode] and not is_kept:
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


class _Policy(msgspec.Struct):
    policy: str
    id: str
    rounds: int


class _Counts(msgspec.Struct):
    learner_rounds: int
    baseline_rounds: int
    held_rounds: int
    rewards: int
    abandoned: int
    voided: int = 0


class _Snapshot(msgspec.Struct):
    format: int
    number: int
    hash: str
    time: float
    mode: str
    policy: _Policy
    counts: _Counts
    answer: events.Acknowledged | None


def snapshot_faults(
    data: bytes, event: Event, created: events.Created, mode: str, tally: AuditCounts, policy: str
) -> Iterator[str]:
    """What the attachment of a snapshot says otherwise than the events before it, a sentence each.

    Compared is what can be told without the code that wrote it; `surefoot audit` also replays the events, and compares
    all of it. `policy` is the one that decides, which of a shard is a leased one.
    """
    try:
        # Arrays are opaque here.
        snapshot = msgspec.msgpack.decode(data, type=_Snapshot, ext_hook=lambda code, raw: None)
    except msgspec.MsgspecError as error:
        yield f"it cannot be read as a state: {error}"
        return
    if snapshot.format != SNAPSHOT_FORMAT:  # nobody goes on from a state of another format
        return
    answers = [answer for _, _, answer in tally.answers]
    expected: dict[str, tuple[Any, Any]] = {
        "head": ((snapshot.number, snapshot.hash), (event.number - 1, event.previous)),
        "mode": (snapshot.mode, mode),
        "policy": ((snapshot.policy.policy, snapshot.policy.id), (policy, created.policy_id)),
        "rounds": (snapshot.policy.rounds, tally.decisions),
        "learner's rounds": (snapshot.counts.learner_rounds, tally.learner),
        "baseline's rounds": (snapshot.counts.baseline_rounds, tally.baseline),
        "held rounds": (snapshot.counts.held_rounds, tally.held),
        "rewards": (snapshot.counts.rewards, tally.rewards),
        "abandoned rounds": (snapshot.counts.abandoned, tally.abandoned),
        "voided rounds": (snapshot.counts.voided, tally.voided),
        "answer to the alarm": (snapshot.answer, answers[-1] if answers else None),
    }
    for what, (claimed, known) in expected.items():
        if claimed != known:
            yield f"of its {what} it says {claimed!r:.90}, but the events say {known!r:.90}"


class _Teacher(RowsChecks):
    """Follows an experiment, and notes what its newest set was made of."""

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        super().__init__(created, findings, tally)
        self.history = list[tuple[list[float], float]]()
        self.learned = list[tuple[list[float], float]]()

    def learn_history(self, event: Event, history: events.History) -> None:
        """Note what the experiment began with, too."""
        super().learn_history(event, history)
        self.history = list(zip(history.features, history.rewards, strict=False))

    def _book_in(self, features: Vector, reward: float, is_learner: bool, declared: float | None) -> None:
        super()._book_in(features, reward, is_learner, declared)
        self.learned.append((features.tolist(), reward))

    def _answer(self, event: Event, answer: events.Acknowledged) -> None:
        super()._answer(event, answer)
        if answer.response != "stay":
            self.history.clear()
            self.learned.clear()


def fork_faults(journal: Journal, created: events.Created | None) -> Iterator[str]:
    """What a fork says otherwise than the experiment that it came from, whose events must have taught its history.

    Of one that is gone only that it was there.
    """
    origin = None if created is None else created.origin
    if created is None or origin is None:
        return
    try:
        view = journal.view(origin.experiment)
        if not view.follows(Head(origin.number, origin.hash)):
            yield f"it was forked from {origin.experiment!r} at event {origin.number}, whose hash was another"
            return
        auditor = Auditor(view, rows=_Teacher)
        for event in view.read(limit=origin.number, verify=False):
            auditor.take(event)
    except JournalNotFoundError:
        gone = tombstone(journal, origin.experiment)
        if gone is None or not gone.covers(Head(origin.number, origin.hash)):
            yield (
                f"it was forked from {origin.experiment!r} at event {origin.number}, which this journal neither has, "
                "nor has a tombstone for: audit it where both are"
            )
        return
    except JournalCorruptedError as error:
        yield f"the experiment that it was forked from cannot be read: {error}"
        return
    teacher = auditor.checks
    if not isinstance(teacher, _Teacher):
        yield f"it was forked from {origin.experiment!r}, which learned no rows"
        return
    if auditor.tally.is_refuted:
        yield f"it was forked from {origin.experiment!r} while the alarm was on"
    history = (
        [] if created.history is None else list(zip(created.history.features, created.history.rewards, strict=False))
    )
    if origin.rounds != len(teacher.learned):
        yield f"it says to begin with {origin.rounds} rounds, but {len(teacher.learned)} were learned until then"
    if not _correct(teacher.learned, origin.corrections):
        yield "it corrects rewards of rounds that were not learned, or one of them twice"
        return
    known = [*teacher.history, *teacher.learned]
    if not origin.is_encoded and history != known:
        yield "its history is not what the experiment that it was forked from had learned"
    # Rows of another feature map cannot be made again here; rounds that are left out can be found by their rewards.
    if origin.is_encoded and [reward for _, reward in history] != [reward for _, reward in teacher.learned]:
        yield "its rewards are not those of every round that the experiment it was forked from had learned"


def _correct(learned: list[tuple[list[float], float]], corrections: tuple[tuple[int, float], ...]) -> bool:
    """Put the rewards in place that a person has said; false where there is no place for one."""
    positions = [position for position, _ in corrections]
    if len({*positions}) < len(positions) or not all(0 <= position < len(learned) for position in positions):
        return False
    for position, value in corrections:
        learned[position] = learned[position][0], value
    return True
