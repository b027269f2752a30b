"""Leases: one floor over many servers, each of which decides by itself (docs/mathematics.md, "Leases")."""

from surefoot.leases.coordinator import Coordinator
from surefoot.leases.guard_coordinator import GuardCoordinator
from surefoot.leases.guard_lease import GuardHandIn, GuardLease, GuardRound
from surefoot.leases.guard_shard import GuardShard
from surefoot.leases.lease import HandIn, Lease, LeasedRound
from surefoot.leases.leased_guard import LeasedGuard
from surefoot.leases.leased_lucb import LeasedLUCB
from surefoot.leases.shard import Shard

__all__ = [
    "Coordinator",
    "GuardCoordinator",
    "GuardHandIn",
    "GuardLease",
    "GuardRound",
    "GuardShard",
    "HandIn",
    "Lease",
    "LeasedGuard",
    "LeasedLUCB",
    "LeasedRound",
    "Shard",
]
