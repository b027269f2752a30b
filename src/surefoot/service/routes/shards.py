"""Shards that share a promise: who is there, and what each may lose."""

from typing import Annotated, Any

import msgspec
from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter

from surefoot.errors import DecisionError, InputError
from surefoot.experiment import HubStatus
from surefoot.service.authorization import visit_of
from surefoot.service.bodies import body_of
from surefoot.service.problems import ProblemError
from surefoot.service.registry import Registry
from surefoot.service.requests import LoseShard
from surefoot.service.routes.route_options import ExperimentName, guarded, problems
from surefoot.service.shards import leases_of

TAGS = ["shards"]
ShardName = Annotated[str, PathParameter(description="The shard's name.", max_length=200)]


class Shards(msgspec.Struct):
    """Who shares an experiment's promise; null where it has one ledger."""

    hub: HubStatus | None


def routes(registry: Registry) -> list[HTTPRouteHandler]:
    """The handlers."""

    @get(
        "/v1/experiments/{name:str}/shards",
        **guarded("read", TAGS, "readShards"),
        responses=problems("unknown-experiment"),
    )
    async def read(name: ExperimentName) -> Shards:
        """Who shares the experiment's floor, and what each of them is leased."""
        leases = (await registry.find(name)).experiment.leases
        return Shards(None if leases is None else await registry.run(leases.status))

    @post(
        "/v1/experiments/{name:str}/shards/{shard:str}/loss",
        **guarded("admin", TAGS, "loseShard", body=LoseShard),
        status_code=200,
        responses=problems("unknown-experiment", "not-sharded", "outcome-unknown", body=True),
    )
    async def lose(request: Request[Any, Any, Any], name: ExperimentName, shard: ShardName) -> Shards:
        """Stop waiting for the rounds of a shard or an edge that is gone; its lease stays charged."""
        data, visit = await body_of(request, LoseShard), visit_of(request.scope)
        leases = leases_of((await registry.find(name)).experiment)
        await registry.run(leases.hub.lose, shard, reason=data.reason, by=visit.by)
        visit.notes.update(experiment=name, shard=shard)
        return Shards(await registry.run(leases.status))

    @post(
        "/v1/experiments/{name:str}/shards/{shard:str}/departure",
        **guarded("admin", TAGS, "leaveFloor"),
        status_code=200,
        responses=problems("unknown-experiment", "not-sharded", "rounds-open", "outcome-unknown"),
    )
    async def leave(request: Request[Any, Any, Any], name: ExperimentName, shard: ShardName) -> Shards:
        """Have this server hand in its last rounds and leave for good: only the baseline plays here from then on."""
        experiment, visit = (await registry.find(name)).experiment, visit_of(request.scope)
        leases, own = leases_of(experiment), experiment.settings.shard
        if shard != own:
            raise InputError(
                f"A server leaves by itself, but {shard!r} was asked of {own!r}. Ask that one; one that is gone is "
                "lost (`loss`)."
            )
        try:
            await registry.run(leases.leave)
        except DecisionError as error:
            raise ProblemError("rounds-open", str(error)) from None
        visit.notes.update(experiment=name, shard=shard)
        return Shards(await registry.run(leases.status))

    return [read, lose, leave]
