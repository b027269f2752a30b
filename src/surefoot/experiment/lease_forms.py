"""How leases are written down: of the floor of a linear policy, and of the banks of a guard."""

import math
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import msgspec
import numpy as np

from surefoot import records
from surefoot.errors import ConfigError
from surefoot.experiment.certificate_records import proof_record
from surefoot.experiment.policy_by_name import is_guard
from surefoot.experiment.snapshots import unpack
from surefoot.leases import (
    Coordinator,
    GuardCoordinator,
    GuardHandIn,
    GuardLease,
    GuardRound,
    HandIn,
    Lease,
    LeasedRound,
)
from surefoot.leases.guard_lease import check_guard
from surefoot.leases.lease import check_leasable
from surefoot.policies import Guard, SafeLUCB
from surefoot.policies.base_policy import BasePolicy
from surefoot.records import BankHandedIn, BankLease, Created, HandedCoin, HandedIn, HandedRound, LeaseRecord, number
from surefoot.safety.alarm import Alarm

AnyCoordinator: TypeAlias = Coordinator | GuardCoordinator
AnyLeaseRecord: TypeAlias = LeaseRecord | BankLease
AnyHandedIn: TypeAlias = HandedIn | BankHandedIn


class LeaseForm(ABC):
    """The records of one kind of promise, and what they stand for."""

    shard_policy: str  # by which a shard decides
    leased: str  # the kind of the event that holds a lease
    lease: type[AnyLeaseRecord]
    handed_in: str
    hand_in: type[AnyHandedIn]
    round: type[HandedRound | HandedCoin]
    coordinator: type[AnyCoordinator]

    @abstractmethod
    def given_of(self, record: Any) -> Any:
        """A hand-in as the coordinator takes it."""

    @abstractmethod
    def lease_of(self, record: Any, data: bytes) -> Any:
        """The lease that a record and its attachment stand for."""

    @abstractmethod
    def amount_of(self, record: Any) -> Any:
        """What a lease grants, as the coordinator counts it."""

    @abstractmethod
    def record_of(self, lease: Any, coordinator: Any, digest: str) -> AnyLeaseRecord:
        """A lease that was granted, as it is written."""

    def completed(self, given: Any, coordinator: Any) -> AnyHandedIn:
        """A hand-in with what the coordinator makes of it."""
        done: AnyHandedIn = given
        return done

    def plain(self, given: Any) -> AnyHandedIn:
        """The same as the shard said it."""
        said: AnyHandedIn = given
        return said


class LinearForm(LeaseForm):
    """Of SafeLUCB: one amount, a question, and a proof over all rounds."""

    shard_policy, coordinator = "LeasedLUCB", Coordinator
    leased, lease, handed_in, hand_in, round = records.LEASED, LeaseRecord, records.HANDED_IN, HandedIn, HandedRound

    def given_of(self, record: HandedIn) -> HandIn:
        """A hand-in as the coordinator takes it."""
        alarm: Any = record.alarm
        return HandIn(
            shard=record.shard,
            lease=record.lease,
            rounds=tuple(leased_round(made) for made in record.rounds),
            rewards=tuple(record.rewards),
            question=np.array(record.question, dtype=np.float64),
            level=record.level,
            through=record.through,
            alarm=None if alarm is None else Alarm(alarm[0], 0, alarm[1]),
            is_untimed=record.untimed,
            moved=record.moved,
        )

    def lease_of(self, record: LeaseRecord, data: bytes) -> Lease:
        """The lease that a record and its attachment stand for."""
        told = record.shard, record.number, record.amount, record.since, float(record.watermark), record.merged
        return Lease(*told, unpack(data, dict[str, Any]))

    def amount_of(self, record: LeaseRecord) -> float:
        """What the shard may lose."""
        return record.amount

    def record_of(self, lease: Lease, coordinator: Coordinator, digest: str) -> LeaseRecord:
        """A lease that was granted, as it is written."""
        return LeaseRecord(
            shard=lease.shard,
            number=lease.number,
            amount=lease.amount,
            since=lease.since,
            watermark=number(lease.watermark),
            merged=lease.merged,
            observations=int(coordinator.policy.ridge.count),
            digest=digest,
        )

    def completed(self, given: HandedIn, coordinator: Coordinator) -> HandedIn:
        """With what is proved of all rounds since; nothing, once the alarm is on."""
        if coordinator.policy.alarm is not None:
            return msgspec.structs.replace(given, refuted=True)
        is_dual = coordinator.policy.settings.get("radius") == "dual"
        proof = proof_record(coordinator.proof, with_sets=is_dual)
        return msgspec.structs.replace(given, proof=proof, proved=coordinator.proved)

    def plain(self, given: HandedIn) -> HandedIn:
        """Without what the coordinator proved."""
        return msgspec.structs.replace(given, proof=None, proved=None, refuted=False)


class BankForm(LeaseForm):
    """Of a guard: an amount of each bank, and coins."""

    shard_policy, coordinator = "LeasedGuard", GuardCoordinator
    leased, lease, round = records.BANK_LEASED, BankLease, HandedCoin
    handed_in, hand_in = records.BANK_HANDED_IN, BankHandedIn

    def given_of(self, record: BankHandedIn) -> GuardHandIn:
        """A hand-in as the coordinator takes it."""
        return GuardHandIn(
            shard=record.shard,
            lease=record.lease,
            rounds=tuple(_coin(made) for made in record.rounds),
            rewards=tuple(record.rewards),
            through=record.through,
            is_untimed=record.untimed,
        )

    def lease_of(self, record: BankLease, data: bytes) -> GuardLease:
        """The lease that a record and its attachment stand for."""
        told = record.shard, record.number, tuple(record.amounts), record.since, float(record.watermark), record.merged
        return GuardLease(*told, unpack(data, dict[str, Any]))

    def amount_of(self, record: BankLease) -> tuple[float, ...]:
        """What the shard may spend of each bank."""
        return tuple(record.amounts)

    def record_of(self, lease: GuardLease, coordinator: GuardCoordinator, digest: str) -> BankLease:
        """A lease that was granted, as it is written."""
        return BankLease(
            shard=lease.shard,
            number=lease.number,
            amounts=list(lease.amounts),
            since=lease.since,
            watermark=number(lease.watermark),
            merged=lease.merged,
            entered=int(coordinator.policy.bank_records[0].entered),
            digest=digest,
        )


LINEAR, BANK = LinearForm(), BankForm()


def form_of(created: Created) -> LeaseForm:
    """How leases of an experiment are written."""
    return BANK if is_guard(created.policy) else LINEAR


def check_shared(policy: BasePolicy) -> None:
    """Raise unless a policy's promise can be leased to shards."""
    if isinstance(policy, Guard):
        check_guard(policy)
    elif isinstance(policy, SafeLUCB):
        check_leasable(policy)
    else:
        raise ConfigError(f"Only SafeLUCB and Guard can be leased to shards, but got {type(policy).__name__}.")


def leased_round(made: HandedRound) -> LeasedRound:
    """A round of a linear policy as its coordinator counts it."""
    known: Any = tuple(made.baseline_reward) if isinstance(made.baseline_reward, list) else made.baseline_reward
    rows = np.array([made.played, made.displaced], dtype=np.float64)
    return LeasedRound(made.number, made.moment, rows[0], rows[1], made.is_learner, known)


def _coin(made: HandedCoin) -> GuardRound:
    draw = math.nan if made.draw is None else made.draw
    return GuardRound(made.number, made.moment, made.share, draw, made.is_learner, made.teaches, made.prediction)
