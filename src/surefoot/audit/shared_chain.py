"""The chain where shards meet, whatever they share: who is there, what they hand in, and the order of merging.

The chain of each shard is fed up to its next lease as that one grants it.
"""

import heapq
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from surefoot.audit.auditor import NEXT_MODES, Auditor
from surefoot.audit.chain import HashChain, HeadSearch
from surefoot.audit.coins import CoinFairness
from surefoot.audit.declarations import faults
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.proof_checker import LinearFact
from surefoot.audit.recorded_round import RoundProblems, read_payload
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
            if isinstance(record, events.RowsRound | events.PairRound) and record.source == "learner":
                self._check_mode(event)
            super()._check(event, record)

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
class MergedRound:
    """A round in the order of learning, and its reward once it has one."""

    round: events.RowsHanded | events.PairHanded
    booked: Sequence[Any]  # what a guard's banks settle it by, fixed before its coin
    teaches: bool = False
    is_settled: bool = False
    reward: Any = None
    position: int | None = None  # in the order of learning, once it is counted there


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
    handed_in: int = 0


class SharedChain(ABC):
    """The chain where shards meet, event by event."""

    is_pair: bool

    def __init__(self, hub: Journal, name: str, journals: Mapping[str, Journal], expected: HeadSearch) -> None:
        self._hub, self._name, self._journals, self.expected = hub, name, journals, expected
        self.findings, self.tally = Findings(), AuditCounts()
        self.chain = HashChain(name, self.findings)
        self.created: events.Created | None = None
        self.coins: CoinFairness | None = None
        self.shards: dict[str, AuditedShard] = {}
        self._watermark = self._time = -math.inf
        self._order: deque[MergedRound] = deque()

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

    def _check_handed_in(self, shard: AuditedShard, hand_in: Any, problems: RoundProblems) -> Segment | None:
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
        is_whole = numbers == list(range(shard.handed_in + 1, shard.handed_in + 1 + len(numbers)))
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
        shard.handed_in = shard.handed_in + len(hand_in.rounds)
        for round_ in hand_in.rounds:
            merged = MergedRound(round_, self._booked(shard, round_))
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
        merged.is_settled, merged.reward = True, reward
        shard.rounds.pop(merged.round.number, None)
        self._learn()

    def _merge(self) -> None:
        present = [shard.through for shard in self.shards.values() if not shard.is_away]
        latest = max(shard.through for shard in self.shards.values())
        self._watermark = max(self._watermark, min(present) if present else math.nextafter(latest, math.inf))
        ready = []
        for name, shard in self.shards.items():
            while shard.waiting and shard.waiting[0].round.moment < self._watermark:
                merged = shard.waiting.popleft()
                ready.append((merged.round.moment, name, merged.round.number, merged))
        heapq.heapify(ready)
        while ready:
            self._count(heapq.heappop(ready)[3])
            self._learn()

    def end(self) -> None:
        """Check what can be known only at the end: that modes which shards took over were said here."""
        said = dict(self.tally.modes)
        for name, shard in self.shards.items():
            for number, mode in () if shard.auditor is None else shard.auditor.modes:
                if said.get(number) != mode:
                    text = f"shard {name!r} went over to {mode!r} by event {number}, which does not say so"
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

    @abstractmethod
    def _learn(self) -> None:
        """Learn the rewards whose turn it is."""


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
