"""The state of one shard at a head of its own chain: what it decided since its lease, and what it has to hand in."""

from typing import Any, cast

import numpy as np

from surefoot import records
from surefoot.errors import AlarmError, ConfigError, JournalCorruptedError
from surefoot.experiment.snapshots import pack, unpack
from surefoot.experiment.state import APPLY, KINDS, State, decode
from surefoot.journal import Event, Head, View
from surefoot.leases import HandIn, Lease, LeasedLUCB, LeasedRound
from surefoot.policies.base_policy import BasePolicy
from surefoot.records import Created, HandedIn, HandedRound, LeaseRecord
from surefoot.safety.alarm import Alarm, AlarmKind


class ShardState(State):
    """A shard at `head`."""

    moves_rounds = False  # one that was handed in stands in the shared ledger as it was decided

    def __init__(self, created: Created, policy: BasePolicy, head: Head, time: float) -> None:
        if created.shard is None or created.token is None or not isinstance(policy, LeasedLUCB):
            raise ConfigError(
                "This is the ledger that shards share: join it by `ShardedExperiment.join`, with a journal of the "
                "shard's own."
            )
        super().__init__(created, policy, head, time)
        self.shard, self.token, self.leased_policy = created.shard, created.token, policy
        self.lease: LeaseRecord | None = None
        self.since: list[HandedRound] = []  # rounds that are not handed in
        self.due: HandedIn | None = None  # what is to be handed in before the next lease

    def decided(self, record: records.DecisionRecord | records.Guarded, time: float) -> None:
        """Count a round, and keep what is handed in of it."""
        super().decided(record, time)
        assert isinstance(record, records.DecisionRecord)
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

    def voided(self, record: records.Voided, decision: Event, view: View) -> None:
        """Refuse: no shard writes this."""
        raise JournalCorruptedError(f"A round of a shard is never moved, but {record.decision_id!r} was.")

    def acknowledged(self, record: records.Acknowledged) -> None:
        """Refuse: a restart would have to reach all shards at once."""
        raise AlarmError(
            "The alarm of a shared floor cannot be answered, but got "
            f"{record.response!r}. Only the baseline plays from now on: start a new experiment."
        )

    def renewed(self, record: LeaseRecord, data: bytes | None) -> None:
        """Go on under a lease; without its set, which was lost, only the baseline plays."""
        self.lease, self.due = record, None
        if data is not None:
            self.leased_policy.renew(lease_of(record, data), [_round(made) for made in self.since])

    def ended(self, record: records.LeaseEnded) -> None:
        """From now on only the baseline plays; what was done under the lease is to be handed in."""
        if self.lease is None or record.lease != self.lease.number:
            raise JournalCorruptedError(f"Lease {record.lease} ended, but the shard has {self.lease!r:.80}.")
        question, level = self.leased_policy.proved
        alarm = self.policy.alarm
        self.due = HandedIn(
            shard=self.shard,
            token=self.token,
            lease=record.lease,
            rounds=self.since,
            rewards=self.leased_policy.take_settled(),
            question=question.tolist(),
            # Also where the set of the lease was lost, and less can be proved by an older one.
            level=max(level, -self.lease.amount),
            through=self.time,
            alarm=None if alarm is None else (alarm.kind, alarm.text),
            untimed=record.untimed,
        )
        self.leased_policy.end_lease()
        self.since = []


def lease_of(record: LeaseRecord, data: bytes) -> Lease:
    """The lease that a record and its attachment stand for."""
    told = record.shard, record.number, record.amount, record.since, float(record.watermark), record.merged
    return Lease(*told, unpack(data, dict[str, Any]))


def packed(lease: Lease) -> bytes:
    """The policy of a lease as bytes."""
    return pack(lease._state)


def given_of(record: HandedIn) -> HandIn:
    """A hand-in as the coordinator takes it."""
    return HandIn(
        shard=record.shard,
        lease=record.lease,
        rounds=tuple(_round(made) for made in record.rounds),
        rewards=tuple(record.rewards),
        question=np.array(record.question, dtype=np.float64),
        level=record.level,
        through=record.through,
        alarm=None if record.alarm is None else Alarm(cast("AlarmKind", record.alarm[0]), 0, record.alarm[1]),
        is_untimed=record.untimed,
    )


def _round(made: HandedRound) -> LeasedRound:
    known: Any = tuple(made.baseline_reward) if isinstance(made.baseline_reward, list) else made.baseline_reward
    rows = np.array([made.played, made.displaced], dtype=np.float64)
    return LeasedRound(made.number, made.moment, rows[0], rows[1], made.is_learner, known)


def _leased(state: State, event: Event, view: View) -> None:
    assert isinstance(state, ShardState)
    record = decode(event, LeaseRecord)
    state.renewed(record, view.attachment(record.digest))


def _ended(state: State, event: Event, view: View) -> None:
    assert isinstance(state, ShardState)
    # Its own time, as the live process had it.
    state.time = max(state.time, event.time)
    state.ended(decode(event, records.LeaseEnded))


KINDS[records.SHARDED] = ShardState
APPLY.update({records.LEASED: _leased, records.LEASE_ENDED: _ended})
