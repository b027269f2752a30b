"""The state of one shard at a head of its own chain: what it decided since its lease, and what it has to hand in."""

import math
from abc import abstractmethod
from typing import Any

import msgspec

from surefoot import records
from surefoot.errors import AlarmError, ConfigError, JournalCorruptedError
from surefoot.experiment.lease_forms import BANK, LINEAR, AnyHandedIn, AnyLeaseRecord, LeaseForm, leased_round
from surefoot.experiment.new_decision import AnyRound
from surefoot.experiment.state import APPLY, KINDS, State, decode, round_of
from surefoot.journal import Event, Head, View
from surefoot.leases import LeasedGuard, LeasedLUCB
from surefoot.policies.base_policy import BasePolicy
from surefoot.policies.guard_settings import is_same
from surefoot.records import BankHandedIn, Created, HandedCoin, HandedIn, HandedRound, LeaseEnded, LeaseRecord, encode
from surefoot.safety.alarm import Alarm


class FrozenLease(msgspec.Struct, forbid_unknown_fields=True):
    """What a snapshot keeps of a shard beside its policy; records as they are written."""

    lease: bytes | None
    since: bytes
    due: bytes | None
    shared_mode: int
    unshared: records.Mode | None


class ShardState(State):
    """A shard at `head`."""

    form: LeaseForm

    def __init__(self, created: Created, policy: LeasedLUCB | LeasedGuard, head: Head, time: float) -> None:
        super().__init__(created, policy, head, time)
        assert created.shard is not None
        assert created.token is not None
        self.shard, self.token = created.shard, created.token
        self.lease: Any = None  # the record
        self.is_whole = True  # whether the policy has what the lease knew
        self.since: list[Any] = []  # rounds that are not handed in
        self.due: AnyHandedIn | None = None  # what is to be handed in before the next lease
        self.shared_mode = 0  # the event where the shards meet that the mode was taken from
        self.unshared: records.Mode | None = None  # a pause that the others are to be told of

    def went_over(self, record: records.Mode) -> None:
        """Go over to a mode."""
        super().went_over(record)
        self.unshared = record if record.shared == 0 else None
        self.shared_mode = max(self.shared_mode, record.shared or 0)

    def acknowledged(self, record: records.Acknowledged) -> None:
        """Refuse: a restart would have to reach all shards at once."""
        raise AlarmError(
            "The alarm of a shared floor cannot be answered, but got "
            f"{record.response!r}. Only the baseline plays from now on: start a new experiment."
        )

    def freeze_lease(self) -> bytes:
        """The lease, and what is to be handed in, for a snapshot."""
        lease, due = (None if one is None else encode(one) for one in (self.lease, self.due))
        since = msgspec.json.encode(self.since)
        return msgspec.msgpack.encode(FrozenLease(lease, since, due, self.shared_mode, self.unshared))

    def without_set(self, data: bytes) -> bytes:
        """The same as `freeze_lease` gave, less what rests on what the lease knew."""
        found = msgspec.msgpack.decode(data, type=FrozenLease)
        due = None if found.due is None else msgspec.json.decode(found.due, type=self.form.hand_in)
        if isinstance(due, HandedIn):
            found.due = encode(msgspec.structs.replace(due, question=[], level=0.0, alarm=None, moved=0.0))
        return msgspec.msgpack.encode(found)

    def thaw_lease(self, data: bytes, modes: list[Event]) -> None:
        """Restore what `freeze_lease` gave; what was said of the mode is read from its events, newest first."""
        found, read = msgspec.msgpack.decode(data, type=FrozenLease), msgspec.json.decode
        self.lease = None if found.lease is None else read(found.lease, type=self.form.lease)
        self.due = None if found.due is None else read(found.due, type=self.form.hand_in)
        self.since = read(found.since, type=list[self.form.round])  # type: ignore[name-defined]
        for event in reversed(modes):
            # Those from after the snapshot are applied once more.
            self.went_over(decode(event, records.Mode))

    @abstractmethod
    def renewed(self, record: Any, data: bytes | None) -> None:
        """Go on under a lease; without what it knew, which was lost, only the baseline plays."""

    def ended(self, record: LeaseEnded) -> None:
        """From now on only the baseline plays; what was done under the lease is to be handed in."""
        if self.lease is None or record.lease != self.lease.number:
            raise JournalCorruptedError(f"Lease {record.lease} ended, but the shard has {self.lease!r:.80}.")
        if record.alarm is not None:
            # A replay may be without the set that it was found by, which is removed with its lease.
            kind: Any = record.alarm[0]
            self.leased.recall_alarm(Alarm(kind, *record.alarm[1:]))
        self.due = self._handed_in(record)
        self.leased.end_lease()
        self.since = []

    @property
    @abstractmethod
    def leased(self) -> LeasedLUCB | LeasedGuard:
        """The policy, which plays the learner under a lease only."""

    @abstractmethod
    def _handed_in(self, record: LeaseEnded) -> AnyHandedIn:
        """What was done under the lease that ends."""


