"""The chain of one shard, fed up to its next lease as the chain where the shards meet grants it."""

from dataclasses import dataclass
from typing import Any

import msgspec

from surefoot.audit.auditor import Auditor
from surefoot.audit.expected_heads import HeadSearch
from surefoot.audit.proof_checker import LinearFact
from surefoot.journal.events import Event
from surefoot.rounds import events


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
    """The audit of one shard, whatever it is leased."""

    policy: str  # of the experiment; the shard's own is a leased one
    leased: str  # the kind of event that begins a lease
    lease: type[events.Lease | events.Lease]

    def __init__(self, view: Any, expected: HeadSearch) -> None:
        super().__init__(view)
        self._expected = expected
        self._events = view.read(verify=False)
        self._next: Event | None = None
        self.segments: dict[int, Segment] = {}
        self.modes: list[tuple[int, str]] = []  # taken over by the word of an event where the shards meet
        self.is_edge = False  # whose mode is that of its lease
        self.granted_in = (0, "")  # the mode of all shards when the lease was granted, and the event that says so
        self._shared = 0  # the newest of those events that the shard has heard of
        self._granted: Any = None  # what was known when the lease was granted
        self._since: list[Any] = []
        self._rewards: list[tuple[int, Any]] = []
        self._rounds: dict[str, int] = {}

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
        super()._take_created(event, msgspec.structs.replace(created, policy=self.policy))
        self._decides_by = created.policy

    def _take(self, event: Event, record: Any) -> None:
        if isinstance(record, events.RowsRound | events.PairRound) and record.source == "learner":
            self._check_mode(event)
        super()._take(event, record)

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

    def _is_granted(self, event: Event, record: events.Lease) -> bool:
        is_granted = self._granted is not None and self._granted.record == record
        if not is_granted:
            self.findings.add(event.number, "lease", f"no such lease {record.number} was granted where the shards meet")
        return is_granted

    def _check_handed_in(self, event: Event, *, is_leased: bool) -> None:
        if is_leased:
            self.findings.add(event.number, "lease", "a lease must be handed in before the next begins")

    def _end_segment(
        self,
        event: Event,
        record: events.LeaseEnded,
        *,
        is_leased: bool,
        fact: LinearFact | None = None,
        moved: float = 0.0,
    ) -> None:
        if not is_leased or self._granted is None or record.lease != self._granted.record.number:
            self.findings.add(event.number, "lease", f"lease {record.lease} ended, which the shard does not have")
        told = self._since, self._rewards, event.time, record.untimed
        self.segments[record.lease] = Segment(*told, fact, self.tally.is_refuted, moved)
        self._since, self._rewards = [], []
