"""Shards that share a floor: who is there, what each may lose, and what is proved of all of them."""

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler

from surefoot.experiment import ShardedExperiment
from surefoot.leases import Coordinator
from surefoot.service.registry import Registry
from surefoot.service.routes.route_options import ExperimentName, guarded, problems

TAGS = ["monitoring"]


class ShardRead(msgspec.Struct):
    """A shard: `amount` is what it may lose under its lease, `rounds` and `through` are what it has handed in."""

    name: str
    lease: int
    amount: float
    rounds: int
    through: float
    is_away: bool


class ShardsRead(msgspec.Struct):
    """The shards of an experiment; none where it has one ledger.

    `leased` is the sum of all leases, at most `pot`: what is proved of all rounds handed in, and a reserve. `error`
    tells why this server's lease was not renewed when it was last tried.
    """

    shard: str | None
    pot: float
    leased: float
    shards: list[ShardRead]
    error: str | None = None


def routes(registry: Registry) -> list[HTTPRouteHandler]:
    """The handlers."""

    @get(
        "/v1/experiments/{name:str}/shards",
        **guarded("read", TAGS, "readShards"),
        responses=problems("unknown-experiment"),
    )
    async def read(name: ExperimentName) -> ShardsRead:
        """Who shares the experiment's floor, and what each of them is leased."""
        experiment = (await registry.find(name)).experiment
        if not isinstance(experiment, ShardedExperiment):
            return ShardsRead(None, 0.0, 0.0, [])
        found: ShardsRead = await registry.run(experiment.coordinator, shards_of)
        found.shard = experiment.settings.shard
        found.error = None if experiment.lease_error is None else str(experiment.lease_error)
        return found

    return [read]


def shards_of(coordinator: Coordinator) -> ShardsRead:
    """What the coordinator knows of its shards."""
    shards = [
        ShardRead(name, one.lease, one.amount, one.rounds, one.through, one.is_away)
        for name, one in sorted(coordinator.members.all.items())
    ]
    return ShardsRead(None, coordinator.pot, coordinator.leased, shards)
