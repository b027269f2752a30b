"""The chain where shards meet, whatever they share: who is there, what they hand in, and the order of merging.

The chain of each shard is fed up to its next lease as that one grants it.
"""

import copy
import heapq
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from surefoot.audit.auditor import NEXT_MODES, Auditor
from surefoot.audit.bank import BookedRound, RebuiltBank
from surefoot.audit.chain import HashChain, HeadSearch
from surefoot.audit.checks import Checks, OpenRound, Turns, Values
from surefoot.audit.coins import BLOCK, CoinFairness
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.confidence_sets import EPS
from surefoot.audit.constraints import CUMULATIVE, RESERVE
from surefoot.audit.declarations import GUARDS, Declarations, GuardDeclarations, faults, read_guard, read_linear
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.guard_checks import WRITTEN, GuardChecks, OpenPair, predicted, unfair
from surefoot.audit.ledger import AuditLedger
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.recorded_proof import LinearFact, ProofChecker, Tolerances
from surefoot.audit.recorded_round import RecordedRound, RoundProblems, read_payload, read_proof
from surefoot.audit.report import Report, SharedReport
from surefoot.audit.rows_checks import OpenRow, RowsChecks
from surefoot.errors import JournalCorruptedError
from surefoot.journal import Journal, View
from surefoot.journal.events import Event
from surefoot.rounds import events
from surefoot.rounds.events import edge_chain

LEASED_POLICIES = {"LeasedLUCB": "SafeLUCB", "LeasedGuard": "Guard"}  # of a shard, and of the experiment


@dataclass
class Segment:
    """What a shard did under one lease, by its own chain."""

    rounds: list[Any]
    rewards: list[tuple[int, Any]]
    through: float
    untimed: bool
    fact: LinearFact | None  # what its certificates prove of them; None where nothing was played, and of a guard
    is_refuted: bool  # the alarm was on
    moved: float = 0.0  # what rounds that were not played as decided may have cost


class ShardAuditor(Auditor):
    """The audit of one shard, whatever it is leased; its checks go by leases, and note what is to be handed in."""

    def __init__(self, view: Any, expected: HeadSearch, **kinds: Any) -> None:
        super().__init__(view, **kinds)
        self._expected = expected
        self._events = view.read(verify=False)
        self._next: Event | None = None
        self.segments: dict[int, Segment] = {}
        self.modes: list[tuple[int, str]] = []  # taken over by the word of an event where the shards meet
        self.is_edge = False  # whose mode is that of its lease
        self.granted_in = (0, "")  # the mode of all shards when the lease was granted, and the event that says so
        self._shared = 0  # the newest of those events that the shard has heard of
        self._granted: Any = None  # what was known when the lease was granted

    def advance(self, granted: Any) -> None:
        """Check events up to the next lease, which this one is the last to come before."""
        self._granted = granted
        if self._next is not None:
            self.take(self._next)
            self._next = None
        for event in self._events:
            if event.kind == events.LEASED:
                self._next = event
                return
            self.take(event)

    def take(self, event: Event) -> None:
        """Check one event."""
        self._expected.take(event, self.findings)
        super().take(event)

    @property
    def waits_for(self) -> int | None:
        """The number of the lease that comes next in its chain."""
        if self._next is None:
            return None
        return msgspec.json.decode(self._next.payload, type=events.Lease).number

    def _take_created(self, event: Event, created: events.Created) -> None:
        policy = LEASED_POLICIES.get(created.policy, created.policy)
        super()._take_created(event, msgspec.structs.replace(created, policy=policy))
        self._decides_by = created.policy

    def _check(self, event: Event, record: Any) -> None:
        if isinstance(record, events.Lease):
            self._take_lease(event, record)
        elif isinstance(record, events.LeaseEnded):
            self._end_lease(event, record)
        else:
            if isinstance(record, events.Round) and record.source == "learner":
                self._check_mode(event)
            self._check_settling(event, record)

    def _check_settling(self, event: Event, record: Any) -> None:
        """Note what is to be handed in: rewards once their round is settled."""
        assert self.created is not None
        if isinstance(record, events.Corrected) and self.created.reward_window is None:
            text = f"the reward of {record.decision_id!r} was corrected, but without a window it is handed in at once"
            self.findings.add(event.number, "corrected", text)
        entries = [(decision_id, self.checks.find(decision_id)) for decision_id in Checks.settles(record)]
        waiting = [(decision_id, entry) for decision_id, entry in entries if entry is not None and not entry.is_settled]
        super()._check(event, record)
        for decision_id, entry in waiting:
            if entry.is_settled:
                received = entry.rewards[decision_id]
                self.checks.rewards.append((entry.round, self.checks.handed(received, is_lost=entry.is_abandoned)))

    def _check_mode(self, event: Event) -> None:
        """The learner plays where all shards may, or the shard has heard of a word since the lease."""
        number, mode = self.granted_in
        if not self.is_edge and mode and mode != "guarded" and self._shared <= number:
            text = f"the learner played under a lease that was granted when all shards were {mode!r} (event {number})"
            self.findings.add(event.number, "mode", text)

    def _take_mode(self, event: Event, mode: events.Mode) -> None:
        if mode.shared:
            self.modes.append((mode.shared, mode.mode))
            self._shared = max(self._shared, mode.shared)
        elif mode.mode != "paused" and not self.is_edge:
            text = f"a shard goes over to {mode.mode!r} by an event where the shards meet, but names none"
            self.findings.add(event.number, "mode", text)
        # Said again, once the others know of it.
        if mode.shared is None or mode.mode != self._mode:
            super()._take_mode(event, mode)

    def _take_lease(self, event: Event, lease: events.Lease) -> None:
        if self._granted is None or self._granted.record != lease:
            self.findings.add(event.number, "lease", f"no such lease {lease.number} was granted where the shards meet")
            return
        if self.checks.is_leased:
            self.findings.add(event.number, "lease", "a lease must be handed in before the next begins")
        self.checks.lease(self._granted)

    def _end_lease(self, event: Event, record: events.LeaseEnded) -> None:
        checks, granted = self.checks, self._granted
        if not checks.is_leased or granted is None or record.lease != granted.record.number:
            self.findings.add(event.number, "lease", f"lease {record.lease} ended, which the shard does not have")
        fact, moved = checks.end()
        self.segments[record.lease] = Segment(
            checks.rounds, checks.rewards, event.time, record.untimed, fact, self.tally.is_refuted, moved
        )
        checks.rounds, checks.rewards = [], []


