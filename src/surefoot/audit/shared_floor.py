"""The audit of shards that share one floor: each chain by itself, what they handed in, and that leases add up.

The chain where they meet is followed event by event. It tells in which order rounds were merged, and so which set each
lease froze; the chain of a shard is checked against that set, up to its next lease.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from surefoot import records
from surefoot.audit.audit_counts import AuditCounts
from surefoot.audit.audit_report import Report
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.declarations import read_linear
from surefoot.audit.declared_settings import faults
from surefoot.audit.expected_heads import HeadSearch
from surefoot.audit.findings import Findings
from surefoot.audit.hash_chain import HashChain
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.payloads import read_payload, read_proof
from surefoot.audit.proof_checker import LinearFact, ProofChecker, Tolerances
from surefoot.audit.rebuilt_gram import EPS
from surefoot.audit.recorded_round import RoundProblems
from surefoot.audit.shard_checks import ShardAuditor, frozen_book, question_of, same_rounds
from surefoot.audit.shared_report import SharedReport
from surefoot.journal import Journal, View
from surefoot.journal.events import Event
from surefoot.records_of_leases import edge_chain

CARRIED = "earlier proof over all shards"


@dataclass
class MergedRound:
    """A round in the order of learning, and its reward once it has one."""

    made: records.HandedRound
    teaches: bool = False
    is_settled: bool = False
    reward: float | None = None


@dataclass
class AuditedShard:
    """What the chain where the shards meet says of one of them."""

    since: float
    through: float
    token: str
    auditor: ShardAuditor | None
    view: View | None  # its chain
    lease: int = 0
    amount: float = 0.0
    is_away: bool = False
    has_left: bool = False
    waiting: deque[MergedRound] = field(default_factory=deque)
    rounds: dict[int, MergedRound] = field(default_factory=dict)  # that are not settled
    handed_in: int = 0


class SharedFloor:
    """The chain where shards meet, event by event."""

    def __init__(self, hub: Journal, name: str, journals: Mapping[str, Journal], expected: HeadSearch) -> None:
        self._hub, self._name, self._journals, self.expected = hub, name, journals, expected
        self.findings, self.tally = Findings(), AuditCounts()
        self.chain = HashChain(name, self.findings)
        self.created: records.Created | None = None
        self.shards: dict[str, AuditedShard] = {}
        self._watermark = self._time = -math.inf
        self._order: deque[MergedRound] = deque()
        self._question, self._size = np.zeros(0), 0.0
        self._carried: LinearFact | None = None

    def take(self, event: Event) -> None:
        """Check one event."""
        self.chain.follow(event)
        self.expected.take(event, self.findings)
        self.tally.events += 1
        if event.time < self._time:
            self.findings.add(event.number, "time", "it was written before the event that it follows")
        self._time = self.tally.last_time = event.time
        if self.tally.events == 1:
            self.tally.first_time = event.time
        try:
            record = read_payload(event.kind, event.payload)
            if event.key != _key(record):
                self.findings.add(event.number, "key", f"it must be found by {_key(record)!r}, but has {event.key!r}")
            getattr(self, f"_take_{event.kind}")(event, record)
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
            self.findings.add(event.number, "payload", f"it cannot be worked with as a {event.kind}: {error}")

    def _take_created(self, event: Event, created: records.Created) -> None:
        if created.format != records.SHARDED or created.shard is not None or self.created is not None:
            self.findings.add(event.number, "created", "it must be a sharded experiment, which is created once")
        self.created, self._first = created, event.hash
        for text in faults(created):
            self.findings.add(event.number, "settings", text)
        self._declared = read_linear(created.policy, created.settings)
        self.book = LinearChecks(self._declared)
        dim = self._declared.knowledge.dim
        self._question = np.zeros(dim)
        self._carried = LinearFact(np.zeros(dim), 0.0)

    def _take_joined(self, event: Event, joined: records.Joined) -> None:
        if joined.shard in self.shards or not joined.since >= self._watermark:
            self.findings.add(event.number, "joined", f"shard {joined.shard!r} joins once, after what is merged")
        view = self._chain_of(joined.shard)
        auditor = None if view is None else ShardAuditor(view, self.expected)
        if auditor is not None:
            auditor.advance(None)
            self._check_declared(event, joined, auditor.created)
        self.shards[joined.shard] = AuditedShard(joined.since, joined.since, joined.token, auditor, view)

    def _chain_of(self, shard: str) -> View | None:
        """The shard's own chain; that of an edge is kept where the shards meet."""
        if shard in self._journals:
            return self._journals[shard].view(self._name)
        chain = edge_chain(self._name, shard)
        return self._hub.view(chain) if chain in self._hub.names() else None

    def _check_declared(self, event: Event, joined: records.Joined, own: records.Created | None) -> None:
        """A shard decides by what was declared where the shards meet, in the one journal that it joined with."""
        assert self.created is not None
        told = msgspec.structs.replace(self.created, shard=joined.shard, token=joined.token, hub=self._first)
        if own != told:
            differing = (
                [] if own is None else [one for one in own.__struct_fields__ if getattr(own, one) != getattr(told, one)]
            )
            text = (
                f"shard {joined.shard!r} must begin with what the hub declares, but differs in {', '.join(differing)}"
            )
            self.findings.add(event.number, "created", text)

    def _take_snapshot(self, event: Event, snapshot: records.Snapshot) -> None:
        """It only saves time: everything is rebuilt here from the events."""

    def _take_lost(self, event: Event, lost: records.Lost) -> None:
        shard = self.shards[lost.shard]
        if not lost.reason.strip():
            self.findings.add(event.number, "lost", f"nobody says why shard {lost.shard!r} is not waited for")
        shard.is_away = True
        for merged in list(shard.rounds.values()):
            self._settle(shard, merged, None)
        self._merge()

    def _take_leased(self, event: Event, lease: records.LeaseRecord) -> None:
        shard = self.shards[lease.shard]
        if lease.number != shard.lease + 1 or shard.amount != 0.0:
            text = f"lease {shard.lease + 1} of {lease.shard!r} is next, once the one before is handed in"
            self.findings.add(event.number, "lease", text)
        if shard.has_left:
            self.findings.add(event.number, "lease", f"shard {lease.shard!r} has left, and is leased to again")
        if lease.observations != self.book.estimate.count:
            text = f"the set has learned {self.book.estimate.count} rewards, but {lease.observations} are written"
            self.findings.add(event.number, "observations", text)
        if float(lease.watermark) != self._watermark:
            text = f"rounds are merged up to {self._watermark!r}, but {lease.watermark!r} is written"
            self.findings.add(event.number, "watermark", text)
        shard.lease, shard.amount, shard.is_away = lease.number, lease.amount, False
        leased = math.fsum(other.amount for other in self.shards.values())
        assert self._carried is not None
        reserve = self._declared.amount if self._declared.constraint == "reserve" else 0.0
        bound = self._declared.knowledge.theta_bound
        slack = self._carried.error + 64 * EPS * bound * self._size
        if self.tally.is_refuted and lease.amount > 0:
            self.findings.add(event.number, "alarm", "an amount was leased while the alarm was on")
        if lease.amount < 0 or leased > max(0.0, self._carried.level + reserve + slack):
            text = f"{leased:.12g} is leased in all, but {self._carried.level + reserve:.12g} is proved"
            self.findings.add(event.number, "leases", text)
        if shard.auditor is not None and shard.auditor.waits_for == lease.number:
            shard.auditor.advance(frozen_book(self.book, lease))

    def _take_handed_in(self, event: Event, given: records.HandedIn) -> None:
        shard = self.shards[given.shard]
        self.tally.decisions += len(given.rounds)
        self.tally.learner += sum(made.is_learner for made in given.rounds)
        problems = RoundProblems()
        level = self._check_segment(shard, given, problems)
        self._receive(shard, given)
        if given.proof is not None and given.proved is not None:
            self._check_proof(given, level, problems)
        elif not given.refuted:
            problems.add("proof", "what is proved of all rounds must be written, but is not")
        if given.refuted and not self.tally.is_refuted:
            told = "the data contradict what was declared" if given.alarm is None else given.alarm[1]
            self.tally.alarms.append((event.number, f"shard {given.shard!r}: {told}"))
        self.tally.is_refuted |= given.refuted or given.alarm is not None
        shard.amount = 0.0
        for what, text in problems.found:
            self.findings.add(event.number, what, text)

    def _check_segment(self, shard: AuditedShard, given: records.HandedIn, problems: RoundProblems) -> float:
        """What was handed in must be what the shard's own chain holds, and claim no more; what that proves of it."""
        if given.lease != shard.lease:
            problems.add("lease", f"lease {shard.lease} of {given.shard!r} is to be handed in, but got {given.lease}")
        if given.token != shard.token:
            problems.add("token", f"shard {given.shard!r} must hand in by the journal that it joined with")
        moments = [shard.since, *(made.moment for made in given.rounds), given.through]
        numbers = [made.number for made in given.rounds]
        is_whole = numbers == list(range(shard.handed_in + 1, shard.handed_in + 1 + len(numbers)))
        if moments != sorted(moments) or not is_whole:
            problems.add("rounds", "rounds must be handed in whole, in the order of their moments")
        own, size = question_of(given.rounds, self._declared.alpha, self.book.dim)
        gap = float(np.linalg.norm(own - np.array(given.question)))
        # Once the alarm is on, a shard carries no proof on.
        if given.alarm is None and gap > 1e-9 * (size + 1.0):
            problems.add("question", f"the rounds add up to another question, which differs by {gap:.3g}")
        if shard.auditor is None:
            return given.level
        segment = shard.auditor.segments.pop(given.lease, None)
        if segment is None or not same_rounds(segment.rounds, given.rounds) or segment.rewards != given.rewards:
            problems.add("rounds", f"they are not those of the chain of shard {given.shard!r}")
        elif (segment.through, segment.untimed) != (given.through, given.untimed):
            problems.add("rounds", f"by its chain it was complete at {segment.through!r}, untimed={segment.untimed}")
        if segment is not None and segment.is_refuted and given.alarm is None:
            problems.add("alarm", f"the alarm of shard {given.shard!r} is on by its own chain, and is left out here")
        # Each of its decisions was checked to stay above minus the lease.
        least = -shard.amount if given.rounds else 0.0
        fact = None if segment is None else segment.fact
        proved, claimed = (least, least) if fact is None else (max(least, fact.level), max(least, fact.claimed))
        if given.alarm is None and given.level > claimed + 1e-9 * self._declared.knowledge.theta_bound * (size + 1.0):
            problems.add("level", f"the shard's certificates prove {claimed:.12g}, but {given.level:.12g} is claimed")
        return min(proved, given.level)

    def _receive(self, shard: AuditedShard, given: records.HandedIn) -> None:
        """Take the rounds in, and merge what every shard has handed in before the watermark."""
        shard.is_away = shard.has_left = given.leaves
        shard.handed_in = shard.handed_in + len(given.rounds)
        for made in given.rounds:
            merged = MergedRound(made)
            shard.rounds[made.number] = merged
            if made.moment < self._watermark:  # it was not waited for: it counts, and is not learned
                self._count(merged)
                self._settle(shard, merged, None)
            else:
                shard.waiting.append(merged)
                if given.untimed:
                    self._settle(shard, merged, None)
        shard.since, shard.through = given.through, max(given.through, self._watermark)
        for number, reward in given.rewards:
            if number in shard.rounds:
                self._settle(shard, shard.rounds[number], reward)
        self._merge()

    def _settle(self, shard: AuditedShard, merged: MergedRound, reward: float | None) -> None:
        merged.is_settled, merged.reward = True, reward
        shard.rounds.pop(merged.made.number, None)
        self._learn()

    def _merge(self) -> None:
        present = [shard.through for shard in self.shards.values() if not shard.is_away]
        latest = max(shard.through for shard in self.shards.values())
        self._watermark = max(self._watermark, min(present) if present else math.nextafter(latest, math.inf))
        ready = []
        for name, shard in self.shards.items():
            while shard.waiting and shard.waiting[0].made.moment < self._watermark:
                merged = shard.waiting.popleft()
                ready.append((merged.made.moment, name, merged.made.number, merged))
        heapq.heapify(ready)
        while ready:
            self._count(heapq.heappop(ready)[3])
        self._learn()

    def _count(self, merged: MergedRound) -> None:
        made = merged.made
        played, displaced = np.array(made.played), np.array(made.displaced)
        known = self._declared.known(made.baseline_reward)
        self.book._seen.add(np.stack([played, displaced]))
        self.book.account.play(played, displaced, known, is_learner=made.is_learner)
        merged.teaches = self.book.teaches(made.is_learner)
        if merged.teaches:
            self._order.append(merged)

    def _learn(self) -> None:
        while self._order and self._order[0].is_settled:
            merged = self._order.popleft()
            if merged.reward is not None:
                self.book.learn(_features(merged), merged.reward, merged.made.is_learner)
                self.tally.learned += 1

    def _check_proof(self, given: records.HandedIn, level: float, problems: RoundProblems) -> None:
        """What is proved of all rounds handed in: by the newest set, what was proved before, and this certificate."""
        assert given.proof is not None
        assert given.proved is not None
        assert self._carried is not None
        own, size = question_of(given.rounds, self._declared.alpha, self.book.dim)
        self._size += size
        self._question = self._question + own
        bound = self._declared.knowledge.theta_bound
        question, scale = np.array(given.proof.question), Tolerances(bound * self._size, bound * self._size)
        if bound * float(np.linalg.norm(question - self._question)) > scale.gap:
            problems.add("question", "the proof must be about all rounds handed in, but is about others")
        certificate = LinearFact(np.array(given.question), level, 8 * EPS * bound * size, given.level)
        known = {CARRIED: [self._carried], f"certificate of shard {given.shard}": [certificate]}
        checker = ProofChecker(bound, self.book._sets, lambda name, *_: known.get(name, []), scale)
        value = checker.check(read_proof(given.proof), question, problems)
        self.tally.proofs += 1
        if given.proved > value + scale.blur:
            problems.add("proof", f"{value:.12g} is proved of all rounds, but {given.proved:.12g} is claimed")
        # Handed on is the audit's own value; the record's is only the most that it may claim.
        self._carried = LinearFact(question, value, 8 * EPS * bound * self._size, given.proved)