class LinearShardState(ShardState):
    """A shard of a linear policy."""

    hands_in = True
    form = LINEAR
    policy: LeasedLUCB

    @property
    def leased(self) -> LeasedLUCB:
        """The policy."""
        return self.policy

    def told_of(self, record: records.DecisionRecord) -> dict[str, Any]:
        """The coin, and the proposal that was refused where the shard's own rewards made it: it claims no bound."""
        is_tried = not record.is_held and float(record.certificate.optimism) == math.inf
        return {**super().told_of(record), "tried": record.certificate.proposal if is_tried else None}

    def decided(self, record: AnyRound, time: float, ref: str | None = None) -> None:
        """Count a round, and keep what is handed in of it."""
        super().decided(record, time, ref)
        assert not isinstance(record, records.Guarded)
        asked, rows = record.asked, record.asked.features
        if asked.catalogue is not None:
            rows = self.catalogues[asked.catalogue].rows.tolist()
        assert rows is not None
        assert asked.baseline is not None
        played, displaced = rows[record.action], rows[asked.baseline]
        is_learner = record.source == "learner"
        self.since.append(HandedRound(
            number=record.round, moment=time, played=played, displaced=displaced, is_learner=is_learner,
            baseline_reward=asked.baseline_reward,
        ))  # fmt: skip

    def may_move(self, round_: int) -> bool:
        """Only under the lease that it counts in: once handed in, it stands in the shared ledger as it was decided."""
        return self.due is None and self.is_whole and bool(self.since) and round_ >= self.since[0].number

    def voided(self, record: records.Voided, decision: Event, view: View, time: float) -> None:
        """Move a round of the present lease, and what is handed in of it."""
        super().voided(record, decision, view, time)
        asked = decode(decision, records.DecisionRecord).asked
        place, played = round_of(decision) - self.since[0].number, int(record.action)
        rows: Any = asked.features
        if asked.catalogue is not None:
            rows = self.catalogue(asked.catalogue, view).rows.tolist()
        is_learner = played != asked.baseline
        self.since[place] = msgspec.structs.replace(self.since[place], played=rows[played], is_learner=is_learner)

    def renewed(self, record: LeaseRecord, data: bytes | None) -> None:
        """Go on under a lease."""
        self.lease, self.due, self.is_whole = record, None, data is not None
        if data is not None:
            self.policy.renew(LINEAR.lease_of(record, data), [leased_round(made) for made in self.since])

    def _handed_in(self, record: LeaseEnded) -> HandedIn:
        # Also where the set of the lease was lost, and less can be proved by an older one.
        question, level = self.policy.proved(self.lease.amount)
        alarm = self.policy.alarm
        return HandedIn(
            shard=self.shard,
            token=self.token,
            lease=record.lease,
            rounds=self.since,
            rewards=self.policy.take_settled(),
            question=question.tolist(),
            level=level,
            through=self.time,
            alarm=None if alarm is None else (alarm.kind, alarm.text),
            untimed=record.untimed,
            moved=self.policy.moved,
        )


class BankShardState(ShardState):
    """A shard of a guard; what was really played changes nothing of a round, so it may be said here, too."""

    form = BANK
    policy: LeasedGuard

    @property
    def leased(self) -> LeasedGuard:
        """The policy."""
        return self.policy

    def decided(self, record: AnyRound, time: float, ref: str | None = None) -> None:
        """Count a round, and keep what is handed in of it."""
        super().decided(record, time, ref)
        assert isinstance(record, records.Guarded)
        asked = record.asked
        self.since.append(HandedCoin(
            number=record.round, moment=time, share=record.share, draw=record.draw,
            is_learner=record.source == "learner", teaches=not is_same(asked.baseline, asked.proposal),
            prediction=asked.prediction,
        ))  # fmt: skip

    def renewed(self, record: records.BankLease, data: bytes | None) -> None:
        """Go on under a lease."""
        self.lease, self.due, self.is_whole = record, None, data is not None
        if data is not None:
            self.policy.renew(BANK.lease_of(record, data))

    def _handed_in(self, record: LeaseEnded) -> BankHandedIn:
        return BankHandedIn(
            shard=self.shard,
            token=self.token,
            lease=record.lease,
            rounds=self.since,
            rewards=self.policy.take_settled(),
            through=self.time,
            untimed=record.untimed,
        )


def _begun(created: Created, policy: BasePolicy, head: Head, time: float) -> ShardState:
    """The state of a shard's chain after its first event."""
    if created.shard is not None and created.token is not None:
        if isinstance(policy, LeasedLUCB):
            return LinearShardState(created, policy, head, time)
        if isinstance(policy, LeasedGuard):
            return BankShardState(created, policy, head, time)
    raise ConfigError(
        "This is the ledger that shards share: join it by `ShardedExperiment.join`, with a journal of the shard's own."
    )


def _leased(state: State, event: Event, view: View) -> None:
    assert isinstance(state, ShardState)
    record: AnyLeaseRecord = decode(event, state.form.lease)
    state.renewed(record, view.attachment(record.digest))


def _ended(state: State, event: Event, view: View) -> None:
    assert isinstance(state, ShardState)
    # Its own time, as the live process had it.
    state.time = max(state.time, event.time)
    state.ended(decode(event, LeaseEnded))


KINDS[records.SHARDED] = _begun
APPLY.update({records.LEASED: _leased, records.BANK_LEASED: _leased, records.LEASE_ENDED: _ended})