@dataclass
class Grant:
    """A lease, and the linear book or the banks of all rounds merged so far as they stood when it was granted."""

    record: events.Lease
    known: Any


@dataclass(slots=True, kw_only=True)
class MergedRound(OpenRound):
    """A round that was handed in, and its reward once it has one; `booked` is what a guard's banks settle it by."""

    handed: Any
    booked: Sequence[Any]
    reward: dict[str, float | None] | None = None


@dataclass
class AuditedShard:
    """What the chain where the shards meet says of one of them."""

    since: float
    through: float
    token: str
    auditor: ShardAuditor | None
    view: View | None  # its chain
    lease: int = 0
    modes_before: int = 0  # of all shards, when the lease was granted
    amounts: tuple[float, ...] = ()  # that it may lose
    frozen: Sequence[Any] = ()  # a guard's banks, as its newest lease knew them
    is_away: bool = False
    has_left: bool = False
    waiting: deque[MergedRound] = field(default_factory=deque)
    rounds: dict[int, MergedRound] = field(default_factory=dict)  # that are not settled
    last_round: int = 0


class SharedChain(ABC):
    """The chain where shards meet, event by event."""

    is_pair: bool
    patience: int | None = None  # of a guard

    def __init__(self, hub: Journal, name: str, journals: Mapping[str, Journal], expected: HeadSearch) -> None:
        self._hub, self._name, self._journals, self.expected = hub, name, journals, expected
        self.findings, self.tally = Findings(), AuditCounts()
        self.chain = HashChain(name, self.findings)
        self.created: events.Created | None = None
        self.coins: CoinFairness | None = None
        self.shards: dict[str, AuditedShard] = {}
        self._watermark = self._time = -math.inf
        self._turns = Turns[MergedRound](self.patience)

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
            record = read_payload(event.kind, event.payload, is_pair=self.is_pair)
            if event.key != _key(record):
                self.findings.add(event.number, "key", f"it must be found by {_key(record)!r}, but has {event.key!r}")
            getattr(self, f"_take_{event.kind}")(event, record)
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
            self.findings.add(event.number, "payload", f"it cannot be worked with as a {event.kind}: {error}")

    def _take_created(self, event: Event, created: events.Created) -> None:
        if not created.is_hub or self.created is not None:
            self.findings.add(event.number, "created", "it must be a sharded experiment, which is created once")
        self.created, self._first = created, event.hash
        self.tally.modes.append((event.number, created.mode))
        for text in faults(created):
            self.findings.add(event.number, "settings", text)
        self._begin(created)

    def _take_joined(self, event: Event, joined: events.Joined) -> None:
        if joined.shard in self.shards or not joined.since >= self._watermark:
            self.findings.add(event.number, "joined", f"shard {joined.shard!r} joins once, after what is merged")
        if self._is_ahead(joined.since) and joined.since != self._watermark:
            self.findings.add(event.number, "clock", self._ahead(joined.shard, joined.since))
        view = self._chain_of(joined.shard)
        auditor = None if view is None else self._auditor(view)
        if auditor is not None:
            auditor.is_edge = joined.shard not in self._journals
            auditor.advance(None)
            self._check_declared(event, joined, auditor.created)
        self.shards[joined.shard] = AuditedShard(joined.since, joined.since, joined.token, auditor, view)

    def _is_ahead(self, moment: float) -> bool:
        """Whether a clock was further ahead of that of this chain than was declared."""
        assert self.created is not None
        return moment > self._time + (self.created.skew or 0.0) / 2

    def _ahead(self, shard: str, moment: float) -> str:
        assert self.created is not None
        return (
            f"shard {shard!r} was at {moment!r} when it was {self._time!r} where the shards meet: more than half of "
            f"the declared skew of {self.created.skew or 0.0:g} seconds ahead"
        )

    def _chain_of(self, shard: str) -> View | None:
        """The shard's own chain; that of an edge is kept where the shards meet."""
        if shard in self._journals:
            return self._journals[shard].view(self._name)
        chain = edge_chain(self._name, shard)
        return self._hub.view(chain) if chain in self._hub.names() else None

    def _check_declared(self, event: Event, joined: events.Joined, own: events.Created | None) -> None:
        """A shard decides by what was declared where the shards meet, in the one journal that it joined with."""
        assert self.created is not None
        expected = msgspec.structs.replace(self.created, shard=joined.shard, token=joined.token, hub=self._first)
        if own != expected:
            fields = [] if own is None else own.__struct_fields__
            differing = ", ".join(one for one in fields if getattr(own, one) != getattr(expected, one))
            text = f"shard {joined.shard!r} must begin with what the hub declares, but differs in {differing}"
            self.findings.add(event.number, "created", text)

    def _take_snapshot(self, event: Event, snapshot: events.Snapshot) -> None:
        """It only saves time: everything is rebuilt here from the events."""
        self.tally.snapshots += 1

    def _take_mode(self, event: Event, mode: events.Mode) -> None:
        """The mode of all shards, from the next lease of each on."""
        known = self.tally.modes[-1][1]
        if mode.mode not in (known, *NEXT_MODES[known]):
            self.findings.add(event.number, "mode", f"an experiment cannot go from {known!r} to {mode.mode!r}")
        self.tally.modes.append((event.number, mode.mode))

    def _take_lost(self, event: Event, lost: events.Lost) -> None:
        shard = self.shards[lost.shard]
        if not lost.reason.strip():
            self.findings.add(event.number, "lost", f"nobody says why shard {lost.shard!r} is not waited for")
        shard.is_away = True
        for merged in list(shard.rounds.values()):
            self._settle(shard, merged, None)
        self._merge()

    def _begin_lease(self, event: Event, lease: events.Lease) -> AuditedShard:
        """What every lease must be, whatever it grants."""
        shard = self.shards[lease.shard]
        if lease.number != shard.lease + 1 or any(shard.amounts):
            text = f"lease {shard.lease + 1} of {lease.shard!r} is next, once the one before is handed in"
            self.findings.add(event.number, "lease", text)
        if shard.has_left:
            self.findings.add(event.number, "lease", f"shard {lease.shard!r} has left, and is leased to again")
        if float(lease.watermark) != self._watermark:
            text = f"rounds are merged up to {self._watermark!r}, but {lease.watermark!r} is written"
            self.findings.add(event.number, "watermark", text)
        shard.lease, shard.is_away, shard.modes_before = lease.number, False, len(self.tally.modes) - 1
        if shard.auditor is not None and shard.auditor.waits_for == lease.number:
            shard.auditor.granted_in = self.tally.modes[-1]
        return shard

    def _check_hand_in(self, shard: AuditedShard, hand_in: Any, problems: RoundProblems) -> Segment | None:
        """What was handed in must be what the shard's own chain holds, where that was given."""
        self.tally.decisions += len(hand_in.rounds)
        self.tally.learner += sum(round_.is_learner for round_ in hand_in.rounds)
        if hand_in.lease != shard.lease:
            problems.add(
                "lease", f"lease {shard.lease} of {hand_in.shard!r} is to be handed in, but got {hand_in.lease}"
            )
        if hand_in.token != shard.token:
            problems.add("token", f"shard {hand_in.shard!r} must hand in by the journal that it joined with")
        if self._is_ahead(hand_in.through):
            problems.add("clock", self._ahead(hand_in.shard, hand_in.through))
        modes = [mode for _, mode in self.tally.modes[shard.modes_before :]]
        if "guarded" not in modes and any(round_.is_learner for round_ in hand_in.rounds):
            problems.add("mode", f"the learner played, but from the lease on all shards were to be {modes[-1]!r}")
        moments = [shard.since, *(round_.moment for round_ in hand_in.rounds), hand_in.through]
        numbers = [round_.number for round_ in hand_in.rounds]
        is_whole = numbers == list(range(shard.last_round + 1, shard.last_round + 1 + len(numbers)))
        if moments != sorted(moments) or not is_whole:
            problems.add("rounds", "rounds must be handed in whole, in the order of their moments")
        if shard.auditor is None:
            return None
        segment = shard.auditor.segments.pop(hand_in.lease, None)
        if segment is None or not same_rounds(segment.rounds, hand_in.rounds) or segment.rewards != hand_in.rewards:
            problems.add("rounds", f"they are not those of the chain of shard {hand_in.shard!r}")
        elif (segment.through, segment.untimed) != (hand_in.through, hand_in.untimed):
            problems.add("rounds", f"by its chain it was complete at {segment.through!r}, untimed={segment.untimed}")
        return segment

    def _receive(self, shard: AuditedShard, hand_in: Any) -> None:
        """Take the rounds in, and merge what every shard has handed in before the watermark."""
        shard.is_away = shard.has_left = hand_in.leaves
        shard.last_round = shard.last_round + len(hand_in.rounds)
        for round_ in hand_in.rounds:
            merged = MergedRound(
                round=round_.number,
                time=round_.moment,
                is_learner=round_.is_learner,
                waits=False,
                handed=round_,
                booked=self._booked(shard, round_),
            )
            shard.rounds[round_.number] = merged
            if round_.moment < self._watermark:  # it was not waited for: it counts, and is not learned
                self._count(merged)
                self._settle(shard, merged, None)
            else:
                shard.waiting.append(merged)
                if hand_in.untimed:
                    self._settle(shard, merged, None)
        shard.since, shard.through = hand_in.through, max(hand_in.through, self._watermark)
        for number, reward in hand_in.rewards:
            if number in shard.rounds:
                self._settle(shard, shard.rounds[number], reward)
        self._merge()

    def _settle(self, shard: AuditedShard, merged: MergedRound, reward: Any) -> None:
        merged.reward = reward
        shard.rounds.pop(merged.round, None)
        self._turns.settle(merged)
        self._learn()

    def _merge(self) -> None:
        present = [shard.through for shard in self.shards.values() if not shard.is_away]
        latest = max(shard.through for shard in self.shards.values())
        self._watermark = max(self._watermark, min(present) if present else math.nextafter(latest, math.inf))
        ready = []
        for name, shard in self.shards.items():
            while shard.waiting and shard.waiting[0].time < self._watermark:
                merged = shard.waiting.popleft()
                ready.append((merged.time, name, merged.round, merged))
        heapq.heapify(ready)
        while ready:
            self._count(heapq.heappop(ready)[3])
            self._learn()

    def end(self) -> None:
        """Check what can be known only at the end: that modes which shards took over were said here."""
        modes = dict(self.tally.modes)
        for name, shard in self.shards.items():
            for number, mode in () if shard.auditor is None else shard.auditor.modes:
                if modes.get(number) != mode:
                    text = f"shard {name!r} went over to {mode!r} by event {number}, which says otherwise"
                    self.findings.add(number, "mode", text)

    @abstractmethod
    def _begin(self, created: events.Created) -> None:
        """Begin with what was declared."""

    @abstractmethod
    def _auditor(self, view: View) -> ShardAuditor:
        """The audit of a shard's own chain."""

    def _booked(self, shard: AuditedShard, round_: Any) -> Sequence[Any]:
        """What a guard's round is settled by, from what its lease knew."""
        return ()

    @abstractmethod
    def _count(self, merged: MergedRound) -> None:
        """Count a round in the order of learning."""

    def _learn(self) -> None:
        """Learn the rewards whose turn it is."""
        while (merged := self._turns.due()) is not None:
            self._enter(merged)

    @abstractmethod
    def _enter(self, merged: MergedRound) -> None:
        """Learn one of them."""