def _features(merged: MergedRound) -> Vector:
    made = merged.made
    return np.array(made.played if made.is_learner else made.displaced)


def _key(record: Any) -> str | None:
    match record:
        case records.Joined():
            return f"j:{record.shard}"
        case records.LeaseRecord():
            return f"l:{record.shard}:{record.number}"
        case records.HandedIn():
            return f"h:{record.shard}:{record.lease}"
    return None


def audit_shards(
    hub: Journal, name: str, journals: Mapping[str, Journal], *, expect: Iterable[str] = ()
) -> SharedReport:
    """Check an experiment whose floor is shared: the chain where its shards meet, and the chain of each.

    Parameters
    ----------
    hub : Journal
        Where the shards meet; it may be open read-only.
    name : str
        The experiment.
    journals : mapping of str to Journal
        The journals of the shards by their names; the chains of edges are found where the shards meet.
    expect : iterable of str
        Hashes that must be in one of the chains, such as the heads of earlier audits.

    Returns
    -------
    SharedReport
        What was checked, and every finding.

    Raises
    ------
    JournalNotFoundError
        If a journal has no such experiment.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.experiment import create_sharded
    >>> hub = surefoot.open_journal("memory:")
    >>> told = {"noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}
    >>> create_sharded(hub, "shop", surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, **told))
    >>> audit_shards(hub, "shop", {}).is_clean
    True
    """
    floor, view = SharedFloor(hub, name, journals, HeadSearch(hashes=expect)), hub.view(name)
    for event in view.read(verify=False):
        floor.take(event)
    floor.chain.end(view.head)
    reports = {}
    for shard, found in floor.shards.items():
        if found.auditor is not None and found.view is not None:
            found.auditor.chain.end(found.view.head)
            reports[shard] = _report(f"{name} ({shard})", found.auditor)
    for shard in sorted(set(journals) - set(floor.shards)):
        floor.findings.add(0, "unknown", f"a journal of shard {shard!r} is given, which never joined here")
    floor.expected.end(floor.chain.head.number, floor.findings)
    missing = tuple(shard for shard, found in floor.shards.items() if found.auditor is None)
    return SharedReport(_report(name, floor), reports, missing)


def _report(name: str, auditor: SharedFloor | ShardAuditor) -> Report:
    return Report(
        name=name,
        created=auditor.created,
        tally=auditor.tally,
        findings=auditor.findings,
        head=auditor.chain.head,
    )