def same_rounds(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether two lists tell of the same rounds, to the bit."""
    return len(ours) == len(theirs) and all(
        msgspec.structs.astuple(one) == msgspec.structs.astuple(other) for one, other in zip(ours, theirs, strict=True)
    )


def _key(record: Any) -> str | None:
    match record:
        case events.Joined():
            return f"j:{record.shard}"
        case events.Lease():
            return f"l:{record.shard}:{record.number}"
        case events.HandIn():
            return f"h:{record.shard}:{record.lease}"
    return None


CARRIED = "earlier proof over all shards"


class LeasedChecks(LinearChecks):
    """Everything that the events of a shard say, lease after lease."""

    def __init__(self, declared: Declarations) -> None:
        super().__init__(declared)
        self._shared, self.is_leased = declared, False
        self._between: list[RecordedRound] = []  # rounds of the baseline since the last hand-in
        self._before: LinearFact | None = None  # what was proved when a round was moved, until the learner plays again
        self.moved = 0.0  # what that may have cost

    def lease(self, granted: Grant) -> None:
        """Begin an empty ledger on the set of that moment; rounds since the last hand-in count in it."""
        (amount,), book = granted.record.amounts, granted.known
        self.declared = replace(self._shared, constraint=RESERVE if amount > 0 else CUMULATIVE, amount=amount)
        self.estimate, self._likelihood = book.estimate, book._likelihood
        self._offered = book._offered  # what was offered to any shard
        self._begin_ledger(book.account)
        self.is_leased = True
        between, self._between = self._between, []
        for round_ in between:
            self._count_baseline(round_)

    def end(self) -> tuple[LinearFact | None, float]:
        """End the lease; what its rounds are worth at least, and what rounds that were moved may have cost."""
        fact, moved = self._fact(), self.moved
        self._begin_ledger(self.account)
        self.is_leased = False
        return fact, moved

    def _fact(self) -> LinearFact | None:
        bound = self.declared.knowledge.theta_bound
        since = None if self._proved is None else self._proved.line(bound)
        before = self._before
        if since is None or before is None:
            return since or before
        error = before.error + since.error
        return LinearFact(
            before.normal + since.normal, before.level + since.level, error, before.claimed + since.claimed
        )

    def _begin_ledger(self, before: AuditLedger) -> None:
        self.account, self._proved = before.emptied(), None
        self._before, self.moved = None, 0.0

    def move(self, decided: RecordedRound, played: int) -> None:
        """A round was not played as decided: what was proved is carried on, less what that can have cost."""
        alpha, bound, known = self.declared.alpha, self.declared.knowledge.theta_bound, self._fact()
        super().move(decided, played)
        if known is None:  # the alarm is on
            return
        was = _question(decided.rows[decided.action], decided.displaced, alpha, is_learner=decided.is_learner)
        now = _question(decided.rows[played], decided.displaced, alpha, is_learner=played != decided.baseline)
        change = was - now
        cost = bound * float(np.linalg.norm(change)) * (1 + 64 * EPS)
        least = -self.declared.amount - self.moved
        level, claimed = max(least, known.level), max(least, known.claimed)
        self._before = LinearFact(known.normal - change, level - cost, known.error, claimed - cost)
        self.moved += cost

    def _carry(
        self, round_: RecordedRound, b: Vector, known: tuple[float, float], question: Vector, own: float
    ) -> None:
        super()._carry(round_, b, known, question, own)
        if round_.is_learner and not self.is_alarmed:  # the whole question was proved anew
            self._before, self.moved = None, 0.0

    def _count_baseline(self, round_: RecordedRound) -> None:
        known, displaced = self.declared.known(round_.known), round_.displaced
        self._carry(round_, displaced, known, displaced, 0.0)
        self.account.play(displaced, displaced, known, is_learner=False)

    def judge(self, round_: RecordedRound, problems: RoundProblems) -> None:
        """Check one decision; without a lease the baseline is held."""
        if self.is_leased:
            super().judge(round_, problems)
            return
        if round_.is_learner:
            problems.add("lease", "the learner played without a lease")
        super().judge(replace(round_, is_held=True), problems)
        self._between.append(round_)

    def _check_proposal(self, round_: RecordedRound, problems: RoundProblems) -> None:
        """A proposal may come from anywhere: rewards that are not merged yet steer it."""


class LeasedRows(RowsChecks):
    """Everything that the events of a shard of a linear policy say.

    rounds, rewards: what is to be handed in at the end of the lease
    """

    book: LeasedChecks

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        super().__init__(created, findings, tally)
        self.rounds: list[events.RowsHanded] = []
        self.rewards: list[tuple[int, Values | None]] = []

    def _new_book(self) -> LeasedChecks:
        return LeasedChecks(read_linear(self.created.policy, self.created.settings))

    @property
    def is_leased(self) -> bool:
        """Whether the learner may play."""
        return self.book.is_leased

    def lease(self, granted: Grant) -> None:
        """Go on under a lease."""
        self.book.lease(granted)

    def end(self) -> tuple[LinearFact | None, float]:
        """End the lease, as `LeasedChecks.end`."""
        return self.book.end()

    def handed(self, received: Values, *, is_lost: bool) -> Values | None:
        """The reward that is handed in of a round that was settled."""
        return received or (None if is_lost else {events.METRIC: self.default})

    def _judge(self, event: Event, record: events.RowsRound, mode: str) -> None:
        super()._judge(event, record, mode)
        rows, request = self._rows_of(record, RoundProblems()), record.request
        if rows is None or request.baseline is None or max(record.action, request.baseline) >= len(rows):
            return
        self.rounds.append(
            events.RowsHanded(
                number=record.round,
                moment=event.time,
                played=rows[record.action].tolist(),
                displaced=rows[request.baseline].tolist(),
                is_learner=record.source == "learner",
                baseline_reward=request.baseline_reward,
            )
        )
        if record.is_fallback:
            self.rewards.append((record.round, None))

    def _void(self, event: Event, voided: events.Voided) -> None:
        entry = self.find(voided.decision_id)
        if self.is_leased and self.rounds and entry is not None and entry.round >= self.rounds[0].number:
            super()._void(event, voided)
            return
        text = f"{voided.decision_id!r} was moved, but is not of the present lease: it was handed in"
        self.findings.add(event.number, "voided", text)

    def _move(self, entry: OpenRow, played: int) -> None:
        super()._move(entry, played)
        place = entry.round - self.rounds[0].number
        self.rounds[place] = msgspec.structs.replace(
            self.rounds[place], played=entry.features.tolist(), is_learner=entry.is_learner
        )

    def _book_in(self, features: Vector, reward: float, is_learner: bool, declared: float | None) -> None:
        """A shard proves nothing by its own rewards."""


def frozen_book(book: LinearChecks) -> LinearChecks:
    """A copy of what was learned: the original goes on learning."""
    kept = copy.copy(book)
    kept.estimate, kept._likelihood = copy.deepcopy(book.estimate), copy.deepcopy(book._likelihood)
    kept.account = copy.deepcopy(book.account)
    return kept


def _question(played: Vector, displaced: Vector, alpha: float, *, is_learner: bool) -> Vector:
    return played - (1 - alpha) * displaced if is_learner else alpha * displaced


def question_of(rounds: list[events.RowsHanded], alpha: float, dim: int) -> tuple[Vector, float]:
    """What rounds add up to, z + alpha w - (1 - alpha) v, and the size of what was added."""
    total, size = np.zeros(dim), 0.0
    for round_ in rounds:
        played, displaced = np.array(round_.played), np.array(round_.displaced)
        total += _question(played, displaced, alpha, is_learner=round_.is_learner)
        size += float(np.linalg.norm(played) + np.linalg.norm(displaced))
    return total, size


class SharedFloor(SharedChain):
    """The chain where shards of a linear policy meet."""

    is_pair = False

    def __init__(self, hub: Journal, name: str, journals: Mapping[str, Journal], expected: HeadSearch) -> None:
        super().__init__(hub, name, journals, expected)
        self._question, self._size = np.zeros(0), 0.0
        self._carried: LinearFact | None = None

    def _begin(self, created: events.Created) -> None:
        self._declared = read_linear(created.policy, created.settings)
        self.book = LinearChecks(self._declared)
        dim = self._declared.knowledge.dim
        self._question = np.zeros(dim)
        self._carried = LinearFact(np.zeros(dim), 0.0)

    def _auditor(self, view: View) -> ShardAuditor:
        return ShardAuditor(view, self.expected, rows=LeasedRows)

    def _take_leased(self, event: Event, lease: events.Lease) -> None:
        shard = self._begin_lease(event, lease)
        if lease.learned != self.book.estimate.count:
            text = f"the set has learned {self.book.estimate.count} rewards, but {lease.learned} are written"
            self.findings.add(event.number, "observations", text)
        (amount,) = shard.amounts = tuple(lease.amounts)
        leased = math.fsum(amount for other in self.shards.values() for amount in other.amounts)
        assert self._carried is not None
        reserve = self._declared.amount if self._declared.constraint is RESERVE else 0.0
        bound = self._declared.knowledge.theta_bound
        slack = self._carried.error + 64 * EPS * bound * self._size
        if self.tally.is_refuted and amount > 0:
            self.findings.add(event.number, "alarm", "an amount was leased while the alarm was on")
        # A round that was moved may cost more than its lease; then nothing is leased until what is out is proved again.
        if amount < 0 or (amount > 0 and leased > max(0.0, self._carried.level + reserve + slack)):
            text = f"{leased:.12g} is leased in all, but {self._carried.level + reserve:.12g} is proved"
            self.findings.add(event.number, "leases", text)
        elif amount > 0:
            self.tally.short = max(self.tally.short, leased - (self._carried.level + reserve))
        if shard.auditor is not None and shard.auditor.waits_for == lease.number:
            shard.auditor.advance(Grant(lease, frozen_book(self.book)))

    def _take_handed_in(self, event: Event, hand_in: events.RowsHandIn) -> None:
        shard, problems = self.shards[hand_in.shard], RoundProblems()
        level = self._check_segment(shard, hand_in, problems)
        self._receive(shard, hand_in)
        if hand_in.proof is not None and hand_in.proved is not None:
            self._check_proof(hand_in, level, problems)
        elif not hand_in.refuted:
            problems.add("proof", "what is proved of all rounds must be written, but is not")
        if hand_in.refuted and not self.tally.is_refuted:
            text = "the data contradict what was declared" if hand_in.alarm is None else hand_in.alarm[1]
            self.tally.alarms.append((event.number, f"shard {hand_in.shard!r}: {text}"))
        self.tally.is_refuted |= hand_in.refuted or hand_in.alarm is not None
        shard.amounts = ()
        problems.report(event, self.findings)

    def _check_segment(self, shard: AuditedShard, hand_in: events.RowsHandIn, problems: RoundProblems) -> float:
        """What was handed in must be what the shard's own chain holds, and claim no more; what that proves of it."""
        segment = self._check_hand_in(shard, hand_in, problems)
        own, size = question_of(hand_in.rounds, self._declared.alpha, self.book.dim)
        gap = float(np.linalg.norm(own - np.array(hand_in.question)))
        # Once the alarm is on, a shard carries no proof on.
        if hand_in.alarm is None and gap > 1e-9 * (size + 1.0):
            problems.add("question", f"the rounds add up to another question, which differs by {gap:.3g}")
        if shard.auditor is None:
            return hand_in.level
        if segment is not None and segment.is_refuted and hand_in.alarm is None:
            problems.add("alarm", f"the alarm of shard {hand_in.shard!r} is on by its own chain, and is left out here")
        # Each of its decisions was checked to stay above minus the lease; what was not played as decided may cost more.
        moved = 0.0 if segment is None else segment.moved
        least = -math.fsum(shard.amounts) - moved if hand_in.rounds else 0.0
        fact = None if segment is None else segment.fact
        proved, claimed = (least, least) if fact is None else (max(least, fact.level), max(least, fact.claimed))
        rounding = 1e-9 * self._declared.knowledge.theta_bound * (size + 1.0)
        if hand_in.alarm is None and hand_in.level > claimed + rounding:
            problems.add("level", f"the shard's certificates prove {claimed:.12g}, but {hand_in.level:.12g} is claimed")
        return min(proved, hand_in.level)

    def _count(self, merged: MergedRound) -> None:
        round_: events.RowsHanded = merged.handed
        played, displaced = np.array(round_.played), np.array(round_.displaced)
        known = self._declared.known(round_.baseline_reward)
        self.book._offered.add(np.stack([played, displaced]))
        self.book.account.play(played, displaced, known, is_learner=round_.is_learner)
        merged.waits = self.book.teaches(round_.is_learner)
        self._turns.put(merged)

    def _enter(self, merged: MergedRound) -> None:
        reward = None if merged.reward is None else merged.reward[events.METRIC]
        if reward is not None:
            features = np.array(merged.handed.played if merged.is_learner else merged.handed.displaced)
            self.book.learn(features, reward, merged.is_learner)
            self.tally.learned += 1
            self.tally.earned += abs(reward)

    def _check_proof(self, hand_in: events.RowsHandIn, level: float, problems: RoundProblems) -> None:
        """What is proved of all rounds handed in: by the newest set, what was proved before, and this certificate."""
        assert hand_in.proof is not None
        assert hand_in.proved is not None
        assert self._carried is not None
        own, size = question_of(hand_in.rounds, self._declared.alpha, self.book.dim)
        self._size += size
        self._question = self._question + own
        bound = self._declared.knowledge.theta_bound
        question, scale = np.array(hand_in.proof.question), Tolerances(bound * self._size, bound * self._size)
        if bound * float(np.linalg.norm(question - self._question)) > scale.gap:
            problems.add("question", "the proof must be about all rounds handed in, but is about others")
        certificate = LinearFact(np.array(hand_in.question), level, 8 * EPS * bound * size, hand_in.level)
        known = {CARRIED: [self._carried], f"certificate of shard {hand_in.shard}": [certificate]}
        checker = ProofChecker(bound, self.book._sets, lambda name, *_: known.get(name, []), scale)
        value = checker.check(read_proof(hand_in.proof), question, problems)
        self.tally.proofs += 1
        if hand_in.proved > value + scale.blur:
            problems.add("proof", f"{value:.12g} is proved of all rounds, but {hand_in.proved:.12g} is claimed")
        # Handed on is the audit's own value; the record's is only the most that it may claim.
        self._carried = LinearFact(question, value, 8 * EPS * bound * self._size, hand_in.proved)


def frozen_banks(banks: Sequence[RebuiltBank], record: events.Lease) -> list[RebuiltBank]:
    """A copy that holds the lease and no more: all that is beyond it counts as owed."""
    kept = [copy.deepcopy(bank) for bank in banks]
    for bank, amount in zip(kept, record.amounts, strict=True):
        bank.carried, bank.owed = amount, max(0.0, bank.bound + bank.metric.reserve - amount)
    return kept


class LeasedGuardChecks(GuardChecks):
    """Everything that the events of a guard's shard say, lease after lease.

    rounds, rewards: what is to be handed in at the end of the lease
    """

    is_leased = False

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        super().__init__(created, findings, tally)
        self.rounds: list[events.PairHanded] = []
        self.rewards: list[tuple[int, Values | None]] = []

    def lease(self, granted: Grant) -> None:
        """Go on with what was leased."""
        self._banks, self.is_leased = granted.known, True
        self._committed.lease = granted.record

    def end(self) -> tuple[None, float]:
        """End the lease; a guard proves nothing of its rounds, and moves none."""
        self.is_leased = False
        return None, 0.0

    def handed(self, received: Values, *, is_lost: bool) -> dict[str, float | None] | None:
        """The rewards that are handed in of a round that was settled."""
        if not is_lost:
            return {**received}
        return {metric.name: received.get(metric.name) for metric in self._declared.metrics} if received else None

    def _book(self, event: Event, record: events.PairRound, teaches: bool) -> None:
        super()._book(event, record, teaches)
        self.rounds.append(
            events.PairHanded(
                number=record.round,
                moment=event.time,
                share=record.share,
                draw=record.draw,
                is_learner=record.source == "learner",
                teaches=teaches,
                prediction=record.prediction,
            )
        )

    def _expected_shares(self, record: events.PairRound, teaches: bool) -> tuple[float, float]:
        """Without a coin it is nothing: so plays a shard that has lost what its lease knew, and nothing is spent."""
        is_drawn = record.share != 0.0 or record.draw is not None
        return super()._expected_shares(record, teaches) if self.is_leased and is_drawn else (0.0, 0.0)

    def _check_figures(self, certificate: events.BankCertificate, share: float, problems: RoundProblems) -> None:
        """A round without a share rests on no bank, and a shard that lost its lease knows but an older one's."""
        if share != 0.0:
            super()._check_figures(certificate, share, problems)

    def _earn(self, bank: RebuiltBank, booked: BookedRound, entry: OpenPair, value: float) -> None:
        """A shard earns nothing: its rewards enter where all are merged."""


class SharedBank(SharedChain):
    """The chain where shards of a guard meet."""

    is_pair = True
    patience = GuardChecks.patience

    coins: CoinFairness

    def _begin(self, created: events.Created) -> None:
        self._declared: GuardDeclarations = read_guard(created.settings)
        self._banks = [RebuiltBank(metric) for metric in self._declared.metrics]
        self._entered = 0
        self.coins = CoinFairness(len(self._banks))
        self._commitments: dict[str, tuple[str, int]] = {}  # to secrets of coins: whose they are, and their block
        self._blocks: dict[tuple[str, int], str] = {}  # the same by whose they are

    def _auditor(self, view: View) -> ShardAuditor:
        return ShardAuditor(view, self.expected, pair=LeasedGuardChecks)

    def _take_leased(self, event: Event, lease: events.Lease) -> None:
        shard = self._begin_lease(event, lease)
        if lease.learned != self._entered:
            text = f"the banks have taken in {self._entered} rounds, but {lease.learned} are written"
            self.findings.add(event.number, "observations", text)
        if len(lease.amounts) != len(self._banks) or not all(amount >= 0.0 for amount in lease.amounts):
            self.findings.add(event.number, "leases", "a lease must grant an amount of each metric, at least 0")
            return
        self._check_commitments(event, shard, lease)
        shard.amounts, shard.frozen = tuple(lease.amounts), frozen_banks(self._banks, lease)
        for i, bank in enumerate(self._banks):
            leased = math.fsum(other.amounts[i] for other in self.shards.values() if other.amounts)
            waiting = (merged.handed.share for other in self.shards.values() for merged in other.waiting)
            held = bank.held_at(1.0) - math.fsum(map(bank.cost, waiting))
            if leased > max(0.0, held) + WRITTEN * (1.0 + abs(bank.held)):
                text = f"{leased:.12g} of {bank.metric.name!r} is leased in all, but the bank holds {held:.12g}"
                self.findings.add(event.number, "leases", text)
        if shard.auditor is not None and shard.auditor.waits_for == lease.number:
            shard.auditor.advance(Grant(lease, frozen_banks(self._banks, lease)))

    def _check_commitments(self, event: Event, shard: AuditedShard, lease: events.Lease) -> None:
        """An edge's coins follow from secrets that no other block has, from the block of its next round on."""
        if lease.coins is None:
            return
        if lease.block != shard.last_round // BLOCK:
            text = f"block {shard.last_round // BLOCK} of its coins is next, but the lease begins with {lease.block}"
            self.findings.add(event.number, "block", text)
        for block, commitment in enumerate(lease.coins, lease.block):
            of = lease.shard, block
            if self._commitments.setdefault(commitment, of) != of:
                self.findings.add(event.number, "block", f"block {block} of its coins has the secret of another block")
            if self._blocks.setdefault(of, commitment) != commitment:
                self.findings.add(event.number, "block", f"block {block} of its coins has had another secret")

    def _take_handed_in(self, event: Event, hand_in: events.PairHandIn) -> None:
        shard, problems = self.shards[hand_in.shard], RoundProblems()
        self._check_hand_in(shard, hand_in, problems)
        self._check_rounds(shard, hand_in, problems)
        self._receive(shard, hand_in)
        shard.amounts = ()
        problems.report(event, self.findings)

    def _check_rounds(self, shard: AuditedShard, hand_in: events.PairHandIn, problems: RoundProblems) -> None:
        """Every coin chose its side, and all shares together cost no more than the lease at their worst."""
        for round_ in hand_in.rounds:
            is_coin = round_.draw is None
            if round_.share != 0.0:
                is_coin = round_.teaches and round_.draw is not None and 0.0 <= round_.draw < 1.0
            is_learner = round_.draw is not None and round_.draw < round_.share
            if not (0.0 <= round_.share <= self._declared.most and is_coin and is_learner == round_.is_learner):
                problems.add("draw", f"round {round_.number} cannot have been played by a coin of {round_.draw!r}")
            elif round_.draw is not None:
                predictions = [predicted(round_.prediction, bank, self._declared) for bank in self._banks]
                if self.coins.toss(round_.share, round_.draw, round_.is_learner, predictions):
                    problems.add("coins", unfair(self.coins))
        self.tally.proofs += len(hand_in.rounds)
        self.tally.pieces += len(hand_in.rounds) * len(self._banks)
        for bank, amount in zip(self._banks, shard.amounts or [0.0] * len(self._banks), strict=True):
            cost = math.fsum(bank.cost(round_.share) for round_ in hand_in.rounds)
            if cost > amount + WRITTEN * (1.0 + amount):
                text = f"its rounds may cost {cost:.12g} of {bank.metric.name!r}, but {amount:.12g} was leased"
                problems.add("gate", text)

    def _booked(self, shard: AuditedShard, round_: Any) -> list[BookedRound]:
        # Where it had no lease, which is found apart, by what is known now.
        banks = shard.frozen or self._banks
        return [bank.plan(round_.share, predicted(round_.prediction, bank, self._declared)) for bank in banks]

    def _count(self, merged: MergedRound) -> None:
        round_: events.PairHanded = merged.handed
        for bank in self._banks:
            bank.charge(round_.share, round_.is_learner)
        merged.waits, merged.is_income = round_.share > 0.0, round_.share <= 0.0
        self._turns.put(merged)

    def _enter(self, merged: MergedRound) -> None:
        is_late = merged.is_late and merged.is_settled
        for bank, booked in zip(self._banks, merged.booked, strict=True):
            reward = self._value(bank, merged.reward) if merged.is_settled else math.nan
            bank.enter(booked, merged.is_learner, reward, is_late=is_late)
        self._entered += not is_late
        self.tally.learned += merged.is_settled

    def _value(self, bank: RebuiltBank, reward: dict[str, float | None] | None) -> float:
        """A reward as the bank takes it: abandoned, it counts at its worst; missing, as its default if there is one."""
        metric = bank.metric
        if reward is None:
            return math.nan
        if metric.name not in reward:
            return metric.default
        value = reward[metric.name]
        if value is None:
            return math.nan
        if not metric.holds(value):
            self.findings.add(self.tally.events, "reward", f"a reward of {metric.name!r} leaves its declared bounds")
        return metric.scaled(value)


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
    >>> from surefoot.experiment import create_shared
    >>> hub = surefoot.open_journal("memory:")
    >>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    >>> create_shared(hub, "shop", policy)
    >>> audit_shards(hub, "shop", {}).is_clean
    True
    """
    view = hub.view(name)
    created = declared(view)
    kind = SharedBank if created is not None and created.policy in GUARDS else SharedFloor
    floor: SharedChain = kind(hub, name, journals, HeadSearch(hashes=expect))
    for event in view.read(verify=False):
        floor.take(event)
    floor.chain.end(view.head)
    reports = {}
    for shard, member in floor.shards.items():
        if member.auditor is not None and member.view is not None:
            member.auditor.chain.end(member.view.head)
            reports[shard] = member.auditor.report(f"{name} ({shard})")
    for shard in sorted(set(journals) - set(floor.shards)):
        floor.findings.add(0, "unknown", f"a journal of shard {shard!r} is given, which never joined here")
    floor.end()
    floor.tally.check_rounding(floor.findings)
    floor.expected.end(floor.chain.head.number, floor.findings)
    missing = tuple(shard for shard, member in floor.shards.items() if member.auditor is None)
    own = Report(name, floor.created, floor.tally, floor.findings, floor.chain.head, floor.coins)
    return SharedReport(own, reports, missing)


def declared(view: View) -> events.Created | None:
    """What the first event says; None where it cannot be read, which an audit finds."""
    try:
        return msgspec.json.decode(next(iter(view.read(limit=1, verify=False))).payload, type=events.Created)
    except (msgspec.MsgspecError, StopIteration, JournalCorruptedError):
        return None
